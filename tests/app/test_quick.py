"""Small solves stay in the service's process, and leave it when they turn out to be long."""

from __future__ import annotations

import httpx
import pytest

from analysis import solve
from tests.app.serving import MYRINET
from tests.solvers.test_effort import FLAT, FLAT_BYTES, FLAT_FRAGMENTS

FLAT_STAGES = [
    {
        "name": stage.name,
        "overhead_us": stage.ranges[0].overhead_us,
        "ns_per_byte": stage.ranges[0].ns_per_byte,
    }
    for stage in FLAT.stages
]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """So little time that no solve ends within it, even in C."""
    monkeypatch.setattr(solve, "QUICK_LIMIT_S", 1e-4)


def answered(client: httpx.Client, origin: str) -> int:
    """How many answers came from there, by the service's own count."""
    for line in client.get("/metrics").text.splitlines():
        if line.startswith("sluice_answers_total") and f'"{origin}"' in line:
            return int(float(line.rsplit(" ", 1)[1]))
    return 0


def test_a_small_solve_needs_no_child_process(client: httpx.Client) -> None:
    """With a limit below that of quick solves there is nothing to hand over, however slow it is."""
    before = answered(client, "quick")
    body = {"message_bytes": 3999, "pipeline": MYRINET, "time_limit_s": 0.03}
    assert client.post("/optimize", json=body).status_code == 200
    assert answered(client, "quick") == before + 1


@pytest.mark.usefixtures("impatient")
def test_a_small_solve_that_takes_long_is_handed_to_the_engine(client: httpx.Client) -> None:
    before = answered(client, "engine")
    body = {
        "message_bytes": FLAT_BYTES,
        "pipeline": {"stages": FLAT_STAGES, "delay_us": 0},
        "constraints": {"max_fragments": FLAT_FRAGMENTS},
    }
    answer = client.post("/optimize", json=body, timeout=60.0)
    assert answer.status_code == 200
    assert answer.json()["status"] != "time_limit"
    assert answered(client, "engine") == before + 1


@pytest.mark.usefixtures("impatient")
def test_a_table_with_such_a_cell_is_made_by_the_engine(client: httpx.Client) -> None:
    body = {
        "pipeline": {"stages": FLAT_STAGES, "delay_us": 0},
        "message_bytes": [FLAT_BYTES],
        "strategies": ["auto"],
        "constraints": {"max_fragments": FLAT_FRAGMENTS},
    }
    rows = client.post("/compare", json=body, timeout=60.0)
    assert rows.status_code == 200
    assert [row["strategy"] for row in rows.json()["rows"]] == ["auto"]
