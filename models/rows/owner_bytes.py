"""Table `owner_bytes`: how many bytes each owner stores, counted by what stores and deletes."""

from __future__ import annotations

from sqlalchemy import BigInteger
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class OwnerBytesRow(Base):
    """The figure of one owner.

    `recounts` is how often it was corrected: of two corrections at once one counts.
    """

    __tablename__ = "owner_bytes"

    owner: Mapped[str] = mapped_column(primary_key=True)
    stored_bytes: Mapped[int] = mapped_column(BigInteger)
    recounts: Mapped[int]
