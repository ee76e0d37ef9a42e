"""POST /optimize and the stored answers, through HTTP."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import httpx
import orjson
import pytest

from app.errors import RETRY_AFTER_S
from app.http import call_threads
from app.schemas.base import read_output
from contract.optimize import OptimizeOut
from domain.pipeline import Pipeline, Stage
from domain.schedule import latency_us
from tests.app.serving import LARGE, LARGE_BYTES, MYRINET, Live, serving, settings_for

ROWS = "".join(
    f"{size},{repetition},{5 + size * 0.01 + repetition * 0.1},{9 + size * 0.03}\n"
    for size in (64, 1024, 8192, 65536)
    for repetition in range(3)
)
TRACE = "message_bytes,repetition,copy_us,wire_us\n" + ROWS


def ask(message_bytes: int = 4096, **more: Any) -> dict[str, Any]:
    if not {"profile", "measurements"} & more.keys():
        more = {"pipeline": MYRINET, **more}
    return {"message_bytes": message_bytes, **more}


def numbers(document: object) -> list[float]:
    """Every number in a document."""
    if isinstance(document, dict):
        return [number for value in document.values() for number in numbers(value)]
    if isinstance(document, list):
        return [number for value in document for number in numbers(value)]
    return [document] if isinstance(document, int | float) else []


class TestOptimize:
    def test_table_1_at_4_kib(self, client: httpx.Client) -> None:
        """The figures of the paper's pipeline: six fragments, proven before rounding."""
        answer = client.post("/optimize", json=ask()).json()
        assert answer["fragments"] == len(answer["fragment_bytes"]) == 6
        assert sum(answer["fragment_bytes"]) == 4096
        assert round(answer["lower_bound_us"], 4) == 184.3483
        assert round(answer["unrounded_latency_us"], 4) == 184.3483
        assert answer["status"] == "optimal_before_rounding"
        assert answer["bottleneck_stage"] == 2
        assert answer["best_fixed"]["latency_us"] > answer["latency_us"]
        single = next(one for one in answer["baselines"] if one["strategy"] == "single")
        assert round(single["latency_us"], 1) == 286.9

    def test_the_latency_is_the_recurrence_on_those_very_bytes(self, client: httpx.Client) -> None:
        answer = client.post("/optimize", json=ask(5000)).json()
        pipeline = Pipeline(
            tuple(
                Stage.of_line(
                    stage["name"],
                    overhead_us=stage["overhead_us"],
                    ns_per_byte=stage["ns_per_byte"],
                )
                for stage in answer["pipeline"]["stages"]
            )
        )
        assert answer["latency_us"] == latency_us(pipeline, answer["fragment_bytes"])
        gap = (answer["latency_us"] - answer["lower_bound_us"]) / answer["lower_bound_us"]
        assert answer["relative_gap"] == pytest.approx(gap, rel=1e-9)

    @pytest.mark.parametrize(
        "more",
        [
            {},
            {"strategy": "static", "static_bytes": 512},
            {"strategy": "single"},
            {"profile": "myrinet-gam"},
            {"profile": "gms@1"},
            {"measurements": {"content": TRACE}},
            {"measurements": [{"content": TRACE, "kind": "direct"}]},
            {"strategy": "hierarchical", "allow_refragmentation": True},
            {"constraints": {"min_fragment_bytes": 256, "alignment_bytes": 64}},
        ],
        ids=lambda more: "-".join(more) or "plain",
    )
    def test_every_field_is_there_and_every_number_finite(
        self, client: httpx.Client, more: dict[str, Any]
    ) -> None:
        """Outputs have no defaults: the answer has the published fields, no more and no fewer."""
        response = client.post("/optimize", json=ask(3000, **more))
        assert response.status_code == 200, response.text
        read_output(OptimizeOut, response.content)
        assert all(math.isfinite(number) for number in numbers(response.json()))

    def test_constraints_hold(self, client: httpx.Client) -> None:
        limits = {"min_fragment_bytes": 300, "max_fragment_bytes": 900, "alignment_bytes": 64}
        answer = client.post("/optimize", json=ask(5000, constraints=limits)).json()
        sizes = answer["fragment_bytes"]
        assert all(size % 64 == 0 for size in sizes[:-1])
        assert all(300 <= size <= 900 for size in sizes)
        assert answer["constraints"] == {**limits, "max_fragments": None}

    @pytest.mark.parametrize(("overhead_us", "ns_per_byte"), [(0, 0), (0, 5.5), (3.5, 0)], ids=str)
    def test_free_stages_are_legal(
        self, client: httpx.Client, overhead_us: float, ns_per_byte: float
    ) -> None:
        """Zero overhead, zero per-byte cost, or both: solved, with finite numbers."""
        free = {"name": "free", "overhead_us": overhead_us, "ns_per_byte": ns_per_byte}
        for stages in ([free], [free, free], [*MYRINET["stages"], free]):
            body = ask(700, pipeline={"stages": stages})
            response = client.post("/optimize", json=body)
            assert response.status_code == 200, response.text
            assert all(math.isfinite(number) for number in numbers(response.json()))
            assert sum(response.json()["fragment_bytes"]) == 700

    def test_ranges_are_a_stage_too(self, client: httpx.Client) -> None:
        ranged = {
            "name": "wire",
            "ranges": [
                {"up_to_bytes": 1024, "overhead_us": 10, "ns_per_byte": 20},
                {"up_to_bytes": None, "overhead_us": 60, "ns_per_byte": 11.3},
            ],
        }
        stages = [MYRINET["stages"][0], ranged]
        answer = client.post("/optimize", json=ask(8000, pipeline={"stages": stages})).json()
        assert answer["pipeline"]["stages"][1] == {
            **ranged,
            "ranges": [
                {"up_to_bytes": 1024, "overhead_us": 10.0, "ns_per_byte": 20.0},
                {"up_to_bytes": None, "overhead_us": 60.0, "ns_per_byte": 11.3},
            ],
        }
        assert answer["relative_gap"] <= 1e-4
        assert answer["warnings"] == []

    def test_delay_is_added_to_latency_and_bound(self, client: httpx.Client) -> None:
        plain = client.post("/optimize", json=ask(2222)).json()
        delayed = client.post(
            "/optimize", json=ask(2222, pipeline={**MYRINET, "delay_us": 50.0})
        ).json()
        assert delayed["latency_us"] == pytest.approx(plain["latency_us"] + 50.0)
        assert delayed["lower_bound_us"] == pytest.approx(plain["lower_bound_us"] + 50.0)

    def test_nested_cuts_have_levels(self, client: httpx.Client) -> None:
        """A hierarchical answer adds the cut that each stage sees and the paper's latency."""
        body = {
            "message_bytes": 65536,
            "profile": "disk-study",
            "strategy": "hierarchical",
            "allow_refragmentation": True,
        }
        answer = client.post("/optimize", json=body).json()
        assert len(answer["levels"]) == len(answer["pipeline"]["stages"])
        assert {sum(level) for level in answer["levels"]} == {65536}
        assert answer["latency_paper_us"] >= answer["latency_us"]
        levels = [set(accumulate(level)) for level in answer["levels"]]
        assert levels[4] <= levels[0]  # the disk sees whole blocks of what the network cuts
        assert answer["bottleneck_stage"] == 4

    @pytest.mark.usefixtures("native_kernels")
    def test_large_problems_go_to_the_engine(self, client: httpx.Client) -> None:
        body = {"message_bytes": LARGE_BYTES, "pipeline": LARGE, "time_limit_s": 1.0}
        answer = client.post("/optimize", json=body).json()
        assert sum(answer["fragment_bytes"]) == LARGE_BYTES
        assert answer["lower_bound_us"] <= answer["latency_us"]
        assert 'sluice_answers_total{origin="engine"}' in client.get("/metrics").text


