"""Table `revision`: the immutable revisions of hardware profiles.

A trigger of the database refuses every UPDATE; revisions go only together with their profile.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import ForeignKey, Row, Text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from domain.profile import Origin, Provenance, Revision
from models.base import Base
from models.documents import dump_model, load_model, load_verification
from models.rows.verification import VerificationRow

_KEPT = 64  # models that were read last, with what was computed of them


class RevisionRow(Base):
    """One revision: the model as one document (of either kind), and where it came from."""

    __tablename__ = "revision"

    profile_name: Mapped[str] = mapped_column(
        ForeignKey("profile.name", ondelete="CASCADE"), primary_key=True
    )
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    pipeline: Mapped[str] = mapped_column(Text)
    origin: Mapped[str]
    detail: Mapped[str] = mapped_column(Text)
    fit_id: Mapped[str | None] = mapped_column(ForeignKey("fit.id"))
    created_at: Mapped[datetime]
    verification: Mapped[VerificationRow | None] = relationship(lazy="joined", viewonly=True)

    @classmethod
    def from_domain(cls, revision: Revision) -> RevisionRow:
        """The row of a revision."""
        return cls(
            profile_name=revision.profile,
            number=revision.number,
            pipeline=dump_model(revision.model),
            origin=revision.provenance.origin.value,
            detail=revision.provenance.detail,
            fit_id=revision.provenance.fit_id,
            created_at=revision.created_at,
        )

    def to_domain(self) -> Revision:
        """The revision of this row."""
        return revision_of(self, self.verification.document if self.verification else None)


def revision_of(row: RevisionRow | Row[Any], verification: str | None) -> Revision:
    """The revision of a row, or of these columns, and of the document of its verification."""
    return Revision(
        row.profile_name,
        row.number,
        _load_again(row.pipeline),
        Provenance(Origin(row.origin), row.detail, row.fit_id),
        row.created_at,
        load_verification(verification) if verification else None,
    )


_load_again = lru_cache(_KEPT)(load_model)
