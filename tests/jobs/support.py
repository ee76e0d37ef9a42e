"""A runner of a test, and waiting for what it does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from app.jobs.ledger import RunnerOptions, accept_job
from app.jobs.runner import Runner
from models.records import JobRecord
from models.session import Store
from tests.support.in_process_engine import InProcessEngine
from tests.support.job_operations import Scripted, prepare

GUARD_S = 60.0  # against tests that hang; nothing that works comes near
QUICK = RunnerOptions(
    lease_s=10.0,
    beat_s=0.2,
    fence_s=8.0,
    poll_s=0.05,
    show_s=0.02,
    retry_s=0.02,
    crash_wait_s=0.0,
)


@contextmanager
def running(
    store: Store, *, slots: int = 1, max_waiting: int = 1000, **changes: Any
) -> Iterator[Runner]:
    """A runner with an engine of threads, until the block ends."""
    engine = InProcessEngine(slots, max_waiting=max_waiting)
    options = replace(QUICK, **changes)
    runner = Runner(store, engine, prepare, options, memory_bytes=2**30)
    runner.start()
    try:
        yield runner
    finally:
        runner.close()
        engine.close()


def accepted(store: Store, number: int = 1, behaviour: str = "answers", **more: Any) -> JobRecord:
    """A job that does so."""
    return accept_job(store, Scripted(number, behaviour, **more))


def found(store: Store, job: JobRecord) -> JobRecord:
    """The job as it is now."""
    with store.reading() as unit:
        return unit.jobs.get(job.id)


def ended(store: Store, job: JobRecord) -> JobRecord:
    """The job at its end."""
    wait_until(lambda: found(store, job).state.is_terminal)
    return found(store, job)


def answers(store: Store) -> list[int]:
    """The numbers of what was kept."""
    with store.reading() as unit:
        return sorted(answer.message_bytes for answer in unit.answers.list(limit=10**6))


def wait_until(condition: Callable[[], bool], *, every_s: float = 0.01) -> None:
    """Return when it holds."""
    end_s = time.monotonic() + GUARD_S
    while not condition():
        assert time.monotonic() < end_s, "waited in vain"
        time.sleep(every_s)
