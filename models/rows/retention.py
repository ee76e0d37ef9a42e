"""Table `retention`: what is kept, of one owner or of all that have no rules of their own."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class RetentionRow(Base):
    """The rules of one owner, or of `*`, which is all others; `rules` is a document by kind."""

    __tablename__ = "retention"

    owner: Mapped[str] = mapped_column(primary_key=True)
    rules: Mapped[str] = mapped_column(Text)
    set_at: Mapped[datetime]