class TestSources:
    @pytest.mark.parametrize(
        "sources",
        [
            {},
            {"pipeline": MYRINET, "profile": "gms"},
            {"pipeline": MYRINET, "measurements": {"content": TRACE}},
            {"profile": "gms", "measurements": {"content": TRACE}},
            {"pipeline": None, "profile": None},
        ],
        ids=lambda sources: "+".join(sources) or "none",
    )
    def test_exactly_one(self, live: Live, sources: dict[str, Any]) -> None:
        before = live.stored()
        response = live.client.post("/optimize", json={"message_bytes": 100, **sources})
        assert response.status_code == 422
        assert "exactly one" in response.json()["detail"]
        assert live.stored() == before

    def test_null_counts_as_absent(self, client: httpx.Client) -> None:
        body = ask(100, profile=None, measurements=None, pipeline=MYRINET, save_as=None)
        assert client.post("/optimize", json=body).status_code == 200

    def test_unknown_profiles_are_404(self, client: httpx.Client) -> None:
        for name in ("nothing-here", "gms@99"):
            response = client.post("/optimize", json=ask(100, profile=name))
            assert response.status_code == 404
            assert response.json()["code"] == "not_found"
            assert "nothing-here" not in response.text

    def test_a_profile_is_named_in_the_answer(self, client: httpx.Client) -> None:
        answer = client.post("/optimize", json=ask(4096, profile="myrinet-gam")).json()
        assert answer["profile"] == {"name": "myrinet-gam", "revision": 1}
        assert answer["fit"] is None

    def test_measurements_are_fitted(self, client: httpx.Client) -> None:
        answer = client.post("/optimize", json=ask(4096, measurements={"content": TRACE})).json()
        fitted = {stage["name"]: stage for stage in answer["fit"]["pipeline"]["stages"]}
        assert fitted["wire"]["overhead_us"] == pytest.approx(9.0)
        assert fitted["wire"]["ns_per_byte"] == pytest.approx(30.0)
        assert answer["pipeline"]["stages"][1]["ns_per_byte"] == pytest.approx(30.0)

    @pytest.mark.parametrize(
        "measurements",
        [
            {"content": ""},
            {"content": "no header\n1,2,3"},
            {"content": TRACE, "kind": "end_to_end"},
            [{"content": TRACE}, {"content": "message_bytes,repetition,latency_us\n64,0,9\n"}],
            [],
        ],
        ids=["empty", "no header", "kind", "two kinds", "no item"],
    )
    def test_measurements_that_cannot_be_used(self, live: Live, measurements: object) -> None:
        before = live.stored()
        response = live.client.post("/optimize", json=ask(100, measurements=measurements))
        assert response.status_code == 422
        assert live.stored() == before


