"""Table `profile`: an owner's hardware profile by name, and which of its revisions is current."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Mapped, mapped_column

from domain.profile import HardwareProfile, Revision
from models.base import Base


class ProfileRow(Base):
    """One profile. Both numbers point into `revision`; the repository keeps them right."""

    __tablename__ = "profile"

    owner: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    current_number: Mapped[int]
    latest_number: Mapped[int]
    created_at: Mapped[datetime]

    def to_domain(self, current: Revision) -> HardwareProfile:
        """The profile with its current revision."""
        return HardwareProfile(self.name, current, self.latest_number, self.created_at)
