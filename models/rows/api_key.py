"""Table `api_key`: who may ask, and what. Of a key's secret only the SHA-256 is stored."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base
from models.records import ApiKeyRecord, KeyScope


class ApiKeyRow(Base):
    """One key of an owner; one with a `parent` is that key's, in a browser that signed in."""

    __tablename__ = "api_key"
    __table_args__ = (
        CheckConstraint("scope IN ('read', 'write', 'admin', 'metrics')", name="scope"),
        Index("uq_api_key_digest", "digest", unique=True),
        Index("ix_api_key_owner", "owner", "id"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    name: Mapped[str]
    digest: Mapped[str]
    scope: Mapped[str]
    parent: Mapped[str | None] = mapped_column(ForeignKey("api_key.id", ondelete="CASCADE"))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    requests_per_s: Mapped[int | None]

    def to_record(self) -> ApiKeyRecord:
        """The record of this row."""
        values = {name: getattr(self, name) for name in ApiKeyRecord.__slots__}
        return ApiKeyRecord(**{**values, "scope": KeyScope(self.scope)})
