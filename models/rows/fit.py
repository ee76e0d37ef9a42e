"""Table `fit`: what was fitted from which traces and how, as documents."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKeyConstraint, Index, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class FitRow(Base):
    """One fit. Its first trace is named here, others in `further_trace`.

    `request` says how it was fitted; null in rows from before there was a choice.
    """

    __tablename__ = "fit"
    __table_args__ = (
        ForeignKeyConstraint(
            ["owner", "trace_digest"],
            ["trace.owner", "trace.digest"],
            name="fk_fit_trace_digest",
        ),
        Index("ix_fit_trace_digest", "owner", "trace_digest"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    trace_digest: Mapped[str]
    document: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    request: Mapped[str | None] = mapped_column(Text)
