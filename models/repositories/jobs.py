"""Durable jobs. Every change is one guarded UPDATE, so that of two writers one wins.

A job is claimed in the database by a runner that has a slot for it. Its claim number goes up with
each claim and never down, and guards every later write: of a runner that lost its job, for whatever
reason and however late it writes, nothing is kept.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Unpack

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    Update,
    and_,
    case,
    func,
    literal,
    literal_column,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.orm import Session

from domain.errors import Conflict, NotFound
from models.base import utc_now
from models.errors import Fenced
from models.records import (
    MAX_CRASHES,
    MAX_LOSSES,
    OWNER,
    Blame,
    JobChanges,
    JobEnd,
    JobRecord,
    JobState,
    Waiting,
)
from models.repositories.changes import note_change
from models.repositories.statements import (
    check_text,
    flush,
    insert_if_absent,
    is_storable,
    mark_changed_jobs,
    note_job_end,
)
from models.repositories.stored_bytes import lengths_of_result, table_of, tally_of
from models.rows.job import JobRow, values_of

JOB_CHANNEL = "sluice_job"  # on which PostgreSQL notifies runners of jobs to run and to stop

Jobs = list[JobRecord]

# Who has jobs in this queue: the index is entered once an owner, however many jobs they have. Whose
# jobs run the least comes first, then whose job has waited longest.
_OWNERS_IN_TURN = text(
    """
    WITH RECURSIVE waiting (owner) AS (
        SELECT min(owner) FROM job WHERE state = 'queued' AND pool = :pool
        UNION ALL
        SELECT (SELECT min(job.owner) FROM job
                WHERE job.state = 'queued' AND job.pool = :pool AND job.owner > waiting.owner)
        FROM waiting WHERE waiting.owner IS NOT NULL
    )
    SELECT owner FROM waiting WHERE owner IS NOT NULL ORDER BY
        (SELECT count(*) FROM job WHERE job.runner IS NOT NULL AND job.owner = waiting.owner),
        (SELECT min(job.id) FROM job
         WHERE job.state = 'queued' AND job.pool = :pool AND job.owner = waiting.owner)
    """
)


# Written out, not bound: partial indexes are used only where the planner sees the state itself.
_IDENTIFIERS = 500  # in one statement: databases take so many parameters and not many more
_IS_QUEUED = JobRow.state == literal_column("'queued'")
_IS_RUNNING = JobRow.state == literal_column("'running'")
# What came of a job counts as stored from its end on. What a job is now is looked at here, and not
# by the database: in RETURNING, SQLite 3.40 says of a null in `finished_at` that it IS NOT NULL.
_ENDED = (JobRow.state, *lengths_of_result(table_of(JobRow)))


class JobRepository:
    """Jobs by identifier, those of an owner where anybody asks; runners have those of all.

    A job that has ended never changes again.
    """

    def __init__(self, session: Session, owner: str = OWNER) -> None:
        self._session = session
        self._owner = owner

    def add(self, record: JobRecord) -> None:
        """Store a job.

        Raises Conflict where the identifier is taken, its answer or runner unknown, or another job
        of the same question open.
        """
        check_text("kind", record.kind)
        row = JobRow.from_record(record)
        self._session.add(row)
        flush(self._session, conflict=f"job {record.id!r} contradicts what is stored")
        self._session.expunge(row)
        self._note_start(record)
        self._wake_runners()

    def add_unless_open(self, record: JobRecord) -> bool:
        """Store a job unless one of its owner's and of its question is open."""
        check_text("kind", record.kind)
        if not insert_if_absent(self._session, JobRow, values_of(record)):
            return False
        self._note_start(record)
        self._wake_runners()
        return True

    def get(self, job_id: str) -> JobRecord:
        """Return the job as it is now. Raises NotFound."""
        row = None
        if is_storable(job_id):
            row = self._session.scalars(self._mine().where(JobRow.id == job_id)).first()
        if row is None:
            raise _unknown(job_id)
        return row.to_record()

    def shown(self, job_id: str) -> JobRecord:
        """Return it without its request, which may be as long as a body. Raises NotFound."""
        columns = [getattr(JobRow, name) for name in JobRecord.__slots__ if name != "request"]
        if is_storable(job_id):
            asked = select(*columns).where(JobRow.id == job_id, JobRow.owner == self._owner)
            for values in self._session.execute(asked).mappings():
                return JobRecord(**{**values, "state": JobState(values["state"]), "request": b""})
        raise _unknown(job_id)

    def list(self, *, state: JobState | None = None, after: str | None = None, limit: int) -> Jobs:
        """Return a page, newest first, beginning behind the identifier `after`."""
        statement = self._mine().order_by(JobRow.id.desc()).limit(limit)
        if state is not None:
            statement = statement.where(JobRow.state == state)
        if after is not None:
            if not is_storable(after):
                return []
            statement = statement.where(JobRow.id < after)
        return [row.to_record() for row in self._session.scalars(statement)]

    def find(self, request_digest: str, *states: JobState) -> JobRecord | None:
        """Return the owner's newest job of this question in one of these states.

        One that somebody asked to stop is passed over.
        """
        if not is_storable(request_digest):
            return None
        statement = self._mine().order_by(JobRow.id.desc()).limit(1)
        found = self._session.scalars(
            statement.where(
                JobRow.request_digest == request_digest,
                JobRow.state.in_(states),
                JobRow.cancel_requested.is_(False),
            )
        ).first()
        return None if found is None else found.to_record()

    def ended(self, identifiers: Sequence[str]) -> Jobs:
        """Return those of the owner's jobs with these identifiers that have ended."""
        found: Jobs = []
        for start in range(0, len(identifiers), _IDENTIFIERS):
            some = JobRow.id.in_(identifiers[start : start + _IDENTIFIERS])
            are_ended = JobRow.state.not_in((JobState.QUEUED.value, JobState.RUNNING.value))
            rows = self._session.scalars(self._mine().where(some, are_ended))
            found += [row.to_record() for row in rows]
        return found

    def waiting(self, *pools: str) -> dict[str, int]:
        """Return how many jobs wait in each of these pools; those without one are left out."""
        counts = [
            select(func.count()).where(_IS_QUEUED, JobRow.pool == pool).scalar_subquery()
            for pool in pools
        ]
        found = self._session.execute(select(*counts)).one()
        return {pool: number for pool, number in zip(pools, found, strict=True) if number}

    def waiting_of_owner(self) -> int:
        """Return how many jobs of the owner wait."""
        waiting = select(func.count()).where(_IS_QUEUED, JobRow.owner == self._owner)
        return self._session.scalar(waiting) or 0

    def waiting_by_kind(self) -> tuple[Waiting, ...]:
        """Return what waits of each kind, and since when."""
        found = (
            select(JobRow.kind, func.count(), func.min(JobRow.created_at))
            .where(_IS_QUEUED)
            .group_by(JobRow.kind)
            .order_by(JobRow.kind)
        )
        return tuple(Waiting(*row) for row in self._session.execute(found))

    # --- by anybody -------------------------------------------------------------------------------

    def cancel(self, job_id: str) -> JobRecord:
        """Ask a job to stop: one that waits ends at once, one that has ended stays as it is.

        Raises NotFound.
        """
        is_queued, now = JobRow.state == JobState.QUEUED, utc_now()
        values = {
            "cancel_requested": True,
            "finished_at": case((is_queued, literal(now, JobRow.finished_at.type))),
            "state": case((is_queued, JobState.CANCELLED.value), else_=JobRow.state),
        }
        is_open = JobRow.state.in_((JobState.QUEUED.value, JobState.RUNNING.value))
        if is_storable(job_id):
            mine = JobRow.id == job_id, JobRow.owner == self._owner
            stored = self._execute(update(JobRow).where(*mine, is_open), values)
            if stored is not None:
                note_change(self._session, self._owner, "job.cancel", job_id)
                tally_of(self._session).change(self._owner, stored)
        job = self.get(job_id)
        if job.state is JobState.RUNNING:
            self._wake_runners()
        elif job.finished_at == now:
            end = JobEnd(job.kind, job.state, id=job.id, trace=job.trace, created_at=job.created_at)
            note_job_end(self._session, end)
        return job

    # --- by runners -------------------------------------------------------------------------------

    def claim(self, runner: str, *, pool: str = "solve") -> JobRecord | None:
        """Take the job whose turn it is, to run it; None where none waits that may be begun.

        Owners take turns: whose jobs run the least comes first, then the oldest job. Of several
        claimers each gets another job. Raises Conflict where the runner is not registered.
        """
        for owner in self._session.scalars(_OWNERS_IN_TURN, {"pool": pool}).all():
            job = self._claim_of(owner, runner, pool)
            if job is not None:
                return job
        return None

    def show(self, job: JobRecord, **changes: Unpack[JobChanges]) -> bool:
        """Write how far a claimed job is; return whether somebody asked it to stop.

        Raises Fenced.
        """
        values: dict[str, Any] = dict(changes) or {"claim": JobRow.claim}
        guarded = _owned(job).values(**values).returning(JobRow.cancel_requested)
        found = self._session.execute(_unsynchronized(guarded)).scalar_one_or_none()
        if found is None:
            raise Fenced(job.id)
        return bool(found)

    def to_cancel(self, runner: str) -> set[str]:
        """Return which jobs of a runner somebody asked to stop."""
        asked = select(JobRow.id).where(
            _IS_RUNNING,
            JobRow.runner == runner,
            JobRow.cancel_requested.is_(True),
        )
        return set(self._session.scalars(asked))

    def give_back(
        self, job: JobRecord, blame: Blame = Blame.NONE, *, error: bytes = b"", wait_s: float = 0.0
    ) -> JobState:
        """Put a claimed job back into the queue, to be begun not before `wait_s` from now.

        It ends in place of that as cancelled where somebody asked it to stop, and as failed with
        this error where the blame is the last that it may have. Returns its state. Raises Fenced.
        """
        values = _given_back(blame, error)
        values["not_before"] = self._now(timedelta(seconds=wait_s)) if wait_s else None
        guarded = _owned(job).values(**values).returning(*_ENDED)
        found = self._session.execute(_unsynchronized(guarded)).one_or_none()
        if found is None:
            raise Fenced(job.id)
        self._wake_runners()
        state = JobState(found[0])
        self._note_end(job, state, error)
        tally_of(self._session).change(job.owner, _stored_at_end(*found))
        return state

    def recover(self, runner: str, *, error: bytes) -> int:
        """Give back all that a runner has which is gone, as a loss; return how many jobs that is.

        `error` is of those that are lost too often.
        """
        running = update(JobRow).where(_IS_RUNNING, JobRow.runner == runner)
        given_back = running.values({**_given_back(Blame.LOSS, error), "not_before": None})
        names = ("id", "kind", "owner", "trace", "created_at", "started_at")
        changed = given_back.returning(*_ENDED, *(getattr(JobRow, name) for name in names))
        recovered = self._session.execute(_unsynchronized(changed)).all()
        for job in recovered:
            self._note_end(job, JobState(job.state), error)
            tally_of(self._session).change(job.owner, _stored_at_end(*job[: len(_ENDED)]))
        if recovered:
            self._wake_runners()
        return len(recovered)

    def finish(
        self,
        job: JobRecord,
        state: JobState,
        changes: JobChanges | None = None,
        *,
        answer_id: str | None = None,
        error: bytes | None = None,
        request_digest: str | None = None,
    ) -> None:
        """End a claimed job; store its answer first, in the same unit of work.

        `request_digest` is of the question that it was run for, where that is another one than it
        was accepted for. Raises Fenced, Conflict for a state that is no end.
        """
        if not JobState(state).is_terminal:
            raise Conflict(f"a job does not end as {state}")
        values: dict[str, Any] = {
            **(changes or {}),
            "state": state,
            "runner": None,
            "answer_id": answer_id,
            "error": error,
            "request_digest": request_digest or job.request_digest,
            "finished_at": utc_now(),
        }
        stored = self._execute(_owned(job), values)
        if stored is None:
            raise Fenced(job.id)
        self._note_end(job, state, error)
        # A job that failed or was cancelled has to end, whatever it leaves.
        is_done = state == JobState.DONE
        tally_of(self._session).change(job.owner, stored, is_refusable=is_done)

    def _note_start(self, job: JobRecord) -> None:
        results = () if job.finished_at is None else (job.best, job.history, job.error)
        tally_of(self._session).store(job.owner, job.request, *results)
        note_change(self._session, job.owner, "job.start", job.id, after=job.request_digest)

    def _note_end(
        self,
        job: JobRecord | Row[Any],
        state: JobState,
        error: bytes | None,
    ) -> None:
        if not state.is_terminal:
            return
        code = _code_of(error) if error and state is JobState.FAILED else ""
        began = job.started_at
        run_s = None if began is None else (utc_now() - began).total_seconds()
        end = JobEnd(job.kind, state, code, run_s, job.id, job.trace, job.created_at)
        note_job_end(self._session, end)

    def _mine(self) -> Select[JobRow]:
        # What an UPDATE of another writer changed must be seen, not what this session read before.
        mine = select(JobRow).where(JobRow.owner == self._owner)
        return mine.execution_options(populate_existing=True)

    # --- in parts ---------------------------------------------------------------------------------

    def _claim_of(self, owner: str, runner: str, pool: str) -> JobRecord | None:
        may_begin = or_(JobRow.not_before.is_(None), JobRow.not_before <= self._now())
        oldest = (
            select(JobRow.id)
            .where(_IS_QUEUED, JobRow.pool == pool, JobRow.owner == owner)
            .where(may_begin)
            .order_by(JobRow.id)
            .limit(1)
            .with_for_update(skip_locked=True)
            # Materialised: a planner that repeats the subquery would claim more than one.
            .cte("oldest")
            .prefix_with("MATERIALIZED")
        )
        claims = (
            update(JobRow)
            .where(JobRow.id.in_(select(oldest.c.id)), _IS_QUEUED)
            .values(
                state=JobState.RUNNING,
                runner=runner,
                claim=JobRow.claim + 1,
                started_at=utc_now(),
                not_before=None,
            )
            .returning(JobRow)
        )
        claimed = self._session.scalars(
            _unsynchronized(claims), execution_options={"populate_existing": True}
        ).first()
        return None if claimed is None else claimed.to_record()

    def _now(self, later: timedelta = timedelta()) -> ColumnElement[Any]:
        """Return the clock that `not_before` is read by: the server's, where there is one."""
        if self._is_on_postgresql:
            return func.now() + literal(later)
        return literal(utc_now() + later, JobRow.not_before.type)

    def _wake_runners(self) -> None:
        mark_changed_jobs(self._session)
        if self._is_on_postgresql:
            self._session.execute(select(func.pg_notify(JOB_CHANNEL, "")))

    @property
    def _is_on_postgresql(self) -> bool:
        return self._session.get_bind().dialect.name == "postgresql"

    def _execute(self, guarded: Update, values: dict[str, Any]) -> int | None:
        """Return how many bytes came of the job, where it has ended; None where none is changed."""
        changed = guarded.values(**values).returning(*_ENDED)
        found = self._session.execute(_unsynchronized(changed)).one_or_none()
        return None if found is None else _stored_at_end(*found)


