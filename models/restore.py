"""Putting a backup into a database, all of it or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, delete, or_, select, text, update
from sqlalchemy.exc import DataError
from sqlalchemy.orm import Session

from domain.errors import Conflict, InvalidInput, StoreUnavailable
from models.all_rows import copy_rows, row_counts, tables_in_order
from models.backup_file import (
    check_is_backup,
    checked_counts,
    not_ours,
    of_this_version,
    readable_engine,
)
from models.engines import open_migration_engine, parse_url, sqlite_file
from models.errors import TranslatedErrors
from models.records import OWNER, ChangedBy
from models.repositories.changes import CHANGED_BY, note_change
from models.repositories.stored_bytes import count_anew
from models.rows.api_key import ApiKeyRow
from models.schema import upgrade


def restore(
    file: Path, database_url: str, *, replace: bool = False, with_keys: bool = True
) -> dict[str, int]:
    """Put a backup into a database, all of it or nothing; return how many rows of each table.

    A key that had ended in what is replaced stays ended; without keys nobody has one afterwards.

    The database gets the schema where it has none. Raises NotFound and InvalidInput for what is no
    backup, Conflict for one of newer software, and where the database holds anything, unless it
    is to be replaced; StoreUnavailable.
    """
    url = parse_url(database_url)
    check_is_backup(file)
    target_file = sqlite_file(url) if url.get_backend_name() == "sqlite" else None
    if target_file is not None and target_file.exists() and target_file.samefile(file):
        raise InvalidInput("expected a backup, not the database itself", field="file")
    with of_this_version(file) as source_file:
        counts = checked_counts(source_file)
        source = readable_engine(source_file)
        target = open_migration_engine(url)
        try:
            with TranslatedErrors():
                upgrade(target)
                with target.begin() as writing, source.connect() as reading:
                    _lock(writing)
                    ended = _ended_keys(writing)
                    _empty(writing, replace=replace)
                    try:
                        copy_rows(reading, writing)
                    except (DataError, LookupError, TypeError, ValueError) as error:
                        raise not_ours(file) from error
                    if row_counts(writing) != counts:
                        raise StoreUnavailable("the rows that arrived are not those of the backup")
                    if with_keys:
                        _end_keys(writing, ended)
                    else:
                        writing.execute(delete(ApiKeyRow))
                        counts["api_key"] = 0
                    _note_restored(writing, file)
                    count_anew(writing)  # software of before does not count
        finally:
            source.dispose()
            target.dispose()
    return counts


def _lock(connection: Connection) -> None:
    """Have nobody write or read until the transaction ends; SQLite has begun with its lock."""
    if connection.dialect.name == "postgresql":
        names = ", ".join(table.name for table in tables_in_order())
        connection.execute(text(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE"))


def _empty(connection: Connection, *, replace: bool) -> None:
    held = {name: number for name, number in row_counts(connection).items() if number}
    if held and not replace:
        raise Conflict(
            f"the database is not empty: it holds {_words(held)}; --replace deletes that"
        )
    for table in reversed(tables_in_order()):
        connection.execute(table.delete())


def _ended_keys(connection: Connection) -> list[dict[str, Any]]:
    """Return the keys that end, by identifier and digest."""
    row = ApiKeyRow
    ends = or_(row.revoked_at.is_not(None), row.expires_at.is_not(None))
    asked = select(row.id, row.digest, row.revoked_at, row.expires_at).where(ends)
    return [dict(found) for found in connection.execute(asked).mappings()]


def _end_keys(connection: Connection, ended: Iterable[Mapping[str, Any]]) -> None:
    """Have these keys end as they did: a key that was revoked never counts again."""
    row = ApiKeyRow
    for key in ended:
        ends = {"revoked_at": key["revoked_at"], "expires_at": key["expires_at"]}
        same = row.id == key["id"], row.digest == key["digest"]
        connection.execute(update(row).where(*same).values(**ends))


def _note_restored(connection: Connection, file: Path) -> None:
    with Session(connection) as session:
        session.info[CHANGED_BY] = ChangedBy("command line")
        note_change(session, OWNER, "database.restore", file.name)
        session.flush()


def _words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} rows of {name}" for name, number in counts.items())
