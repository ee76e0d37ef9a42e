"""POST /measurement-plans, through HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from app.schemas.base import read_output
from contract.plan import MeasurementPlanOut
from tests.app.serving import Live

RANGE: dict[str, Any] = {"min_message_bytes": 64, "max_message_bytes": 1048576}
HEADER = "message_bytes,repetition,latency_us,interarrival_us\n"


def rows(*sizes: int) -> str:
    """Times of two stages: 30 µs + 10 ns per byte, then 1 µs + 20 ns per byte."""
    return HEADER + "".join(
        f"{size},{n},{50 + 0.05 * size},{max(30 + 0.01 * size, 1 + 0.02 * size)}\n"
        for size in sizes
        for n in range(3)
    )


class TestPlans:
    def test_nothing_measured_yet(self, client: httpx.Client) -> None:
        answer = client.post("/measurement-plans", json=RANGE)
        assert answer.status_code == 200
        document = answer.json()
        read_output(MeasurementPlanOut, answer.content)
        assert not document["decided"]
        assert [one["message_bytes"] for one in document["measure"]][:2] == [64, 128]

    def test_until_it_is_decided(self, client: httpx.Client) -> None:
        sizes = [64, 128, 8192, 524288, 1048576]
        asked = {**RANGE, "measurements": {"content": rows(*sizes)}}
        document = client.post("/measurement-plans", json=asked).json()
        wanted = [one["message_bytes"] for one in document["measure"]]
        assert wanted[0] == 2900
        asked["measurements"] = [{"content": rows(*sizes)}, {"content": rows(*wanted)}]
        document = client.post("/measurement-plans", json=asked).json()
        assert document["decided"]
        assert document["measure"] == []
        assert [one["at_bytes"] for one in document["transitions"]] == [2900]

    @pytest.mark.parametrize(
        ("changes", "pointer"),
        [
            ({"min_message_bytes": 0}, "/min_message_bytes"),
            ({"max_message_bytes": 100}, "/max_message_bytes"),
            ({"tolerance": 2}, "/tolerance"),
            ({"speed": 1}, "/speed"),
            ({"measurements": []}, "/measurements"),
            ({"measurements": {"content": "junk"}}, "/measurements"),
            ({"measurements": {"content": rows(64), "kind": "direct"}}, "/kind"),
            (
                {"measurements": {"content": "message_bytes,repetition,a_us\n1,0,1\n2,0,1\n"}},
                "/measurements",
            ),
        ],
    )
    def test_refusals(self, client: httpx.Client, changes: dict[str, Any], pointer: str) -> None:
        answer = client.post("/measurement-plans", json={**RANGE, **changes})
        assert answer.status_code == 422
        assert pointer in answer.json()["errors"][0]["pointer"]

    def test_nothing_is_stored(self, live: Live) -> None:
        before = live.stored()
        live.client.post("/measurement-plans", json=RANGE)
        assert live.stored() == before
