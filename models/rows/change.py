"""Table `change`: who changed what. Rows are added with what they tell of, and never changed."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base
from models.records import ChangeRecord


class ChangeRow(Base):
    """One change of what an owner has."""

    __tablename__ = "change"
    __table_args__ = (
        Index("ix_change_owner", "owner", "id"),
        Index("ix_change_age", "created_at"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    created_at: Mapped[datetime]
    owner: Mapped[str]
    made_by: Mapped[str]
    key_id: Mapped[str | None]
    request: Mapped[str | None]
    action: Mapped[str]
    subject: Mapped[str]
    before: Mapped[str | None]
    after: Mapped[str | None]

    def to_record(self) -> ChangeRecord:
        """The record of this row."""
        return ChangeRecord(**{name: getattr(self, name) for name in ChangeRecord.__slots__})
