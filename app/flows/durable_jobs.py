"""Jobs that outlive the process: accepted, looked at, cancelled. `app.job_runner` runs them."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from app.flows.answers import known_identifier
from domain.errors import Conflict
from models.identifiers import new_id
from models.records import JobRecord, JobState

if TYPE_CHECKING:
    from models.session import Store


class JobKind(StrEnum):
    """What a job does: one optimisation, or a table of them."""

    OPTIMIZE = "optimize"
    COMPARE = "compare"


def accept_job(store: Store, kind: JobKind, request: bytes) -> JobRecord:
    """Store a job; when this returns, it outlives the process."""
    job = JobRecord(id=new_id(), kind=kind, request=request, created_at=datetime.now(UTC))
    with store.unit_of_work() as unit:
        unit.jobs.add(job)
    return job


def get_job(store: Store, identifier: str) -> JobRecord:
    """The job as it stands. Raises NotFound."""
    known_identifier(identifier, "job")
    with store.reading() as unit:
        return unit.jobs.get(identifier)


def cancel_job(store: Store, identifier: str) -> JobRecord:
    """Ask a job to stop. One that waits ends here, one that runs soon, one that has ended stays.

    Raises NotFound.
    """
    known_identifier(identifier, "job")
    with store.unit_of_work() as unit:
        job = unit.jobs.get(identifier)
        if job.state is JobState.QUEUED:
            unit.jobs.finish(identifier, JobState.CANCELLED)
        elif job.state is JobState.RUNNING:
            # Where it has ended in between, that is what was asked for.
            with suppress(Conflict):
                unit.jobs.update(identifier, cancel_requested=True)
        return unit.jobs.get(identifier)
