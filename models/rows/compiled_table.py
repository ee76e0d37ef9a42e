"""Table `compiled_table`: an owner's plan tables by the digest of their file, in narrow rows.

The files are in `compiled_table_file`. A file that somebody reads by its digest stays when its
profile goes: only the reference to the revision is taken away first, by the repository. Pages run
newest first over `id`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKeyConstraint, Index
from sqlalchemy.orm import Mapped, mapped_column

from domain.problem import FragmentLimits
from models.base import Base
from models.records import TableRecord, TableSummary

_LIMITS = tuple(FragmentLimits.__slots__)
# What is a column here, of that what a page shows.
_COLUMNS = tuple(set(TableSummary.__slots__) - {"limits", "is_active"})


class CompiledTableRow(Base):
    """One compiled plan table without its file; sizes in bytes."""

    __tablename__ = "compiled_table"
    __table_args__ = (
        ForeignKeyConstraint(
            ["owner", "profile_name", "profile_revision"],
            ["revision.owner", "revision.profile_name", "revision.number"],
            name="fk_compiled_table_profile_name",
        ),
        Index("ix_compiled_table_question", "owner", "question_digest", "id"),
        Index("ix_compiled_table_profile", "owner", "profile_name", "id"),
    )

    owner: Mapped[str] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(primary_key=True)
    id: Mapped[str]
    created_at: Mapped[datetime]
    question_digest: Mapped[str]
    profile_name: Mapped[str | None]
    profile_revision: Mapped[int | None]
    min_message_bytes: Mapped[int] = mapped_column(BigInteger)
    max_message_bytes: Mapped[int] = mapped_column(BigInteger)
    relative_gap: Mapped[float]
    min_fragment_bytes: Mapped[int] = mapped_column(BigInteger)
    max_fragment_bytes: Mapped[int | None] = mapped_column(BigInteger)
    alignment_bytes: Mapped[int] = mapped_column(BigInteger)
    max_fragments: Mapped[int | None] = mapped_column(BigInteger)
    fragment_cap: Mapped[int] = mapped_column(BigInteger)
    worst_gap: Mapped[float]
    file_bytes: Mapped[int] = mapped_column(BigInteger)

    def to_summary(self, *, is_active: bool) -> TableSummary:
        """What a page shows of it."""
        return TableSummary(**self._values(), is_active=is_active)

    def to_record(self, file: bytes, document: bytes) -> TableRecord:
        """All of it."""
        return TableRecord(
            **self._values(), question_digest=self.question_digest, file=file, document=document
        )

    def _values(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in _COLUMNS}
        limits = FragmentLimits(**{name: getattr(self, name) for name in _LIMITS})
        return {**values, "limits": limits}


def values_of(owner: str, record: TableRecord) -> dict[str, object]:
    """The columns of the row of an owner's record."""
    values = {name: getattr(record, name) for name in (*_COLUMNS, "question_digest")}
    limits = {name: getattr(record.limits, name) for name in _LIMITS}
    return {"owner": owner, **values, **limits}
