"""Table `revision`: the immutable revisions of hardware profiles.

A trigger of the database refuses every UPDATE; revisions go only together with their profile.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import ForeignKey, ForeignKeyConstraint, Row, Text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from domain.profile import Origin, Provenance, Revision
from domain.verification import Verification
from models.base import Base
from models.documents import dump_model, load_model, load_verification
from models.rows.verification import VerificationRow

_KEPT = 64  # models that were read last, with what was computed of them


class RevisionRow(Base):
    """One revision: the model as one document (of either kind), and where it came from."""

    __tablename__ = "revision"
    __table_args__ = (
        ForeignKeyConstraint(
            ["owner", "profile_name"],
            ["profile.owner", "profile.name"],
            name="fk_revision_profile_name",
            ondelete="CASCADE",
        ),
    )

    owner: Mapped[str] = mapped_column(primary_key=True)
    profile_name: Mapped[str] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    pipeline: Mapped[str] = mapped_column(Text)
    origin: Mapped[str]
    detail: Mapped[str] = mapped_column(Text)
    fit_id: Mapped[str | None] = mapped_column(ForeignKey("fit.id"))
    created_at: Mapped[datetime]
    verification: Mapped[VerificationRow | None] = relationship(lazy="joined", viewonly=True)

    @classmethod
    def from_domain(cls, owner: str, revision: Revision) -> RevisionRow:
        """The row of an owner's revision."""
        return cls(
            owner=owner,
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
        found = self.verification
        return revision_of(
            self, verification_of(found.document, found.created_at) if found else None
        )


def revision_of(row: RevisionRow | Row[Any], verification: Verification | None) -> Revision:
    """The revision of a row, or of these columns, and its verification."""
    return Revision(
        row.profile_name,
        row.number,
        _load_again(row.pipeline),
        Provenance(Origin(row.origin), row.detail, row.fit_id),
        row.created_at,
        verification,
    )


def verification_of(document: str | None, verified_at: datetime | None) -> Verification | None:
    """The verification of the columns of a revision; None where they are, as one is not there."""
    if document is None or verified_at is None:
        return None
    return load_verification(document, verified_at)


_load_again = lru_cache(_KEPT)(load_model)
