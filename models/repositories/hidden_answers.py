"""Stored answers about messages that are hidden behind a calculation."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.errors import NotFound
from models.records import OWNER, HiddenAnswerRecord
from models.repositories.statements import flush, is_storable
from models.repositories.stored_bytes import tally_of
from models.rows.hidden_answer import HiddenAnswerRow


class HiddenAnswerRepository:
    """An owner's answers by identifier and by question. They never change."""

    def __init__(self, session: Session, owner: str = OWNER) -> None:
        self._session = session
        self._owner = owner

    def add(self, record: HiddenAnswerRecord) -> None:
        """Store an answer. Raises Conflict where the identifier is taken."""
        self._session.add(HiddenAnswerRow(owner=self._owner, **asdict(record)))
        flush(self._session, conflict="there is already an answer")
        tally_of(self._session).store(self._owner, record.body)

    def get(self, answer_id: str) -> HiddenAnswerRecord:
        """The answer. Raises NotFound."""
        row = self._session.get(HiddenAnswerRow, answer_id) if is_storable(answer_id) else None
        if row is None or row.owner != self._owner:
            raise NotFound("there is no stored answer", field="id", subject=answer_id)
        return _record(row)

    def find(self, question_digest: str) -> HiddenAnswerRecord | None:
        """The newest answer to the question with this digest that time did not end, or None."""
        row = self._session.scalars(
            select(HiddenAnswerRow)
            .where(HiddenAnswerRow.owner == self._owner)
            .where(HiddenAnswerRow.question_digest == question_digest)
            .where(HiddenAnswerRow.cut_off.is_(False))
            .order_by(HiddenAnswerRow.id.desc())
            .limit(1)
        ).first()
        return None if row is None else _record(row)


def _record(row: HiddenAnswerRow) -> HiddenAnswerRecord:
    return HiddenAnswerRecord(
        id=row.id,
        created_at=row.created_at,
        question_digest=row.question_digest,
        cut_off=row.cut_off,
        body=row.body,
    )
