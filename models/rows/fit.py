"""Table `fit`: what was fitted from which traces and how, as documents."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class FitRow(Base):
    """One fit. Its first trace is named here, others in `further_trace`.

    `request` says how it was fitted; null in rows from before there was a choice.
    """

    __tablename__ = "fit"

    id: Mapped[str] = mapped_column(primary_key=True)
    trace_digest: Mapped[str] = mapped_column(ForeignKey("trace.digest"), index=True)
    document: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    request: Mapped[str | None] = mapped_column(Text)
