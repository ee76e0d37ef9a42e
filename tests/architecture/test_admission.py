"""The page of what may wait, against the numbers by which the service refuses."""

from __future__ import annotations

from app.execution import local
from app.execution.engine import MIB, Limits, Pool
from app.execution.local import service_pools
from app.http import call_threads
from tests.architecture.documents import document

OPERATIONS = document("docs/operations.md")
HEADING = "What may wait, and what is refused"


def number(value: float) -> str:
    """As the page writes it."""
    return f"{value:,.0f}".replace(",", " ")


def test_every_place_that_waits_has_its_numbers() -> None:
    """In all, of one client, and how many run at a time."""
    solve, long = (service_pools(solve_workers=3)[pool] for pool in (Pool.SOLVE, Pool.LONG))
    expected = [
        [f"{local.BODIES_HELD} × `SLUICE_MAX_BODY_BYTES`", "half, of an owner", ""],
        [f"{local.TRACES_HELD} × `SLUICE_MAX_TRACE_BYTES`", "half, of an owner", ""],
        [number(local.MAX_PENDING_CALLS), "", number(call_threads.READ_THREADS)],
        [number(local.MAX_PENDING_CALLS), "", f"{call_threads.WRITE_THREADS}, on SQLite 1"],
        [number(local.MAX_PENDING_CALLS), "", "1"],
        [number(local.MAX_PENDING_PICTURES), number(local.MAX_PICTURES_OF_CLIENT), "1"],
        [number(solve.max_waiting), number(solve.max_of_requester), "`SLUICE_WORKERS`"],
        [number(long.max_waiting), number(long.max_of_requester), number(long.slots)],
        [number(local.MAX_WAITING_JOBS), "", "as workers are free"],
        [number(local.MAX_EVENT_STREAMS), f"{local.MAX_EVENT_STREAMS_OF_OWNER} of an owner", ""],
    ]
    assert [row[1:] for row in OPERATIONS.rows(HEADING)] == expected


def test_the_sentences_beside_them_have_their_numbers() -> None:
    waiting = " ".join(OPERATIONS.section(HEADING).split())
    here = local.SOLVES_HERE_PER_TASK
    assert f"More than {here} of them" in waiting
    assert f"{here} more for each request there" in waiting
    assert service_pools(solve_workers=1)[Pool.LONG].left_by_jobs == 1
    workers = " ".join(OPERATIONS.section("Workers").split())
    assert f"end after {local.LONG_IDLE_S:g} s without" in workers
    assert f"more than {Limits(1.0, 1).result_bytes // MIB} MiB are refused" in workers
    assert (
        f"at niceness {service_pools(solve_workers=1)[Pool.SOLVE].slot.worker.niceness}" in workers
    )
