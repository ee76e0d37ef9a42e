"""Table `verification`: what transfers said of a revision's model; the latest replaces the others.

A row goes with its revision, which itself never changes.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKeyConstraint, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class VerificationRow(Base):
    """The verification of one revision, as one document."""

    __tablename__ = "verification"
    __table_args__ = (
        ForeignKeyConstraint(
            ["owner", "profile_name", "profile_revision"],
            ["revision.owner", "revision.profile_name", "revision.number"],
            name="fk_verification_profile_name",
            ondelete="CASCADE",
        ),
    )

    owner: Mapped[str] = mapped_column(primary_key=True)
    profile_name: Mapped[str] = mapped_column(primary_key=True)
    profile_revision: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    document: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