class TestSaveAs:
    def test_answer_and_profile_are_stored_together(self, client: httpx.Client) -> None:
        answer = client.post("/optimize", json=ask(640, save_as="saved-with-answer")).json()
        assert answer["profile"] == {"name": "saved-with-answer", "revision": 1}
        profile = client.get("/profiles/saved-with-answer").json()
        assert profile["pipeline"] == answer["pipeline"]
        again = client.post("/optimize", json=ask(640, save_as="saved-with-answer")).json()
        assert again["profile"]["revision"] == 2
        assert again["id"] != answer["id"]

    def test_measurements_leave_their_fit_as_provenance(self, client: httpx.Client) -> None:
        body = ask(640, measurements={"content": TRACE}, save_as="saved-from-trace")
        assert client.post("/optimize", json=body).status_code == 200
        provenance = client.get("/profiles/saved-from-trace").json()["provenance"]
        assert provenance["origin"] == "fit"
        assert provenance["fit_id"]

    @pytest.mark.parametrize(
        ("more", "status"),
        [
            ({"save_as": "Not A Name"}, 422),
            ({"save_as": "x" * 65}, 422),
            ({"save_as": "fine", "profile": "gms"}, 422),
            ({"save_as": "half", "strategy": "ramp"}, 422),
            (
                {"save_as": "half", "constraints": {"min_fragment_bytes": 9, "max_fragments": 0}},
                422,
            ),
        ],
        ids=["name", "long name", "profile", "declined", "constraints"],
    )
    def test_nothing_is_half_stored(self, live: Live, more: dict[str, Any], status: int) -> None:
        before = live.stored()
        assert live.client.post("/optimize", json=ask(640, **more)).status_code == status
        assert live.stored() == before


class TestRefusals:
    @pytest.mark.parametrize(
        ("more", "code"),
        [
            ({"strategy": "ramp"}, "strategy_declined"),
            ({"strategy": "ramp_up_down"}, "strategy_declined"),
            ({"strategy": "static"}, "inconsistent_input"),
            ({"static_bytes": 100}, "inconsistent_input"),
            (
                {"constraints": {"max_fragment_bytes": 100, "max_fragments": 2}},
                "infeasible",
            ),
            (
                {"constraints": {"min_fragment_bytes": 300, "max_fragment_bytes": 200}},
                "infeasible",
            ),
        ],
        ids=lambda value: value if isinstance(value, str) else "-".join(value),
    )
    def test_well_formed_and_not_to_be_honoured(
        self, live: Live, more: dict[str, Any], code: str
    ) -> None:
        before = live.stored()
        response = live.client.post("/optimize", json=ask(1000, **more))
        assert (response.status_code, response.json()["code"]) == (422, code)
        assert response.headers["content-type"] == "application/problem+json"
        assert live.stored() == before

    def test_the_clashing_limits_are_named(self, client: httpx.Client) -> None:
        limits = {"max_fragment_bytes": 100, "max_fragments": 2}
        detail = client.post("/optimize", json=ask(1000, constraints=limits)).json()["detail"]
        assert "max_fragment_bytes" in detail
        assert "max_fragments" in detail


