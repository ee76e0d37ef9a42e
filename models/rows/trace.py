"""Table `trace`: an owner's files of measurements as they came in, under their digest."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class TraceRow(Base):
    """One file: `digest` is the SHA-256 of the raw content, `compressed` its zlib form."""

    __tablename__ = "trace"

    owner: Mapped[str] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    content_bytes: Mapped[int] = mapped_column(BigInteger)
    compressed: Mapped[bytes]
    created_at: Mapped[datetime]
