"""Table `job`: durable jobs. The database itself refuses states that contradict each other."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base
from models.records import JobRecord, JobState

_IS_QUEUED = text("state = 'queued'")
_HAS_RUNNER = text("runner IS NOT NULL")
_HAS_ANSWER = text("answer_id IS NOT NULL")
_IS_OPEN_QUESTION = text("state IN ('queued', 'running') AND NOT cancel_requested")


class JobRow(Base):
    """One job."""

    __tablename__ = "job"
    __table_args__ = (
        CheckConstraint(
            "state IN ('queued', 'running', 'done', 'failed', 'cancelled')", name="state"
        ),
        CheckConstraint(
            "(state IN ('done', 'failed', 'cancelled')) = (finished_at IS NOT NULL)", name="end"
        ),
        CheckConstraint("(state = 'running') = (runner IS NOT NULL)", name="runner"),
        CheckConstraint("NOT (state = 'queued' AND cancel_requested)", name="cancel"),
        Index("ix_job_state", "state", "id"),
        Index("ix_job_request_digest", "request_digest", "id"),
        Index(
            "ix_job_queued",
            "pool",
            "owner",
            "id",
            "state",  # so that SQLite need not look into the rows
            sqlite_where=_IS_QUEUED,
            postgresql_where=_IS_QUEUED,
        ),
        Index(
            "ix_job_runner",
            "runner",
            "owner",
            sqlite_where=_HAS_RUNNER,
            postgresql_where=_HAS_RUNNER,
        ),
        # Whoever deletes an answer looks for the jobs that name it.
        Index(
            "ix_job_answer",
            "answer_id",
            sqlite_where=_HAS_ANSWER,
            postgresql_where=_HAS_ANSWER,
        ),
        Index(
            "uq_job_open_question",
            "owner",
            "request_digest",
            unique=True,
            sqlite_where=_IS_OPEN_QUESTION,
            postgresql_where=_IS_OPEN_QUESTION,
        ),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    pool: Mapped[str]
    owner: Mapped[str]
    state: Mapped[str]
    request: Mapped[bytes]
    request_digest: Mapped[str | None]
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    not_before: Mapped[datetime | None]
    claim: Mapped[int]
    crashes: Mapped[int]
    losses: Mapped[int]
    best_latency_us: Mapped[float | None]
    lower_bound_us: Mapped[float | None]
    best: Mapped[bytes | None]
    history: Mapped[bytes | None]
    steps_done: Mapped[int | None]
    steps_total: Mapped[int | None]
    answer_id: Mapped[str | None] = mapped_column(ForeignKey("answer.id"))
    error: Mapped[bytes | None]
    cancel_requested: Mapped[bool]
    runner: Mapped[str | None] = mapped_column(ForeignKey("runner.name"))
    trace: Mapped[str | None]

    @classmethod
    def from_record(cls, record: JobRecord) -> JobRow:
        """The row of a record."""
        return cls(**values_of(record))

    def to_record(self) -> JobRecord:
        """The record of this row."""
        values = {name: getattr(self, name) for name in JobRecord.__slots__}
        return JobRecord(**{**values, "state": JobState(self.state)})


def values_of(record: JobRecord) -> dict[str, object]:
    """The columns of a record."""
    values = {name: getattr(record, name) for name in JobRecord.__slots__}
    return {**values, "state": record.state.value}
