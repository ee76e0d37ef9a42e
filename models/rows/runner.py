"""Table `runner`: the processes that run jobs. A job that runs refers to one of them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class RunnerRow(Base):
    """One process. `beats` goes up while it lives; `process` identifies it on its own machine."""

    __tablename__ = "runner"

    name: Mapped[str] = mapped_column(primary_key=True)
    beats: Mapped[int] = mapped_column(BigInteger)
    process: Mapped[str]
    started_at: Mapped[datetime]
