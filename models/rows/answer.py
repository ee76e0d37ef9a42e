"""Table `answer`: what was answered, in narrow rows. The bodies are in `answer_body`.

Pages of an owner run newest first over `id`. Each index begins with the owner, and where there is
one a filter, and continues with `id`, so that a page is read in order; the other filters follow
inside the index, so that entries which fail them are passed over without touching their rows.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Index
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base

_FILTERS = ("profile_name", "profile_revision", "message_bytes", "strategy")
_SHORT = ("profile", "revision", "message", "strategy")


def _others(first: str) -> tuple[str, ...]:
    return tuple(name for name in _FILTERS if name != first)


class AnswerRow(Base):
    """One stored answer without its body. The profile's name is text: answers outlive profiles.

    `name` and `note` are what its owner calls it and says of it, and all that ever changes.
    """

    __tablename__ = "answer"
    __table_args__ = (
        Index("ix_answer_owner", "owner", "id"),
        Index("ix_answer_question", "owner", "question_digest", "id"),
        *(
            Index(f"ix_answer_{short}", "owner", first, "id", *_others(first))
            for short, first in zip(_SHORT, _FILTERS, strict=True)
        ),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    created_at: Mapped[datetime]
    question_digest: Mapped[str]
    strategy: Mapped[str]
    message_bytes: Mapped[int] = mapped_column(BigInteger)
    fragments: Mapped[int]
    latency_us: Mapped[float]
    lower_bound_us: Mapped[float]
    relative_gap: Mapped[float]
    status: Mapped[str]
    profile_name: Mapped[str | None]
    profile_revision: Mapped[int | None]
    name: Mapped[str | None]
    note: Mapped[str | None]
