"""POST /simulate, through HTTP."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import httpx
import pytest

from app.schemas.base import read_output
from app.schemas.stages import stored_pipeline
from contract.limits import MAX_SIMULATED
from contract.simulate import DeliveredOut, PricedCutOut, SimulateOut
from tests.app.serving import MYRINET, Live

TWO: dict[str, Any] = {
    "stages": [
        {"name": "first", "overhead_us": 1.0, "ns_per_byte": 10.0},
        {"name": "second", "overhead_us": 2.0, "ns_per_byte": 30.0},
    ],
    "delay_us": 5.0,
}


OUTSIDE: dict[str, Any] = {
    "total": {"overhead_us": 30.0, "ns_per_byte": 40.0},
    "bottleneck": {"overhead_us": 10.0, "ns_per_byte": 20.0},
    "delay_us": 1.0,
}


class TestOneCut:
    def test_by_hand(self, client: httpx.Client) -> None:
        """Two fragments of 100 and 200 bytes; the second waits for the first in stage 1."""
        answer = client.post("/simulate", json={"pipeline": TWO, "fragment_bytes": [100, 200]})
        document = answer.json()
        read_output(SimulateOut, answer.content)
        spans = [
            (one["fragment"], one["stage"], one["start_us"], one["exit_us"])
            for one in document["intervals"]
        ]
        assert spans == [(0, 0, 0, 2), (0, 1, 2, 7), (1, 0, 2, 5), (1, 1, 7, 15)]
        assert document["latency_us"] == 20.0
        assert document["busy_us"] == [5.0, 13.0]
        assert document["bottleneck_stage"] == 1
        assert [(one["fragment"], one["stage"]) for one in document["critical_path"]] == [
            (0, 0),
            (0, 1),
            (1, 1),
        ]
        assert document["message_bytes"] == 300

    def test_it_agrees_with_the_optimizer(self, client: httpx.Client) -> None:
        optimized = client.post(
            "/optimize", json={"message_bytes": 3333, "pipeline": MYRINET}
        ).json()
        simulated = client.post(
            "/simulate",
            json={"pipeline": MYRINET, "fragment_bytes": optimized["fragment_bytes"]},
        ).json()
        assert simulated["latency_us"] == optimized["latency_us"]
        assert simulated["bottleneck_stage"] == optimized["bottleneck_stage"]

    def test_a_profile_is_named(self, client: httpx.Client) -> None:
        answer = client.post("/simulate", json={"profile": "gms@1", "fragment_bytes": [1]}).json()
        assert answer["profile"] == {"name": "gms", "revision": 1}

    def test_no_stage_handles_two_fragments_at_once(self, client: httpx.Client) -> None:
        body = {"pipeline": MYRINET, "fragment_bytes": [700, 1, 900, 44, 44]}
        intervals = client.post("/simulate", json=body).json()["intervals"]
        for stage in range(4):
            spans = [one for one in intervals if one["stage"] == stage]
            assert all(a["exit_us"] <= b["start_us"] for a, b in pairwise(spans))


class TestNestedCuts:
    def test_reassembly(self, client: httpx.Client) -> None:
        """The second stage starts a block when all of it has left the first."""
        body = {"pipeline": TWO, "levels": [[100, 100, 100], [200, 100]]}
        answer = client.post("/simulate", json=body)
        document = answer.json()
        read_output(SimulateOut, answer.content)
        second = [one for one in document["intervals"] if one["stage"] == 1]
        assert [(one["start_us"], one["exit_us"]) for one in second] == [(4, 12), (12, 17)]
        assert document["latency_us"] == 22.0
        assert document["critical_path"] is None

    def test_equal_levels_are_one_cut(self, client: httpx.Client) -> None:
        shared = client.post("/simulate", json={"pipeline": TWO, "fragment_bytes": [50, 70]}).json()
        nested = client.post("/simulate", json={"pipeline": TWO, "levels": [[50, 70]] * 2}).json()
        assert nested["latency_us"] == shared["latency_us"]


TRAPEZE: dict[str, Any] = {
    "stages": [
        {"name": "read", "overhead_us": 4.4, "ns_per_byte": 7.8125, "handoff_bytes": 1},
        {"name": "link", "overhead_us": 1.0, "ns_per_byte": 9.7, "handoff_bytes": 1},
        {"name": "write", "overhead_us": 2.35, "ns_per_byte": 15.625},
    ],
    "delay_us": 27.0,
}
WHOLE = {"rule": "store_and_forward"}
EAGER = {"rule": "eager", "threshold_bytes": 512}


class TestDelivery:
    """Pulses that stages choose while a message arrives."""

    def test_pulses_and_what_they_are_compared_with(self, client: httpx.Client) -> None:
        asked = {"pipeline": TRAPEZE, "message_bytes": 8192, "delivery": [WHOLE, EAGER, EAGER]}
        answer = client.post("/simulate", json=asked)
        found = read_output(DeliveredOut, answer.content)
        link, write = found.levels[1:]
        assert link == (512, 763, 1076, 1464, 1945, 2432)
        assert write == (512, 860, 1525, 2595, 2700)
        assert found.latency_us == pytest.approx(181.116, abs=1e-3)
        assert found.store_and_forward_us == pytest.approx(306.2124, abs=1e-4)
        assert 174.0 < found.lower_bound_us < found.latency_us
        assert found.warnings == ()
        path = [(one.fragment, one.stage) for one in found.critical_path or ()]
        assert path[-1] == (4, 2)
        assert path[0][0] == 0
        assert stored_pipeline(found.pipeline).stages[0].handoff_bytes == 1
        levels = {"pipeline": TRAPEZE, "levels": [list(cut) for cut in found.levels]}
        assert client.post("/simulate", json=levels).json()["latency_us"] == found.latency_us
        drawn = client.post("/simulate?format=svg", json=asked)
        assert drawn.headers["content-type"].startswith("image/svg")

    def test_what_does_nothing_says_so(self, client: httpx.Client) -> None:
        late = {"rule": "eager", "threshold_bytes": 9000}
        asked = {"pipeline": TWO, "message_bytes": 8192, "delivery": [WHOLE, late]}
        found = client.post("/simulate", json=asked).json()
        codes = [one["code"] for one in found["warnings"]]
        assert codes == ["threshold_above_message", "nothing_to_overlap"]
        assert found["latency_us"] == found["store_and_forward_us"]

    def test_a_handoff_is_kept_with_a_profile(self, client: httpx.Client) -> None:
        client.post("/profiles", json={"name": "trapeze-like", "pipeline": TRAPEZE})
        asked = {
            "profile": "trapeze-like",
            "message_bytes": 8192,
            "delivery": [WHOLE, EAGER, EAGER],
        }
        found = client.post("/simulate", json=asked).json()
        assert found["latency_us"] == pytest.approx(181.116, abs=1e-3)
        stages = found["pipeline"]["stages"]
        assert [stage.get("handoff_bytes") for stage in stages] == [1, 1, None]

    @pytest.mark.parametrize(
        ("changes", "code", "pointer"),
        [
            ({"delivery": [WHOLE]}, "inconsistent_input", "/delivery"),
            ({"message_bytes": None}, "inconsistent_input", "/message_bytes"),
            ({"levels": [[1], [1], [1]]}, "invalid_input", "/levels"),
            ({"delivery": [WHOLE, EAGER, {"rule": "static"}]}, "inconsistent_input", "/delivery/2"),
            (
                {"delivery": [WHOLE, EAGER, {**EAGER, "pulse_bytes": 5}]},
                "inconsistent_input",
                "/delivery/2/pulse_bytes",
            ),
            ({"delivery": [WHOLE, EAGER, {"rule": "lazy"}]}, "invalid_input", "/delivery/2/rule"),
            (
                {"delivery": [WHOLE, EAGER, {"rule": "eager", "threshold_bytes": 0}]},
                "invalid_input",
                "/delivery/2/threshold_bytes",
            ),
            (
                {"delivery": [WHOLE, EAGER, {**EAGER, "max_pulse_bytes": 511}]},
                "inconsistent_input",
                "/delivery/2/threshold_bytes",
            ),
            (
                {"delivery": [WHOLE, EAGER, {"rule": "planned", "planned_bytes": [1]}]},
                "inconsistent_input",
                "/delivery",
            ),
            (
                {
                    "message_bytes": 2**30,
                    "delivery": [WHOLE, {"rule": "static", "pulse_bytes": 1}] * 2,
                },
                "inconsistent_input",
                "/delivery",
            ),
            (
                {
                    "message_bytes": 2**30,
                    "delivery": [WHOLE, {"rule": "static", "pulse_bytes": 1}, EAGER],
                },
                "infeasible",
                "/delivery",
            ),
        ],
    )
    def test_what_cannot_be_delivered(
        self, client: httpx.Client, changes: dict[str, Any], code: str, pointer: str
    ) -> None:
        asked = {"pipeline": TRAPEZE, "message_bytes": 8192, "delivery": [WHOLE, EAGER, EAGER]}
        given = {name: value for name, value in {**asked, **changes}.items() if value is not None}
        refused = client.post("/simulate", json=given)
        assert (refused.status_code, refused.json()["code"]) == (422, code), refused.text
        assert refused.json()["errors"][0]["pointer"].startswith(pointer)

    @pytest.mark.parametrize("grain", [0, -1, 1.5, True, "64", 2**48 + 1])
    def test_grains_that_cannot_be(self, client: httpx.Client, grain: object) -> None:
        stages = [{**TRAPEZE["stages"][0], "handoff_bytes": grain}]
        asked = {"pipeline": {"stages": stages}, "fragment_bytes": [1]}
        refused = client.post("/simulate", json=asked)
        assert refused.status_code == 422
        assert "handoff_bytes" in refused.json()["errors"][0]["pointer"]


class TestRefusals:
    @pytest.mark.parametrize(
        ("body", "pointer"),
        [
            ({"fragment_bytes": [1]}, "/pipeline"),
            ({"pipeline": TWO}, "/fragment_bytes"),
            ({"pipeline": TWO, "fragment_bytes": [1], "levels": [[1], [1]]}, "/levels"),
            ({"pipeline": TWO, "fragment_bytes": []}, "/fragment_bytes"),
            ({"pipeline": TWO, "fragment_bytes": [5, 0]}, "/fragment_bytes/1"),
            ({"pipeline": TWO, "fragment_bytes": [5, 1.5]}, "/fragment_bytes/1"),
            ({"pipeline": TWO, "fragment_bytes": [2**48, 1]}, "/fragment_bytes"),
            ({"pipeline": TWO, "levels": [[5]]}, "/levels"),
            ({"pipeline": TWO, "levels": [[5], [6]]}, "/levels"),
            ({"pipeline": TWO, "levels": [[5], []]}, "/levels/1"),
            (
                {"pipeline": TWO, "fragment_bytes": [1] * (MAX_SIMULATED // 2 + 1)},
                "/fragment_bytes",
            ),
        ],
        ids=lambda value: value if isinstance(value, str) else "-".join(value),
    )
    def test_the_field_is_named(self, live: Live, body: dict[str, Any], pointer: str) -> None:
        response = live.client.post("/simulate", json=body)
        assert response.status_code == 422
        assert pointer in [one["pointer"] for one in response.json()["errors"]]

    def test_the_greatest_simulation(self, client: httpx.Client) -> None:
        body = {"pipeline": TWO, "fragment_bytes": [1] * (MAX_SIMULATED // 2)}
        assert len(client.post("/simulate", json=body).json()["intervals"]) == MAX_SIMULATED

    def test_unknown_profile(self, client: httpx.Client) -> None:
        body = {"profile": "nothing-here", "fragment_bytes": [1]}
        assert client.post("/simulate", json=body).status_code == 404


def test_tables_and_exports_of_stages_that_hand_bytes_on(client: httpx.Client) -> None:
    """They are of cuts that all stages share, for which a handoff changes nothing."""
    client.post("/profiles", json={"name": "handing", "pipeline": TRAPEZE}).raise_for_status()
    asked = {"max_message_bytes": 8192, "activate": True}
    client.post("/profiles/handing/tables", json=asked).raise_for_status()
    looked_up = client.get("/profiles/handing/schedule?bytes=4096").raise_for_status().json()
    assert looked_up["strategy"] == "table"
    sizes = "min_message_bytes=1024&max_message_bytes=8192"
    exported = client.get(f"/profiles/handing/exports/ucx?{sizes}")
    assert exported.status_code == 200, exported.text
    audit = {"profile": "handing", "setting": {"static_bytes": 1024}, "max_message_bytes": 8192}
    assert client.post("/audit", json=audit).status_code == 200


class TestAggregate:
    """A total and a bottleneck: what the cut takes at most, and no stage."""

    def test_it_is_the_formula_s_latency(self, client: httpx.Client) -> None:
        """S of the first fragment and b of the others, and what the solver's answer says."""
        body = {"aggregate": OUTSIDE, "fragment_bytes": [1000, 1000, 500]}
        answer = client.post("/simulate", json=body)
        assert answer.status_code == 200
        document = answer.json()
        read_output(PricedCutOut, answer.content)
        assert document["latency_us"] == pytest.approx(1 + 70 + 30 + 20)
        assert document["one_piece_us"] == pytest.approx(1 + 30 + 100)
        assert document["message_bytes"] == 2500
        optimized = client.post(
            "/optimize", json={"message_bytes": 2500, "aggregate": OUTSIDE}
        ).json()
        cut = {"aggregate": OUTSIDE, "fragment_bytes": optimized["fragment_bytes"]}
        again = client.post("/simulate", json=cut).json()
        assert again["latency_us"] == optimized["latency_us"]

    @pytest.mark.parametrize(
        ("more", "query"),
        [
            ({"levels": [[10], [10]]}, ""),
            ({"message_bytes": 10, "delivery": [{"rule": "eager"}]}, ""),
            ({"fragment_bytes": [10]}, "?format=svg"),
        ],
    )
    def test_what_needs_stages_is_refused(
        self, client: httpx.Client, more: dict[str, Any], query: str
    ) -> None:
        """Cuts by stage, rules, and pictures."""
        found = client.post(f"/simulate{query}", json={"aggregate": OUTSIDE, **more})
        assert found.status_code in (409, 422)
        assert found.json()["code"] == "strategy_declined"
