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


MOST_RUNNING = 64


class JobKind(StrEnum):
    """What a job does: an optimisation or many; a plan table, a configuration, an audit."""

    OPTIMIZE = "optimize"
    COMPARE = "compare"
    TABLE = "table"
    EXPORT = "export"
    AUDIT = "audit"


def accept_job(store: Store, kind: JobKind, request: bytes) -> JobRecord:
    """Store a job; when this returns, it outlives the process."""
    job = JobRecord(id=new_id(), kind=kind, request=request, created_at=datetime.now(UTC))
    with store.unit_of_work() as unit:
        unit.jobs.add(job)
    return job


def accept_once(
    store: Store, kind: JobKind, request: bytes, digest: str, *, document: bytes | None
) -> tuple[JobRecord, bool]:
    """A job of this question that is open or done, or a new one; whether it is new.

    With a `document` a new one is done. Without, a compilation that is done is not taken: its table
    was deleted since.
    """
    states = [JobState.QUEUED, JobState.RUNNING, JobState.DONE]
    if kind is JobKind.TABLE and document is None:
        states.remove(JobState.DONE)
    now = datetime.now(UTC)
    job = JobRecord(id=new_id(), kind=kind, request=request, request_digest=digest, created_at=now)
    with store.unit_of_work() as unit:
        found = unit.jobs.find(digest, *states)
        if found is not None:
            return found, False
        unit.jobs.add(job)
        if document is not None:
            unit.jobs.update(job.id, best=document)
            unit.jobs.finish(job.id, JobState.DONE)
        return unit.jobs.get(job.id), True


def get_job(store: Store, identifier: str) -> JobRecord:
    """The job as it stands. Raises NotFound."""
    known_identifier(identifier, "job")
    with store.reading() as unit:
        return unit.jobs.get(identifier)


def shown_job(store: Store, identifier: str) -> JobRecord:
    """The job as it stands, without its request: for who looks again and again. Raises NotFound."""
    known_identifier(identifier, "job")
    with store.reading() as unit:
        return unit.jobs.shown(identifier)


def running_jobs(store: Store, kind: JobKind) -> tuple[JobRecord, ...]:
    """The jobs of this kind that run now, the newest first; only so many run at once."""
    with store.reading() as unit:
        found = unit.jobs.list(state=JobState.RUNNING, limit=MOST_RUNNING)
    return tuple(job for job in found if job.kind == kind)


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