class TestReuse:
    def test_an_identical_question_gets_the_stored_bytes(self, client: httpx.Client) -> None:
        first = client.post("/optimize", json=ask(7001))
        again = client.post("/optimize", json=ask(7001))
        assert again.content == first.content

    @pytest.mark.parametrize(
        "more",
        [
            {"relative_gap": 1e-5},
            {"strategy": "exact"},
            {"constraints": {"min_fragment_bytes": 2}},
            {"allow_refragmentation": True},
            {"profile": "myrinet-gam"},
        ],
        ids=lambda more: "-".join(more),
    )
    def test_another_question_does_not(self, client: httpx.Client, more: dict[str, Any]) -> None:
        first = client.post("/optimize", json=ask(7003)).json()
        other = client.post("/optimize", json=ask(7003, **more)).json()
        assert other["id"] != first["id"]

    def test_more_time_is_no_other_question(self, client: httpx.Client) -> None:
        """The status of the stored answer says that more time would not help."""
        first = client.post("/optimize", json=ask(7005)).json()
        assert first["status"].startswith("optimal")
        again = client.post("/optimize", json=ask(7005, time_limit_s=20)).json()
        assert again["id"] == first["id"]

    def test_an_answer_that_was_cut_off_is_not_given_again(self, scripted: Live) -> None:
        """Its status is neither optimal, nor does its gap meet the one that was asked."""
        stages = [{"name": "answers", "overhead_us": 9, "ns_per_byte": 9}, *LARGE["stages"]]
        body = {"message_bytes": LARGE_BYTES, "pipeline": {"stages": stages}}
        before = scripted.stored()[0]
        first = scripted.client.post("/optimize", json=body).json()
        assert first["status"] == "proven_gap"
        assert first["relative_gap"] > 1e-6
        again = scripted.client.post("/optimize", json=body).json()
        assert again["id"] != first["id"]
        loose = {**body, "relative_gap": 1.0}
        scripted.client.post("/optimize", json=loose)
        assert scripted.stored()[0] == before + 3


class TestStoredAnswers:
    def test_read_back_byte_for_byte(self, client: httpx.Client) -> None:
        sent = client.post("/optimize", json=ask(9001))
        read = client.get(f"/optimizations/{sent.json()['id']}")
        assert read.content == sent.content
        assert read.headers["content-type"] == "application/json"

    @pytest.mark.parametrize("id", ["0" * 32, "nothing", "..%2F..%2Fetc", "%00", "a" * 5000])
    def test_unknown(self, client: httpx.Client, id: str) -> None:
        response = client.get(f"/optimizations/{id}")
        assert response.status_code == 404
        assert client.patch(f"/optimizations/{id}", json={"name": "a"}).status_code == 404
        assert response.headers["content-type"] == "application/problem+json"

    def test_pages_newest_first(self, own: Live) -> None:
        """Filters all hold, and the cursor neither repeats nor loses an answer."""
        sent = [
            own.client.post("/optimize", json=ask(100 + i, profile="myrinet-gam")).json()["id"]
            for i in range(7)
        ]
        own.client.post("/optimize", json=ask(100))
        seen: list[str] = []
        query: dict[str, Any] = {"profile": "myrinet-gam", "revision": 1, "limit": 3}
        while True:
            page = own.client.get("/optimizations", params=query).json()
            seen += [item["id"] for item in page["items"]]
            if page["next_cursor"] is None:
                break
            query["cursor"] = page["next_cursor"]
        assert seen == sent[::-1]
        one = own.client.get("/optimizations", params={"message_bytes": 104}).json()["items"]
        assert [item["id"] for item in one] == [sent[4]]
        inline = own.client.get("/optimizations", params={"message_bytes": 100}).json()["items"]
        assert [item["profile"] for item in inline] == [
            None,
            {"name": "myrinet-gam", "revision": 1},
        ]

    @pytest.mark.parametrize(
        "query",
        ["limit=0", "limit=1001", "limit=x", "limit=1_0", "cursor=zz", "strategy=best", "x=1"],
    )
    def test_queries_are_strict(self, client: httpx.Client, query: str) -> None:
        response = client.get(f"/optimizations?{query}")
        assert response.status_code == 422
        assert response.json()["errors"][0]["pointer"] == "/" + query.partition("=")[0]


