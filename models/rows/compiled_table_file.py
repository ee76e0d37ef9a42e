"""Table `compiled_table_file`: the bytes themselves; separate, so that pages stay small."""

from __future__ import annotations

from sqlalchemy import ForeignKeyConstraint
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class CompiledTableFileRow(Base):
    """The table file of one digest, and the document that described it when it was compiled."""

    __tablename__ = "compiled_table_file"
    __table_args__ = (
        ForeignKeyConstraint(
            ["owner", "digest"],
            ["compiled_table.owner", "compiled_table.digest"],
            name="fk_compiled_table_file_digest",
            ondelete="CASCADE",
        ),
    )

    owner: Mapped[str] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(primary_key=True)
    file: Mapped[bytes]
    document: Mapped[bytes]
