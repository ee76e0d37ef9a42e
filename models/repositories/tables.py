"""Compiled plan tables."""

from __future__ import annotations

from sqlalchemy import Select, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from domain.errors import Conflict, NotFound
from models.records import TableRecord, TableSummary
from models.repositories.statements import insert_if_absent, is_row_number, is_storable
from models.rows.compiled_table import CompiledTableRow, values_of
from models.rows.compiled_table_file import CompiledTableFileRow

Summaries = list[TableSummary]


class TableRepository:
    """Compiled plan tables by digest, by question, and in pages, newest first.

    A file never changes. One of a profile that is deleted stays under its digest, belonging to no
    profile: whoever reads it by its digest goes on doing so.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, record: TableRecord) -> None:
        """Store a table; one of these very bytes only gets its revision back where it lost it.

        Raises Conflict where the revision that it belongs to is not stored.
        """
        try:
            is_new = insert_if_absent(self._session, CompiledTableRow, values_of(record))
            if is_new:
                values = {"digest": record.digest, "file": record.file, "document": record.document}
                insert_if_absent(self._session, CompiledTableFileRow, values)
            else:
                self._attach(record)
        except IntegrityError as error:
            raise Conflict("the revision that the table belongs to is not stored") from error

    def get(self, digest: str) -> TableRecord:
        """The table of this digest. Raises NotFound."""
        if is_storable(digest):
            found = self._first(_whole().where(CompiledTableRow.digest == digest))
            if found is not None:
                return found
        raise NotFound("there is no compiled table of this digest", field="digest")

    def find(self, question_digest: str) -> TableRecord | None:
        """The newest table of this question that belongs to a stored revision, or None."""
        return self._first(
            _whole()
            .where(
                CompiledTableRow.question_digest == question_digest,
                CompiledTableRow.profile_name.is_not(None),
            )
            .order_by(CompiledTableRow.id.desc())
            .limit(1)
        )

    def list(
        self, profile: str, *, revision: int | None = None, after: str | None = None, limit: int
    ) -> Summaries:
        """A page of a profile's tables, newest first, beginning behind the identifier `after`."""
        if not (is_storable(profile) and is_storable(after or "") and is_row_number(revision or 0)):
            return []
        statement = select(CompiledTableRow).where(CompiledTableRow.profile_name == profile)
        if revision is not None:
            statement = statement.where(CompiledTableRow.profile_revision == revision)
        if after is not None:
            statement = statement.where(CompiledTableRow.id < after)
        statement = statement.order_by(CompiledTableRow.id.desc()).limit(limit)
        return [row.to_summary() for row in self._session.scalars(statement)]

    def _attach(self, record: TableRecord) -> None:
        self._session.execute(
            update(CompiledTableRow)
            .where(CompiledTableRow.digest == record.digest)
            .values(profile_name=record.profile_name, profile_revision=record.profile_revision)
        )

    def _first(self, statement: Select[CompiledTableRow, bytes, bytes]) -> TableRecord | None:
        found = self._session.execute(statement).first()
        if found is None:
            return None
        row, file, document = found
        return row.to_record(file, document)


def _whole() -> Select[CompiledTableRow, bytes, bytes]:
    files = CompiledTableFileRow
    return select(CompiledTableRow, files.file, files.document).join(
        files, files.digest == CompiledTableRow.digest
    )