def test_floats_survive_the_round_trip(client: httpx.Client) -> None:
    """What was solved is exactly what was sent."""
    stage = {"name": "odd", "overhead_us": 0.1 + 0.2, "ns_per_byte": 1e-9 / 3}
    answer = client.post("/optimize", json=ask(50, pipeline={"stages": [stage]}))
    assert orjson.loads(answer.content)["pipeline"]["stages"] == [stage]


class TestPersistence:
    def test_an_answer_is_byte_identical_after_a_restart(self, database_url: str) -> None:
        with serving(settings_for(database_url)) as first:
            sent = first.client.post("/optimize", json=ask(1234, profile="gms"))
        with serving(settings_for(database_url)) as second:
            read = second.client.get(f"/optimizations/{sent.json()['id']}")
            assert read.content == sent.content
            assert second.client.post("/optimize", json=ask(1234, profile="gms")).content == (
                sent.content
            )


class TestOverload:
    def test_too_much_is_refused_with_a_time_to_try_again(
        self, live: Live, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = live.stored()
        monkeypatch.setattr(call_threads, "MAX_PENDING_CALLS", 0)
        body = {"message_bytes": LARGE_BYTES + 7, "pipeline": LARGE}
        response = live.client.post("/optimize", json=body)
        assert (response.status_code, response.json()["code"]) == (503, "overloaded")
        assert int(response.headers["retry-after"]) in RETRY_AFTER_S
        assert live.stored() == before

    def test_small_solves_overflow_into_the_engine(self, live: Live) -> None:
        """With the same answer, apart from its name and time."""
        here = live.client.post("/optimize", json=ask(4242)).json()
        with live.service.solving:  # another one is being solved in this process
            there = live.client.post("/optimize", json=ask(4242, profile="myrinet-gam")).json()
        for differs in ("id", "created_at", "solve_ms", "profile"):
            del here[differs], there[differs]
        assert there == here


class TestDelivery:
    """What stages that choose their pulses do, and what to compare it with."""

    @pytest.mark.parametrize(("strategy", "rule"), [("eager", "eager"), ("pulses", "static")])
    def test_rules_reproduce_the_pulses(
        self, client: httpx.Client, strategy: str, rule: str
    ) -> None:
        """Run by POST /simulate; rates and limits by their own formulas (Yocum97)."""
        asked = {"profile": "trapeze", "message_bytes": 8192}
        found = client.post("/optimize", json={**asked, "strategy": strategy}).json()
        names = ("rule", "threshold_bytes", "pulse_bytes", "max_pulse_bytes")
        rules = [
            {name: one[name] for name in names if one[name] is not None}
            for one in found["delivery"]
        ]
        assert {one["rule"] for one in found["delivery"][1:]} == {rule}
        run = client.post("/simulate", json={**asked, "delivery": rules}).json()
        assert run["latency_us"] == pytest.approx(found["latency_us"], rel=1e-12)
        assert run["levels"] == found["levels"]
        assert [len(level) for level in run["levels"]] == [
            one["pulses"] for one in found["delivery"]
        ]
        assert run["busy_us"] == pytest.approx([one["busy_us"] for one in found["delivery"]])
        assert found["store_and_forward_us"] == run["store_and_forward_us"]
        assert found["sustained_mb_per_s"] == pytest.approx(8192 / max(run["busy_us"]))
        stages = found["pipeline"]["stages"]
        slowest = max(stage["ns_per_byte"] for stage in stages)
        ideal_us = sum(stage["overhead_us"] for stage in stages) + 8.192 * slowest
        assert found["ideal_us"] == pytest.approx(ideal_us + found["pipeline"]["delay_us"])
        again = client.get(f"/optimizations/{found['id']}").json()
        assert again == found
        shown = client.get(f"/ui/answers/{found['id']}")
        assert shown.status_code == 200
        assert "store and forward" in shown.text
        assert "MB/s at most" in shown.text
        printed = client.get(f"/ui/answers/{found['id']}/report.html")
        assert printed.status_code == 200
        assert "MB/s at most" in printed.text
        assert client.get(f"/optimizations/{found['id']}/explanation").status_code in (200, 409)

    @pytest.mark.parametrize("strategy", ["auto", "exact", "repeat"])
    def test_others_do_not_have_the_fields(self, client: httpx.Client, strategy: str) -> None:
        body = {"profile": "trapeze", "message_bytes": 8192, "strategy": strategy}
        found = client.post("/optimize", json=body).json()
        assert not {"delivery", "ideal_us", "store_and_forward_us", "sustained_mb_per_s"} & {*found}
