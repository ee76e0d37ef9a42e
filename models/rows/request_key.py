"""Table `request_key`: requests that named a key, and what was answered to each."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Index
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class RequestKeyRow(Base):
    """One key of an owner. Without a `status` its request is under way in the process that has
    `token`, which was heard of last at `touched_at`.
    """

    __tablename__ = "request_key"
    __table_args__ = (Index("ix_request_key_age", "created_at"),)

    owner: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    token: Mapped[str]
    process: Mapped[str]
    created_at: Mapped[datetime]
    touched_at: Mapped[datetime]
    fingerprint: Mapped[str | None]
    body_bytes: Mapped[int | None] = mapped_column(BigInteger)
    status: Mapped[int | None]
    headers: Mapped[bytes | None]
    body: Mapped[bytes | None]
