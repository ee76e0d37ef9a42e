"""Table `active_table`: which compiled table a revision's lookups are answered from.

A row is a choice and goes with its revision; what was chosen stays under its digest.
"""

from __future__ import annotations

from sqlalchemy import ForeignKeyConstraint, Index
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class ActiveTableRow(Base):
    """The choice of one revision."""

    __tablename__ = "active_table"
    __table_args__ = (
        ForeignKeyConstraint(
            ["owner", "profile_name", "profile_revision"],
            ["revision.owner", "revision.profile_name", "revision.number"],
            name="fk_active_table_profile_name",
            ondelete="CASCADE",
        ),
        ForeignKeyConstraint(
            ["owner", "digest"],
            ["compiled_table.owner", "compiled_table.digest"],
            name="fk_active_table_digest",
            ondelete="CASCADE",
        ),
        Index("ix_active_table_digest", "owner", "digest"),
    )

    owner: Mapped[str] = mapped_column(primary_key=True)
    profile_name: Mapped[str] = mapped_column(primary_key=True)
    profile_revision: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    digest: Mapped[str]
