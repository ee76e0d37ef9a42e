"""Table `fit`: what was fitted from which trace, as one document."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class FitRow(Base):
    """One fit of one trace."""

    __tablename__ = "fit"

    id: Mapped[str] = mapped_column(primary_key=True)
    trace_digest: Mapped[str] = mapped_column(ForeignKey("trace.digest"), index=True)
    document: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
