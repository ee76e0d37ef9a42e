"""Table `answer_body`: the exact bytes that were sent; separate, so that pages stay small."""

from __future__ import annotations

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class AnswerBodyRow(Base):
    """The body of one answer."""

    __tablename__ = "answer_body"

    answer_id: Mapped[str] = mapped_column(
        ForeignKey("answer.id", ondelete="CASCADE"), primary_key=True
    )
    body: Mapped[bytes]
