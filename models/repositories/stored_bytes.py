"""How many bytes each owner has stored: counted by what stores and deletes, in its transaction.

A unit of work sums up what it adds and takes away, and adds that to the owner's row in its last
statement: the row is locked for the commit alone, so that nobody who holds it waits for anything.

What counts is what a request has the service keep, in the length that it is stored in: bodies of
answers and what they are called, files of measurements, fits, revisions and verifications, tables,
answers to keys of requests, what jobs ask and, once they have ended, what came of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    FromClause,
    LargeBinary,
    Select,
    Table,
    case,
    cast,
    func,
    select,
    text,
    union_all,
    update,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.functions import GenericFunction

from domain.errors import QuotaExceeded
from models.base import Base
from models.records import Drift, StoredBytes
from models.repositories.statements import insert_if_absent
from models.rows.answer import AnswerRow
from models.rows.answer_body import AnswerBodyRow
from models.rows.compiled_table_file import CompiledTableFileRow
from models.rows.fit import FitRow
from models.rows.hidden_answer import HiddenAnswerRow
from models.rows.job import JobRow
from models.rows.owner_bytes import OwnerBytesRow
from models.rows.request_key import RequestKeyRow
from models.rows.revision import RevisionRow
from models.rows.trace import TraceRow
from models.rows.verification import VerificationRow

TALLY = "tally"  # of a session: the tally of its unit of work

_COUNTED: Mapping[type[Base], tuple[str, ...]] = {
    AnswerRow: ("name", "note"),
    AnswerBodyRow: ("body",),
    HiddenAnswerRow: ("body",),
    TraceRow: ("compressed",),
    FitRow: ("document", "request"),
    RevisionRow: ("pipeline", "detail"),
    VerificationRow: ("document",),
    CompiledTableFileRow: ("file", "document"),
    JobRow: ("request",),
    RequestKeyRow: ("headers", "body"),
}
_BY_TABLE = {row.__tablename__: names for row, names in _COUNTED.items()}
# Until a job has ended these change with each step.
_RESULT = ("best", "history", "error")

# Of one form on both databases, and written out: every transaction that stores runs it.
_ADD = text(
    "INSERT INTO owner_bytes (owner, stored_bytes, recounts) VALUES (:owner, :bytes, 0) "
    "ON CONFLICT (owner) DO UPDATE "
    "SET stored_bytes = owner_bytes.stored_bytes + excluded.stored_bytes RETURNING stored_bytes"
)


class Tally:
    """What one unit of work adds to what owners store, and takes away."""

    __slots__ = ("_changes", "_refusable")

    def __init__(self) -> None:
        self._changes: dict[str, int] = {}
        self._refusable: set[str] = set()

    def store(self, owner: str, *values: bytes | str | None) -> None:
        """Count what is stored, which is refused where the owner has as much as he may."""
        lengths = (
            len(value.encode() if isinstance(value, str) else value) for value in values if value
        )
        self.change(owner, sum(lengths), is_refusable=True)

    def change(self, owner: str, by_bytes: int, *, is_refusable: bool = False) -> None:
        """Count a change, which is not refused unless it says so."""
        if by_bytes:
            self._changes[owner] = self._changes.get(owner, 0) + by_bytes
            if is_refusable:
                self._refusable.add(owner)

    def settle(self, connection: Connection, most_bytes: int | None) -> None:
        """Add all that to the owners' rows. Raises QuotaExceeded where one then has too much."""
        for owner, change in sorted(self._changes.items()):  # the same order for all: no deadlock
            if not change:
                continue
            stored = connection.scalar(_ADD, {"owner": owner, "bytes": change})
            assert stored is not None
            is_too_much = most_bytes is not None and change > 0 and stored > most_bytes
            if is_too_much and owner in self._refusable:
                raise QuotaExceeded(
                    f"expected at most {most_bytes} bytes stored by one owner: {owner} stores "
                    f"{stored - change}, and this adds {change}; delete profiles, or have less "
                    "kept (SLUICE_RETENTION, sluice admin collect)"
                )


def tally_of(session: Session) -> Tally:
    """Return the tally of a session's unit of work."""
    found: Tally = session.info[TALLY]
    return found


# --- lengths in SQL -------------------------------------------------------------------------------


class _TextBytes(GenericFunction[int]):
    """The length of a text in bytes."""

    name = "octet_length"
    inherit_cache = True


