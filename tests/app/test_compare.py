"""POST /compare, through HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from app.schemas.base import read_output
from contract.compare import CompareOut
from contract.limits import MAX_COMPARED
from domain.solution import Strategy
from tests.app.scripted_solver import WAITS
from tests.app.serving import GUARD_S, LARGE, LARGE_BYTES, MYRINET, Live, wait_until

IMPATIENT = httpx.Timeout(GUARD_S, read=0.5)  # of the answer alone: to be heard may take longer


def ask(**more: Any) -> dict[str, Any]:
    return {
        "pipeline": MYRINET,
        "message_bytes": [1024, 4096],
        "strategies": ["auto", "single"],
        **more,
    }


class TestCompare:
    def test_a_row_for_each_size_and_strategy(self, client: httpx.Client) -> None:
        response = client.post("/compare", json=ask())
        read_output(CompareOut, response.content)
        rows = response.json()["rows"]
        assert [(row["message_bytes"], row["strategy"]) for row in rows] == [
            (1024, "auto"),
            (1024, "single"),
            (4096, "auto"),
            (4096, "single"),
        ]
        assert round(rows[3]["latency_us"], 1) == 286.9
        assert rows[2]["fragments"] == 6
        assert rows[2]["chosen"] == "exact"
        assert rows[3]["largest_fragment_bytes"] == 4096

    def test_auto_is_never_above_any_other(self, client: httpx.Client) -> None:
        body = ask(
            strategies=list(Strategy),
            static_bytes=1024,
            allow_refragmentation=True,
            time_limit_s=60,  # for all cells together, also on a busy machine
        )
        rows = client.post("/compare", json=body).json()["rows"]
        for size in (1024, 4096):
            found = {row["strategy"]: row for row in rows if row["message_bytes"] == size}
            best = found["auto"]["latency_us"]
            others = [row["latency_us"] for row in found.values() if row["latency_us"] is not None]
            assert best <= min(others) * (1 + 1e-12)
            assert {"ramp", "ramp_up_down", "ramp_repeat"} == {
                name for name, row in found.items() if row["declined"]
            }

    def test_what_was_declined_says_why(self, client: httpx.Client) -> None:
        rows = client.post("/compare", json=ask(strategies=["ramp"])).json()["rows"]
        assert all(row["latency_us"] is None and "two stages" in row["declined"] for row in rows)

    def test_infeasible_sizes_are_rows_too(self, client: httpx.Client) -> None:
        limits = {"max_fragment_bytes": 100, "max_fragments": 11}
        rows = client.post("/compare", json=ask(constraints=limits)).json()["rows"]
        assert [row["declined"] is None for row in rows] == [True, False, False, False]

    def test_it_agrees_with_optimize(self, client: httpx.Client) -> None:
        answer = client.post("/optimize", json={"message_bytes": 2048, "pipeline": MYRINET}).json()
        row = client.post("/compare", json=ask(message_bytes=[2048])).json()["rows"][0]
        assert row["latency_us"] == answer["latency_us"]
        assert row["lower_bound_us"] == answer["lower_bound_us"]

    def test_a_profile_is_named(self, client: httpx.Client) -> None:
        body = ask(pipeline=None, profile="gms")
        assert client.post("/compare", json=body).json()["profile"] == {
            "name": "gms",
            "revision": 1,
        }

    def test_large_tables_go_to_the_engine(self, client: httpx.Client) -> None:
        body = ask(pipeline=LARGE, message_bytes=[LARGE_BYTES], time_limit_s=30.0)
        rows = client.post("/compare", json=body).json()["rows"]
        assert len(rows) == 2
        assert rows[0]["latency_us"] <= rows[1]["latency_us"]

    def test_nothing_is_stored(self, live: Live) -> None:
        before = live.stored()
        live.client.post("/compare", json=ask())
        assert live.stored() == before


class TestTime:
    def test_the_limit_is_for_the_entire_table(self, scripted: Live) -> None:
        """Cells that the time does not reach say so; the answer comes nevertheless."""
        stages = [{"name": WAITS, "overhead_us": 1, "ns_per_byte": 1}, *LARGE["stages"]]
        body = ask(
            pipeline={"stages": stages},
            message_bytes=[LARGE_BYTES, LARGE_BYTES + 1],
            strategies=["exact"],
            time_limit_s=0.3,
        )
        rows = scripted.client.post("/compare", json=body).json()["rows"]
        assert all(row["declined"] for row in rows)
        assert "not tried" in rows[1]["declined"]

    def test_a_client_that_goes_away_stops_it(self, scripted: Live) -> None:
        stages = [{"name": WAITS, "overhead_us": 1, "ns_per_byte": 1}, *LARGE["stages"]]
        body = ask(pipeline={"stages": stages}, message_bytes=[LARGE_BYTES])
        with pytest.raises(httpx.ReadTimeout):
            scripted.client.post("/compare", json=body, timeout=IMPATIENT)
        wait_until(lambda: scripted.service.counts.pending_tasks == 0)
        assert scripted.client.post("/compare", json=ask()).status_code == 200


class TestRefusals:
    @pytest.mark.parametrize(
        ("more", "pointer"),
        [
            ({"profile": "gms"}, "/profile"),
            ({"pipeline": None}, "/pipeline"),
            ({"message_bytes": []}, "/message_bytes"),
            ({"message_bytes": [0]}, "/message_bytes/0"),
            ({"message_bytes": 5}, "/message_bytes"),
            ({"message_bytes": [1] * (MAX_COMPARED // 2 + 1)}, "/message_bytes"),
            ({"strategies": []}, "/strategies"),
            ({"strategies": ["best"]}, "/strategies/0"),
            ({"strategies": ["static"]}, "/static_bytes"),
            ({"static_bytes": 5}, "/static_bytes"),
            ({"time_limit_s": 1e9}, "/time_limit_s"),
        ],
        ids=lambda value: value if isinstance(value, str) else "-".join(value),
    )
    def test_the_field_is_named(
        self, client: httpx.Client, more: dict[str, Any], pointer: str
    ) -> None:
        response = client.post("/compare", json=ask(**more))
        assert response.status_code == 422
        assert pointer in [one["pointer"] for one in response.json()["errors"]]
