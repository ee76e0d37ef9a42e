"""Jobs for any process: accept, find, read and cancel them. `runner` runs them.

A service need not run jobs to accept them: any runner of the same database with free slots claims
them, and a cancel reaches it through the database.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from app.execution.engine import Pool
from app.execution.limits import MAX_WAITING_JOBS
from app.operations.operation import Operation, OperationKind, Outcome
from app.questions.question import known_identifier
from domain.errors import Overloaded
from models.identifiers import new_id
from models.records import OWNER, JobRecord, JobState

if TYPE_CHECKING:
    from models.session import Store, UnitOfWork

MAX_RUNNING_SHOWN = 64
# Their results are kept in their jobs and nowhere else; they never change.
_KEPT_IN_JOBS = (OperationKind.EXPORT, OperationKind.AUDIT, OperationKind.LAYER)


def accept_job(store: Store, operation: Operation[Any], *, owner: str = OWNER) -> JobRecord:
    """Return the owner's job of this very question: one that is open or done, or a new one.

    A result that is stored already makes a job that is done. When this returns, the job outlives
    the process. Raises Overloaded where too many jobs wait.
    """
    with store.unit_of_work() as unit:
        outcome = operation.stored(unit)
        done = _done(unit, operation, outcome, owner)
        if done is not None:
            return done
        if outcome is not None:
            job = _ended(operation, outcome, owner)
            unit.jobs.add(job)
            return job
        found = _found_open(unit, operation, owner)
        if found is not None:
            return found
        if sum(unit.jobs.waiting(*Pool).values()) >= MAX_WAITING_JOBS:
            raise Overloaded("more jobs are waiting than this service accepts")
        return _open(unit, operation, owner)


def get_job(store: Store, identifier: str) -> JobRecord:
    """Return the job as it stands. Raises NotFound."""
    known_identifier(identifier, "job")
    with store.reading() as unit:
        return unit.jobs.get(identifier)


def shown_job(store: Store, identifier: str) -> JobRecord:
    """Return it without its request, for clients that poll. Raises NotFound."""
    known_identifier(identifier, "job")
    with store.reading() as unit:
        return unit.jobs.shown(identifier)


def running_jobs(store: Store, kind: OperationKind) -> tuple[JobRecord, ...]:
    """Return the jobs of this kind that run now, the newest first; only so many run at once."""
    with store.reading() as unit:
        found = unit.jobs.list(state=JobState.RUNNING, limit=MAX_RUNNING_SHOWN)
    return tuple(job for job in found if job.kind == kind)


def cancel_job(store: Store, identifier: str) -> JobRecord:
    """Ask a job to stop. One that waits ends here, one that runs soon, wherever it runs.

    One that has ended stays as it is. Raises NotFound.
    """
    known_identifier(identifier, "job")
    with store.unit_of_work() as unit:
        return unit.jobs.cancel(identifier)


def _done(
    unit: UnitOfWork, operation: Operation[Any], outcome: Outcome | None, owner: str
) -> JobRecord | None:
    """Return a job that is done and whose result still stands.

    Of results that are stored elsewhere that is so while they are: a table may have been deleted,
    and an answer that was cut off is not given again.
    """
    found = unit.jobs.find(operation.digest, JobState.DONE, owner=owner)
    if found is None:
        return None
    if outcome is None:
        return found if operation.kind in _KEPT_IN_JOBS else None
    return found if found.answer_id == outcome.answer_id else None


def _open(unit: UnitOfWork, operation: Operation[Any], owner: str) -> JobRecord:
    while True:
        job = _new(operation, owner)
        if unit.jobs.add_unless_open(job):
            return job
        found = _found_open(unit, operation, owner)
        if found is not None:  # else it has ended since
            return found


def _found_open(unit: UnitOfWork, operation: Operation[Any], owner: str) -> JobRecord | None:
    return unit.jobs.find(operation.digest, JobState.QUEUED, JobState.RUNNING, owner=owner)


def _new(operation: Operation[Any], owner: str) -> JobRecord:
    return JobRecord(
        id=new_id(),
        kind=operation.kind,
        pool=operation.pool,
        owner=owner,
        request=operation.request,
        request_digest=operation.digest,
        created_at=datetime.now(UTC),
    )


def _ended(operation: Operation[Any], outcome: Outcome, owner: str) -> JobRecord:
    job = _new(operation, owner)
    return JobRecord(
        id=job.id,
        kind=job.kind,
        pool=job.pool,
        owner=owner,
        state=JobState.DONE,
        request=job.request,
        request_digest=job.request_digest,
        created_at=job.created_at,
        finished_at=job.created_at,
        best=outcome.document if outcome.answer_id is None else None,
        answer_id=outcome.answer_id,
    )
