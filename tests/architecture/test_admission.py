"""The page of what may wait, against the numbers by which the service refuses."""

from __future__ import annotations

from app.errors import RETRY_AFTER_S
from app.execution.engine import MIB, Limits, Pool
from app.execution.slot import LONG_IDLE_S
from app.http import admission, bodies, call_threads
from app.jobs import ledger
from app.operations.tasks import service_pools
from app.verbs.jobs import routes as jobs
from tests.architecture.documents import document

OPERATIONS = document("docs/operations.md")
POOLS = service_pools(solve_workers=3, long_workers=2)
HEADING = "What may wait, and what is refused"


def number(value: float) -> str:
    """As the page writes it."""
    return f"{value:,.0f}".replace(",", " ")


def test_every_place_that_waits_has_its_numbers() -> None:
    """In all, of one client, and how many run at a time."""
    solve, read, long = (POOLS[pool] for pool in Pool)
    expected = [
        [f"{bodies.BODIES_HELD} × `SLUICE_MAX_BODY_BYTES`", "half, of an owner", ""],
        [f"{bodies.TRACES_HELD} × `SLUICE_MAX_TRACE_BYTES`", "half, of an owner", ""],
        [number(call_threads.MAX_PENDING_CALLS), "", number(call_threads.READ_THREADS)],
        [number(call_threads.MAX_PENDING_CALLS), "", f"{call_threads.WRITE_THREADS}, on SQLite 1"],
        [
            number(call_threads.MAX_PENDING_PICTURES),
            number(call_threads.MAX_PICTURES_OF_CLIENT),
            "1",
        ],
        [number(solve.max_waiting), number(solve.max_of_requester), "`SLUICE_WORKERS`"],
        [
            number(read.max_waiting),
            number(read.max_of_requester),
            f"{read.slots}, of one client {read.slots - read.left_by_each}",
        ],
        [number(long.max_waiting), number(long.max_of_requester), "`SLUICE_LONG_WORKERS`"],
        [number(ledger.MAX_WAITING_JOBS), "", "as workers are free"],
        [number(jobs.MAX_EVENT_STREAMS), f"{jobs.MAX_EVENT_STREAMS_OF_OWNER} of an owner", ""],
    ]
    assert [row[1:] for row in OPERATIONS.rows(HEADING)] == expected


def test_the_sentences_beside_them_have_their_numbers() -> None:
    waiting = " ".join(OPERATIONS.section(HEADING).split())
    assert f"`Retry-After` of {RETRY_AFTER_S[0]} to {RETRY_AFTER_S[-1]} s" in waiting
    assert f"{admission.BURST} of each worker, more where all of it takes at most" in waiting
    assert f"at most {admission.MAX_WAIT_S:g} s" in waiting
    assert f"for {admission.STANDING_S:g} s and {admission.STANDING_ENDS} ends" in waiting
    assert f"what waits takes {admission.TARGET_S:g} s" in waiting
    assert f"until {admission.CALM_S:g} s pass" in waiting
    assert f"if it takes {admission.SPARE_S * 1e3:g} ms at most" in waiting
    assert f"has waited {call_threads.MAX_READ_WAIT_S:g} s for a worker" in waiting
    assert POOLS[Pool.LONG].left_by_jobs == 1
    workers = " ".join(OPERATIONS.section("Workers").split())
    assert f"end after {LONG_IDLE_S:g} s without" in workers
    assert f"more than {Limits(1.0, 1).result_bytes // MIB} MiB are refused" in workers
    assert f"at niceness {POOLS[Pool.SOLVE].slot.worker.niceness}" in workers


def test_only_who_answers_clients_has_workers_of_its_own_for_long_work() -> None:
    """Jobs alone have as many as for solving."""
    several = {"solve_workers": 3, "long_workers": 5}
    assert service_pools(**several)[Pool.LONG].slots == 5
    assert service_pools(**several, has_clients=False)[Pool.LONG].slots == 3
