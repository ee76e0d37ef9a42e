"""Table `compiled_table_file`: the bytes themselves; separate, so that pages stay small."""

from __future__ import annotations

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class CompiledTableFileRow(Base):
    """The table file of one digest, and the document that described it when it was compiled."""

    __tablename__ = "compiled_table_file"

    digest: Mapped[str] = mapped_column(
        ForeignKey("compiled_table.digest", ondelete="CASCADE"), primary_key=True
    )
    file: Mapped[bytes]
    document: Mapped[bytes]
