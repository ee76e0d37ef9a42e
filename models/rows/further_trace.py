"""Table `further_trace`: the second and later traces of fits that were made from several."""

from __future__ import annotations

from sqlalchemy import ForeignKey, ForeignKeyConstraint, Index
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class FurtherTraceRow(Base):
    """One of them; `place` counts from 1, because the fit itself names the first trace."""

    __tablename__ = "further_trace"
    __table_args__ = (
        ForeignKeyConstraint(
            ["owner", "trace_digest"],
            ["trace.owner", "trace.digest"],
            name="fk_further_trace_trace_digest",
        ),
        Index("ix_further_trace_trace_digest", "owner", "trace_digest"),
    )

    fit_id: Mapped[str] = mapped_column(ForeignKey("fit.id", ondelete="CASCADE"), primary_key=True)
    place: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    owner: Mapped[str]
    trace_digest: Mapped[str]
