"""Durable jobs. Every change is one guarded UPDATE, so that of two writers one wins."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Unpack

from sqlalchemy import ColumnElement, CursorResult, Select, Update, or_, select, update
from sqlalchemy.orm import Session

from domain.errors import Conflict, NotFound
from models.base import utc_now
from models.records import JobChanges, JobRecord, JobState
from models.repositories.statements import check_text, flush, is_storable
from models.rows.job import JobRow

Jobs = list[JobRecord]
_OPEN = (JobState.QUEUED.value, JobState.RUNNING.value)


class JobRepository:
    """Jobs by identifier. A job that has ended never changes again."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, record: JobRecord) -> None:
        """Store a job. Raises Conflict where the identifier is taken or its answer unknown."""
        check_text("kind", record.kind)
        row = JobRow.from_record(record)
        self._session.add(row)
        flush(self._session, conflict=f"job {record.id!r} contradicts what is stored")
        self._session.expunge(row)

    def get(self, job_id: str) -> JobRecord:
        """The job as it is now. Raises NotFound."""
        row = None
        if is_storable(job_id):
            row = self._session.scalars(_asked().where(JobRow.id == job_id)).first()
        if row is None:
            raise _unknown(job_id)
        return row.to_record()

    def shown(self, job_id: str) -> JobRecord:
        """The same without its request, which may be as long as a body. Raises NotFound."""
        columns = [getattr(JobRow, name) for name in JobRecord.__slots__ if name != "request"]
        if is_storable(job_id):
            found = self._session.execute(select(*columns).where(JobRow.id == job_id)).mappings()
            for values in found:
                return JobRecord(**{**values, "state": JobState(values["state"]), "request": b""})
        raise _unknown(job_id)

    def list(self, *, state: JobState | None = None, after: str | None = None, limit: int) -> Jobs:
        """A page, newest first, beginning behind the identifier `after`."""
        statement = _asked().order_by(JobRow.id.desc()).limit(limit)
        if state is not None:
            statement = statement.where(JobRow.state == state)
        if after is not None:
            if not is_storable(after):
                return []
            statement = statement.where(JobRow.id < after)
        return [row.to_record() for row in self._session.scalars(statement)]

    def find(self, request_digest: str, *states: JobState) -> JobRecord | None:
        """The newest job of this question in one of these states that nobody asked to stop."""
        if not is_storable(request_digest):
            return None
        statement = _asked().order_by(JobRow.id.desc()).limit(1)
        found = self._session.scalars(
            statement.where(
                JobRow.request_digest == request_digest,
                JobRow.state.in_(states),
                JobRow.cancel_requested.is_(False),
            )
        ).first()
        return None if found is None else found.to_record()

    def runners(self) -> set[str | None]:
        """Of the jobs that run; None of those whose process had no name."""
        running = select(JobRow.runner).where(JobRow.state == JobState.RUNNING).distinct()
        return set(self._session.scalars(running))

    def take_up(self, gone: Iterable[str | None]) -> dict[str, str]:
        """Queue what ran in processes that are gone; the kinds of all queued jobs, by identifier.

        The oldest first. Their requests stay where they are: of many jobs they are long.
        """
        left = update(JobRow).where(JobRow.state == JobState.RUNNING, _is_one_of(gone))
        self._execute(left, {"state": JobState.QUEUED})
        queued = select(JobRow.id, JobRow.kind).where(JobRow.state == JobState.QUEUED)
        return dict(iter(self._session.execute(queued.order_by(JobRow.id))))

    def release(self, job: JobRecord) -> bool:
        """Put a claimed job back into the queue as if it had not been claimed.

        False, with nothing changed, where it has ended or was claimed again since.
        """
        running = _guarded(job.id, (JobState.RUNNING,))
        guarded = running.where(JobRow.attempts == job.attempts)
        values: dict[str, Any] = {"state": JobState.QUEUED, "started_at": None, "runner": None}
        return self._execute(guarded, {**values, "attempts": job.attempts - 1})

    def claim(self, job_id: str, *, runner: str | None = None) -> bool:
        """Take a queued job to run it: of several takers exactly one is told True."""
        values = {
            "state": JobState.RUNNING,
            "runner": runner,
            "started_at": utc_now(),
            "attempts": JobRow.attempts + 1,
        }
        return self._change(job_id, (JobState.QUEUED,), values)

    def update(self, job_id: str, **changes: Unpack[JobChanges]) -> JobRecord:
        """Change a job that has not ended. Raises NotFound, and Conflict where it has ended.

        The state may be set to queued (to run it again) or running; `finish` ends a job.
        """
        state = changes.get("state")
        if state is not None and state.is_terminal:
            raise Conflict("a job is ended by finish, not by an update")
        if not self._change(job_id, _OPEN, dict(changes)):
            ended = self.get(job_id)
            raise Conflict(f"the job has already ended: {ended.state}")
        return self.get(job_id)

    def finish(
        self,
        job_id: str,
        state: JobState,
        *,
        answer_id: str | None = None,
        error: bytes | None = None,
        finished_at: datetime | None = None,
    ) -> bool:
        """End a job; False, with nothing changed, where it has already ended.

        Raises NotFound for an unknown job, Conflict for a state that is no end. Store the answer
        first, in the same unit of work.
        """
        if not JobState(state).is_terminal:
            raise Conflict(f"a job does not end as {state}")
        values = {
            "state": state,
            "answer_id": answer_id,
            "error": error,
            "finished_at": finished_at or utc_now(),
        }
        if self._change(job_id, _OPEN, values):
            return True
        self.get(job_id)
        return False

    def _change(self, job_id: str, states: tuple[str, ...], values: dict[str, Any]) -> bool:
        if not is_storable(job_id):
            return False
        if not values:
            return self.get(job_id).state in states
        return self._execute(_guarded(job_id, states), values)

    def _execute(self, guarded: Update, values: dict[str, Any]) -> bool:
        result = self._session.execute(
            guarded.values(**values).execution_options(synchronize_session=False)
        )
        assert isinstance(result, CursorResult)
        return bool(result.rowcount)


def _unknown(job_id: str) -> NotFound:
    return NotFound("there is no job", field="id", subject=job_id)


def _is_one_of(runners: Iterable[str | None]) -> ColumnElement[bool]:
    names = set(runners)
    named = JobRow.runner.in_(names - {None})
    return or_(named, JobRow.runner.is_(None)) if None in names else named


def _guarded(job_id: str, states: tuple[str, ...]) -> Update:
    return update(JobRow).where(JobRow.id == job_id, JobRow.state.in_(states))


def _asked() -> Select[JobRow]:
    # What an UPDATE of another writer changed must be seen, not what this session read before.
    return select(JobRow).execution_options(populate_existing=True)
