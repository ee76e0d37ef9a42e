"""Stored answers."""

from __future__ import annotations

from typing import cast

from sqlalchemy import Select, Table, bindparam, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from domain.errors import Conflict, NotFound
from models.records import AnswerRecord, AnswerSummary
from models.repositories.statements import check_text, is_row_number, is_storable
from models.rows.answer import AnswerRow
from models.rows.answer_body import AnswerBodyRow

Summaries = list[AnswerSummary]


def _whole() -> Select[AnswerRow, bytes]:
    return select(AnswerRow, AnswerBodyRow.body).join(
        AnswerBodyRow, AnswerBodyRow.answer_id == AnswerRow.id
    )


# Every answer passes through these, and building a statement takes longer than SQLite takes to run
# it: they are built once.
_ADD = insert(cast(Table, AnswerRow.__table__))
_ADD_BODY = insert(cast(Table, AnswerBodyRow.__table__))
_GET = _whole().where(AnswerRow.id == bindparam("answer_id"))
_FIND = (
    _whole()
    .where(AnswerRow.question_digest == bindparam("question_digest"))
    .order_by(AnswerRow.id.desc())
    .limit(1)
)


class AnswerRepository:
    """Answers by identifier, by question, and in pages, newest first. Answers never change."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, record: AnswerRecord) -> None:
        """Store an answer. Raises Conflict where the identifier is taken."""
        check_text("profile", record.profile_name or "")
        summary = {name: getattr(record, name) for name in AnswerSummary.__slots__}
        values = {**summary, "question_digest": record.question_digest}
        try:
            self._session.execute(_ADD, values)
        except IntegrityError as error:
            raise Conflict("there is already an answer", subject=record.id) from error
        self._session.execute(_ADD_BODY, {"answer_id": record.id, "body": record.body})

    def get(self, answer_id: str) -> AnswerRecord:
        """The answer. Raises NotFound."""
        found = None
        if is_storable(answer_id):
            found = self._first(_GET, answer_id=answer_id)
        if found is None:
            raise NotFound("there is no stored answer", field="id", subject=answer_id)
        return found

    def find(self, question_digest: str) -> AnswerRecord | None:
        """The newest answer to the question with this digest, or None."""
        return self._first(_FIND, question_digest=question_digest)

    def list(
        self,
        *,
        profile: str | None = None,
        revision: int | None = None,
        message_bytes: int | None = None,
        strategy: str | None = None,
        after: str | None = None,
        limit: int,
    ) -> Summaries:
        """A page, newest first, beginning behind the identifier `after`; filters all hold."""
        filters = (
            (AnswerRow.profile_name, profile),
            (AnswerRow.profile_revision, revision),
            (AnswerRow.message_bytes, message_bytes),
            (AnswerRow.strategy, strategy),
        )
        asked = [(column, value) for column, value in filters if value is not None]
        if not all(is_storable(value) for value in (*(value for _, value in asked), after or "")):
            return []
        if revision is not None and not is_row_number(revision):
            return []
        statement = select(AnswerRow).order_by(AnswerRow.id.desc()).limit(limit)
        for column, value in asked:
            statement = statement.where(column == value)
        if after is not None:
            statement = statement.where(AnswerRow.id < after)
        return [row.to_summary() for row in self._session.scalars(statement)]

    def _first(self, statement: Select[AnswerRow, bytes], **values: str) -> AnswerRecord | None:
        found = self._session.execute(statement, values).first()
        if found is None:
            return None
        row, body = found
        return row.to_record(body)