@compiles(_TextBytes, "sqlite")
def _on_sqlite(element: _TextBytes, compiler: Any, **given: Any) -> str:
    # There `length` of a text counts characters, and octet_length came with 3.43.
    return f"length(CAST({compiler.process(element.clauses, **given)} AS BLOB))"


def _length(column: ColumnElement[Any]) -> ColumnElement[int]:
    is_bytes = isinstance(column.type, LargeBinary)
    return func.coalesce(func.length(column) if is_bytes else _TextBytes(column), 0)


def bytes_of(row: FromClause, table: str) -> ColumnElement[int]:
    """Return how many bytes of a row of this table count; 0 where none of its columns do."""
    total: ColumnElement[int] = cast(0, BigInteger)
    for name in _BY_TABLE.get(table, ()):
        total = total + _length(row.c[name])
    if table == JobRow.__tablename__:
        for length in lengths_of_result(row):
            stored = func.coalesce(length, 0)
            total = total + case((row.c.finished_at.is_not(None), stored), else_=0)
    return total


def lengths_of_result(row: FromClause) -> tuple[ColumnElement[int], ...]:
    """Return the lengths of what came of a job, which count once it has ended; null for none."""
    return tuple(func.length(row.c[name]) for name in _RESULT)


def _counted(row: type[Base]) -> Select[Any]:
    table = table_of(row)
    if row is not AnswerBodyRow:
        return select(table.c.owner, bytes_of(table, table.name).label("bytes"))
    answer = table_of(AnswerRow)
    counted = select(answer.c.owner, bytes_of(table, table.name).label("bytes"))
    return counted.join_from(table, answer, answer.c.id == table.c.answer_id)


def table_of(row: type[Base]) -> Table:
    """Return the table of a row."""
    found = row.__table__
    assert isinstance(found, Table)
    return found


# --- figures, and whether they are right ----------------------------------------------------------

_FIGURES = table_of(OwnerBytesRow)


class StoredBytesRepository:
    """The figures of all owners."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def by_owner(self) -> dict[str, int]:
        """Return how many bytes each owner stores, of whom that is known."""
        row = OwnerBytesRow
        found = select(row.owner, row.stored_bytes).order_by(row.owner)
        return {row.owner: row.stored_bytes for row in self._session.execute(found)}

    def totals(self) -> StoredBytes:
        """Return what all store together, and who stores the most."""
        stored = OwnerBytesRow.stored_bytes
        total, most = self._session.execute(select(func.sum(stored), func.max(stored))).one()
        return StoredBytes(int(total or 0), int(most or 0))

    def drifts(self) -> list[Drift]:
        """Return by how much figures are off what is stored, of those that are.

        One statement sees figures and rows of one moment: nobody has to wait for it, however long
        it takes.
        """
        if self._session.get_bind().dialect.name == "postgresql":
            self._session.execute(text("SET LOCAL statement_timeout = 0"))
        figures = select(_FIGURES.c.owner, (-_FIGURES.c.stored_bytes).label("bytes"))
        all_rows = union_all(*map(_counted, _COUNTED), figures).subquery()
        off = cast(func.sum(all_rows.c.bytes), BigInteger)
        found = (
            select(all_rows.c.owner, off.label("bytes"))
            .group_by(all_rows.c.owner)
            .having(off != 0)
            .subquery()
        )
        seen = func.coalesce(_FIGURES.c.recounts, 0)
        asked = select(found.c.owner, found.c.bytes, seen).join_from(
            found, _FIGURES, _FIGURES.c.owner == found.c.owner, isouter=True
        )
        return [Drift(*row) for row in self._session.execute(asked.order_by(found.c.owner))]

    def correct(self, drifts: list[Drift]) -> None:
        """Correct figures by this much, but for those that were corrected since."""
        row = OwnerBytesRow
        for drift in drifts:
            new = {"owner": drift.owner, "stored_bytes": 0, "recounts": 0}
            insert_if_absent(self._session, row, new)
            self._session.execute(
                update(row)
                .where(row.owner == drift.owner, row.recounts == drift.recounts)
                .values(stored_bytes=row.stored_bytes + drift.off_bytes, recounts=row.recounts + 1),
                execution_options={"synchronize_session": False},
            )


def count_anew(connection: Connection) -> None:
    """Make every figure right, where nobody else writes."""
    with Session(connection) as session:
        stored = StoredBytesRepository(session)
        stored.correct(stored.drifts())
