"""Table `active_table`: which compiled table a revision's lookups are answered from.

A row is a choice and goes with its revision; what was chosen stays under its digest.
"""

from __future__ import annotations

from sqlalchemy import ForeignKey, ForeignKeyConstraint
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class ActiveTableRow(Base):
    """The choice of one revision."""

    __tablename__ = "active_table"
    __table_args__ = (
        ForeignKeyConstraint(
            ["profile_name", "profile_revision"],
            ["revision.profile_name", "revision.number"],
            ondelete="CASCADE",
        ),
    )

    profile_name: Mapped[str] = mapped_column(primary_key=True)
    profile_revision: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    digest: Mapped[str] = mapped_column(
        ForeignKey("compiled_table.digest", ondelete="CASCADE"), index=True
    )
