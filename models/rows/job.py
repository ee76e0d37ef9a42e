"""Table `job`: durable jobs. The database itself refuses an ended job without an end, and back."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base
from models.records import JobRecord, JobState


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
        Index("ix_job_state", "state", "id"),
        Index("ix_job_request_digest", "request_digest", "id"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    state: Mapped[str]
    request: Mapped[bytes]
    request_digest: Mapped[str | None]
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    attempts: Mapped[int]
    best_latency_us: Mapped[float | None]
    lower_bound_us: Mapped[float | None]
    best: Mapped[bytes | None]
    history: Mapped[bytes | None]
    steps_done: Mapped[int | None]
    steps_total: Mapped[int | None]
    answer_id: Mapped[str | None] = mapped_column(ForeignKey("answer.id"))
    error: Mapped[bytes | None]
    cancel_requested: Mapped[bool]
    runner: Mapped[str | None]

    @classmethod
    def from_record(cls, record: JobRecord) -> JobRow:
        """The row of a record."""
        values = {name: getattr(record, name) for name in JobRecord.__slots__}
        return cls(**{**values, "state": record.state.value})

    def to_record(self) -> JobRecord:
        """The record of this row."""
        values = {name: getattr(self, name) for name in JobRecord.__slots__}
        return JobRecord(**{**values, "state": JobState(self.state)})
