"""Table `hidden_answer`: answers about messages behind a calculation, as the bytes sent."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class HiddenAnswerRow(Base):
    """One stored answer. `cut_off`: time ended its search, and it is not given again."""

    __tablename__ = "hidden_answer"
    __table_args__ = (Index("ix_hidden_answer_question", "owner", "question_digest", "id"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    created_at: Mapped[datetime]
    question_digest: Mapped[str]
    cut_off: Mapped[bool]
    body: Mapped[bytes]