def _given_back(blame: Blame, error: bytes) -> dict[str, Any]:
    crashes = JobRow.crashes + int(blame is Blame.CRASH)
    losses = JobRow.losses + int(blame is Blame.LOSS)
    asked = JobRow.cancel_requested.is_(True)
    is_last: ColumnElement[bool] = or_(crashes >= MAX_CRASHES, losses >= MAX_LOSSES)
    ends = or_(asked, is_last)
    return {
        "crashes": crashes,
        "losses": losses,
        "runner": None,
        "state": case(
            (asked, JobState.CANCELLED.value),
            (is_last, JobState.FAILED.value),
            else_=JobState.QUEUED.value,
        ),
        "started_at": case((ends, JobRow.started_at)),
        "finished_at": case((ends, literal(utc_now(), JobRow.finished_at.type))),
        "error": case((and_(~asked, is_last), error)),
    }


def _stored_at_end(state: str, *lengths: int | None) -> int:
    return sum(filter(None, lengths)) if JobState(state).is_terminal else 0


def _code_of(error: bytes) -> str:
    """Return the code of a problem document, "" where it is none."""
    try:
        return str(json.loads(error)["code"])
    except (ValueError, LookupError, TypeError):
        return ""


def _owned(job: JobRecord) -> Update:
    """Return the guard of a claim."""
    return update(JobRow).where(JobRow.id == job.id, JobRow.claim == job.claim, _IS_RUNNING)


def _unknown(job_id: str) -> NotFound:
    return NotFound("there is no job", field="id", subject=job_id)


def _unsynchronized(statement: Any) -> Any:
    return statement.execution_options(synchronize_session=False)
