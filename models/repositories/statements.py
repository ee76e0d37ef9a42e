"""Statements that both databases can do but spell differently, and what a text column can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from sqlalchemy import CursorResult
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from domain.errors import Conflict, InvalidInput
from models.base import Base
from models.records import JobEnd

_MAX_INTEGER = 2**63 - 1
_MAX_NUMBER = 2**31 - 1
_CHANGED_CHOICES = "changed_choices"
_CHANGED_JOBS = "changed_jobs"
_JOB_ENDS = "job_ends"

BaseT = TypeVar("BaseT", bound=Base)


def insert_if_absent(session: Session, row: type[Base], values: Mapping[str, Any]) -> int:
    """Insert a row unless its key is taken, also by a concurrent writer; rows inserted: 0, 1.

    Unlike an insert that fails, this leaves a PostgreSQL transaction usable.
    """
    insert = _insert_of(session.get_bind().dialect.name)
    statement = insert(row).values(**values).on_conflict_do_nothing()
    # Without the option an insert's count of rows is forgotten.
    result = session.execute(statement.execution_options(preserve_rowcount=True))
    assert isinstance(result, CursorResult)
    return result.rowcount


def insert_or_find(session: Session, row: type[BaseT], values: Mapping[str, Any]) -> BaseT:
    """Insert a row unless its key is taken; return the row of that key, locked from now on.

    One statement: between two, whoever has the row may delete it.
    """
    insert = _insert_of(session.get_bind().dialect.name)
    key = [column.name for column in row.__table__.primary_key]
    statement = insert(row).values(**values)
    statement = statement.on_conflict_do_update(
        index_elements=key, set_={key[0]: statement.excluded[key[0]]}
    ).returning(row)
    found: BaseT = session.scalars(statement, execution_options={"populate_existing": True}).one()
    return found


def _insert_of(dialect: str) -> Any:
    # Each dialect is read where it is used: PostgreSQL's would be a tenth of a command's start.
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert
    from sqlalchemy.dialects import sqlite

    return sqlite.insert


def flush(session: Session, *, conflict: str) -> None:
    """Send what is pending. Raises Conflict with this sentence where a constraint refuses it."""
    try:
        session.flush()
    except IntegrityError as error:
        raise Conflict(conflict) from error


def check_text(field: str, text: str) -> None:
    """Raise InvalidInput for text that a database cannot hold."""
    if not is_storable(text):
        raise InvalidInput(
            f"expected {field} without NUL characters and lone surrogates", field=field
        )


def is_storable(value: str | int) -> bool:
    """Whether a column could hold this value at all; if not, no row has it.

    PostgreSQL refuses NUL in text, both drivers refuse lone surrogates, SQLite integers of more
    than 64 bits. Looking for such a value must find nothing, on either database.
    """
    if isinstance(value, int):
        return -_MAX_INTEGER <= value <= _MAX_INTEGER
    if "\x00" in value:
        return False
    return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)


def is_row_number(value: int) -> bool:
    """Whether a 32-bit integer column could hold this value."""
    return -_MAX_NUMBER <= value <= _MAX_NUMBER


def mark_changed_choices(session: Session) -> None:
    """Say that this transaction may change which compiled table a profile answers from."""
    session.info[_CHANGED_CHOICES] = True


def has_changed_choices(session: Session) -> bool:
    """Whether anything in this session said so."""
    return _CHANGED_CHOICES in session.info


def mark_changed_jobs(session: Session) -> None:
    """Say that after this transaction there may be a job to run or to stop."""
    session.info[_CHANGED_JOBS] = True


def has_changed_jobs(session: Session) -> bool:
    """Whether anything in this session said so."""
    return _CHANGED_JOBS in session.info


def note_job_end(session: Session, end: JobEnd) -> None:
    """Say that this transaction ends a job."""
    session.info.setdefault(_JOB_ENDS, []).append(end)


def job_ends(session: Session) -> tuple[JobEnd, ...]:
    """Return what this session said so of."""
    return tuple(session.info.get(_JOB_ENDS, ()))
