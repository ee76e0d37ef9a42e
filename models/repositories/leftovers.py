"""What may be deleted by age or count: rows that are old enough and that nothing kept names.

What names a row is read off the foreign keys, so that a table that is added later protects what it
names without a word here. Rows that are only parts of another one go with it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from sqlalchemy import (
    Alias,
    ColumnElement,
    FromClause,
    Table,
    and_,
    delete,
    exists,
    false,
    func,
    not_,
    or_,
    select,
    text,
    true,
    tuple_,
    union,
)
from sqlalchemy.orm import Session

from models.base import Base, utc_now
from models.records import JobState, Keep
from models.repositories.stored_bytes import bytes_of, table_of, tally_of
from models.rows.answer import AnswerRow
from models.rows.change import ChangeRow
from models.rows.compiled_table import CompiledTableRow
from models.rows.fit import FitRow
from models.rows.hidden_answer import HiddenAnswerRow
from models.rows.job import JobRow
from models.rows.request_key import RequestKeyRow
from models.rows.trace import TraceRow

MIN_AGE_S = 3600.0  # what is younger stays whatever the counts: somebody may be about to use it
_LOCK = 0x536C75696366  # one collector at a time on PostgreSQL; SQLite has one writer anyway
_DIGEST = re.compile(rb"[0-9a-f]{64}")

Cutoffs: TypeAlias = Mapping[str, datetime]  # by table
Key: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Target:
    """A table whose old rows may go: what its age is read by, and what else a row has to be."""

    kind: str
    table: Table
    time: str
    ends: tuple[str, ...] = ()  # of `state`, where it has one

    def may_go(self, row: FromClause) -> ColumnElement[bool]:
        """Return whether a row is finished, whatever its age."""
        if self.ends:
            return row.c.state.in_(self.ends)
        return row.c.status.is_not(None) if self.table.name == "request_key" else true()


# In this order: what goes first names what goes later.
_TARGETS = (
    _Target(
        "jobs",
        table_of(JobRow),
        "finished_at",
        tuple(state.value for state in JobState if state.is_terminal),
    ),
    _Target("answers", table_of(AnswerRow), "created_at"),
    _Target("answers", table_of(HiddenAnswerRow), "created_at"),
    _Target("tables", table_of(CompiledTableRow), "created_at"),
    _Target("traces", table_of(FitRow), "created_at"),
    _Target("traces", table_of(TraceRow), "created_at"),
    _Target("keys", table_of(RequestKeyRow), "created_at"),
    _Target("changes", table_of(ChangeRow), "created_at"),
)
KINDS = tuple(dict.fromkeys(target.kind for target in _TARGETS))
_BY_TABLE = {target.table.name: target for target in _TARGETS}
# Rows that belong to one of another table, and go with it.
_PARTS = {"answer_body": "answer", "compiled_table_file": "compiled_table", "further_trace": "fit"}


class LeftoverRepository:
    """What an owner keeps longer than he has to, by kind: as `KINDS` has them."""

    def __init__(self, session: Session, owner: str) -> None:
        self._session = session
        self._owner = owner

    def owners(self) -> list[str]:
        """Return everybody who has anything that may go some day."""
        found = union(*(select(target.table.c.owner) for target in _TARGETS))
        return sorted(self._session.scalars(found))

    def take_turn(self) -> bool:
        """Be the only one that deletes until the unit of work ends; False where another one is."""
        if self._session.get_bind().dialect.name != "postgresql":
            return True
        asked = text("SELECT pg_try_advisory_xact_lock(:key)")
        return bool(self._session.scalar(asked, {"key": _LOCK}))

    def cutoffs(self, keeps: Mapping[str, Keep]) -> dict[str, datetime]:
        """Return up to when a row of each table is too old, or one too many; tables of kinds that
        keep everything are left out.
        """
        youngest = utc_now() - timedelta(seconds=MIN_AGE_S)
        found: dict[str, datetime] = {}
        for target in _TARGETS:
            keep = keeps.get(target.kind)
            if keep is None:
                continue
            ends = [] if keep.age_s is None else [utc_now() - timedelta(seconds=keep.age_s)]
            if keep.count is not None:
                ends += self._beyond(target, keep.count)
            if ends:
                found[target.table.name] = min(youngest, max(ends))
        return found

    def count(self, cutoffs: Cutoffs) -> dict[str, int]:
        """Return how many rows of each kind would go, all of them together."""
        found: dict[str, int] = {}
        for target in self._targets(cutoffs):
            row = target.table.alias()
            going = select(func.count()).select_from(row).where(self._goes(row, cutoffs))
            counted = self._session.scalar(going) or 0
            found[target.kind] = found.get(target.kind, 0) + counted
        return found

    def tables(self, cutoffs: Cutoffs) -> list[tuple[str, str]]:
        """Return kind and table of these cutoffs, in the order in which to delete from them."""
        return [(target.kind, target.table.name) for target in self._targets(cutoffs)]

    def due(self, table: str, cutoffs: Cutoffs, *, after: Key | None, limit: int) -> list[Key]:
        """Return keys of rows that may go, in their order and behind this one. Locks nothing."""
        row = _BY_TABLE[table].table.alias()
        key = _key_of(row)
        going = select(*key).where(self._goes(row, cutoffs)).order_by(*key).limit(limit)
        if after is not None:
            going = going.where(tuple_(*key) > tuple_(*after))
        return [tuple(found) for found in self._session.execute(going)]

    def remove(self, table: str, cutoffs: Cutoffs, keys: list[Key]) -> int:
        """Delete those of these rows that still may go; return how many that are.

        Raises Conflict, with nothing deleted, where one is named at this very moment.
        """
        found = _BY_TABLE[table].table
        of_parts = self._bytes_of_parts(found, keys)
        named = tuple_(*_key_of(found)).in_(keys)
        going = delete(found).where(named, self._goes(found, cutoffs))
        counted = going.returning(bytes_of(found, table), *_key_of(found))
        gone = self._session.execute(counted).all()
        stored = sum(own + of_parts[tuple(key)] for own, *key in gone)
        tally_of(self._session).change(self._owner, -stored)
        return len(gone)

    # --- in parts ---------------------------------------------------------------------------------

    def _bytes_of_parts(self, table: Table, keys: list[Key]) -> Counter[Key]:
        """Return how many bytes go with rows of these keys; parts never change."""
        found: Counter[Key] = Counter()
        for part in (Base.metadata.tables[name] for name, of in _PARTS.items() if of == table.name):
            (naming,) = (key for key in part.foreign_key_constraints if key.referred_table is table)
            parents = {element.column.name: element.parent for element in naming.elements}
            key = [part.c[parents[column.name].name] for column in table.primary_key]
            asked = select(bytes_of(part, part.name), *key).where(tuple_(*key).in_(keys))
            for stored, *whole in self._session.execute(asked):
                found[tuple(whole)] += stored
        return found

    def _targets(self, cutoffs: Cutoffs) -> Iterator[_Target]:
        return (target for target in _TARGETS if target.table.name in cutoffs)

    def _beyond(self, target: _Target, count: int) -> list[datetime]:
        """Return the time of the newest row that is one too many, if there is one.

        Of rows of the same moment none goes where one has to stay.
        """
        row = target.table.alias()
        times = (
            select(row.c[target.time])
            .where(row.c.owner == self._owner, target.may_go(row))
            .order_by(row.c[target.time].desc())
        )
        last = self._session.scalar(times.offset(count - 1).limit(1)) if count else utc_now()
        if last is None:
            return []
        older = self._session.scalar(times.where(row.c[target.time] < last).limit(1))
        return [] if older is None else [older]

    def _goes(self, row: FromClause, cutoffs: Cutoffs) -> ColumnElement[bool]:
        """Return whether a row is old enough, and named by nothing that stays."""
        table = _table_of(row)
        whole = _PARTS.get(table.name)
        if whole is not None:
            parent = _BY_TABLE[whole].table.alias()
            return (
                exists()
                .where(_names(table, row, parent), self._goes(parent, cutoffs))
                .correlate(row)
            )
        target = _BY_TABLE.get(table.name)
        if target is None or table.name not in cutoffs:
            return false()
        old = and_(row.c[target.time] <= cutoffs[table.name], target.may_go(row))
        conditions = [row.c.owner == self._owner, old, *self._unnamed(table, row, cutoffs)]
        if table.name == "compiled_table" and (asked := self._asked_tables()):
            conditions.append(row.c.digest.not_in(asked))
        return and_(*conditions)

    def _unnamed(
        self, table: Table, row: FromClause, cutoffs: Cutoffs
    ) -> Iterator[ColumnElement[bool]]:
        for other in Base.metadata.sorted_tables:
            if _PARTS.get(other.name) == table.name:
                continue
            if any(key.referred_table is table for key in other.foreign_key_constraints):
                naming = other.alias()
                stays = not_(self._goes(naming, cutoffs))
                yield not_(exists().where(_names(other, naming, row), stays).correlate(row))

    def _asked_tables(self) -> set[str]:
        """Return the digests that open jobs name in their requests, which no foreign key tells."""
        found = select(JobRow.request).where(
            JobRow.state.in_([state.value for state in JobState if not state.is_terminal]),
            JobRow.kind == "export",
        )
        return {
            str(digest, "ascii")
            for request in self._session.scalars(found)
            for digest in _DIGEST.findall(request)
        }


def _table_of(row: FromClause) -> Table:
    table = row.element if isinstance(row, Alias) else row
    assert isinstance(table, Table)
    return table


def _key_of(row: FromClause) -> list[ColumnElement[Any]]:
    return list(row.primary_key)


def _names(table: Table, naming: FromClause, named: FromClause) -> ColumnElement[bool]:
    """Return whether a row of `table`, as `naming`, refers to a row, by any of its foreign keys."""
    target = _table_of(named)
    return or_(
        *(
            and_(*(naming.c[one.parent.name] == named.c[one.column.name] for one in key.elements))
            for key in table.foreign_key_constraints
            if key.referred_table is target
        )
    )
