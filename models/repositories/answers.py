"""Stored answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, cast

from sqlalchemy import ColumnElement, Connection, Select, Table, bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError

from domain.errors import Conflict, NotFound
from domain.solution import Status, Strategy
from models.records import OWNER, AnswerRecord, AnswerSummary
from models.repositories.statements import check_text, is_row_number, is_storable
from models.repositories.stored_bytes import Tally, bytes_of
from models.rows.answer import AnswerRow
from models.rows.answer_body import AnswerBodyRow

Summaries = list[AnswerSummary]


_ANSWER = cast(Table, AnswerRow.__table__)
_BODY = cast(Table, AnswerBodyRow.__table__)
_summary_of = attrgetter(*AnswerSummary.__slots__)
_SUMMARY = [_ANSWER.c[name] for name in AnswerSummary.__slots__]
_WHOLE = select(*_SUMMARY, _ANSWER.c.question_digest, _BODY.c.body).join_from(
    _ANSWER, _BODY, _BODY.c.answer_id == _ANSWER.c.id
)

# Every answer passes through these, and building a statement takes longer than SQLite takes to run
# it: they are built once.
_ADD = insert(_ANSWER)
_ADD_BODY = insert(_BODY)
_GET = _WHOLE.where(_ANSWER.c.id == bindparam("answer_id"), _ANSWER.c.owner == bindparam("owner"))
_LOCK = _GET.with_for_update(of=_ANSWER)
_FIND = (
    _WHOLE.where(
        _ANSWER.c.owner == bindparam("owner"),
        _ANSWER.c.question_digest == bindparam("question_digest"),
    )
    .order_by(_ANSWER.c.id.desc())
    .limit(1)
)


class AnswerRepository:
    """An owner's answers by identifier, by question, and in pages, newest first.

    Answers never change; what they are called may.
    """

    def __init__(
        self, connection: Connection, tally: Callable[[], Tally], owner: str = OWNER
    ) -> None:
        self._connection = connection
        self._tally = tally
        self._owner = owner

    def add(self, record: AnswerRecord) -> None:
        """Store an answer. Raises Conflict where the identifier is taken."""
        check_text("profile", record.profile_name or "")
        summary = dict(zip(AnswerSummary.__slots__, _summary_of(record), strict=True))
        values = {**summary, "owner": self._owner, "question_digest": record.question_digest}
        try:
            self._connection.execute(_ADD, values)
        except IntegrityError as error:
            raise Conflict("there is already an answer", subject=record.id) from error
        self._connection.execute(_ADD_BODY, {"answer_id": record.id, "body": record.body})
        self._tally().store(self._owner, record.body, record.name, record.note)

    def get(self, answer_id: str, *, to_describe: bool = False) -> AnswerRecord:
        """The answer, which another one waits for where it is to be described. Raises NotFound."""
        found = None
        if is_storable(answer_id):
            found = self._first(_LOCK if to_describe else _GET, answer_id=answer_id)
        if found is None:
            raise NotFound("there is no stored answer", field="id", subject=answer_id)
        return found

    def describe(self, answer_id: str, *, name: str | None, note: str | None) -> None:
        """Call an answer so, and say this of it. Raises NotFound, InvalidInput."""
        for field, text in (("name", name), ("note", note)):
            check_text(field, text or "")
        mine = _ANSWER.c.owner == self._owner, _ANSWER.c.id == answer_id
        before = None
        if is_storable(answer_id):
            asked = select(bytes_of(_ANSWER, _ANSWER.name)).where(*mine)
            before = self._connection.scalar(asked.with_for_update())
        if before is None:
            raise NotFound("there is no stored answer", field="id", subject=answer_id)
        self._connection.execute(update(_ANSWER).where(*mine).values(name=name, note=note))
        self._tally().change(self._owner, -before)
        self._tally().store(self._owner, name, note)

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
        columns = _ANSWER.c
        filters: tuple[tuple[ColumnElement[Any], Any], ...] = (
            (columns.profile_name, profile),
            (columns.profile_revision, revision),
            (columns.message_bytes, message_bytes),
            (columns.strategy, strategy),
        )
        asked = [(column, value) for column, value in filters if value is not None]
        if not all(is_storable(value) for value in (*(value for _, value in asked), after or "")):
            return []
        if revision is not None and not is_row_number(revision):
            return []
        mine = select(*_SUMMARY).where(columns.owner == self._owner)
        statement = mine.order_by(columns.id.desc()).limit(limit)
        for column, value in asked:
            statement = statement.where(column == value)
        if after is not None:
            statement = statement.where(columns.id < after)
        found = self._connection.execute(statement).mappings()
        return [AnswerSummary(**_typed(row)) for row in found]

    def _first(self, statement: Select[Any], **values: str) -> AnswerRecord | None:
        found = self._connection.execute(statement, {**values, "owner": self._owner}).first()
        return None if found is None else AnswerRecord(**_typed(found._mapping))


def _typed(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the columns with the types that records have."""
    return {**row, "strategy": Strategy(row["strategy"]), "status": Status(row["status"])}
