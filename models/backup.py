"""Backups: all rows as they were at one moment, in one file, whichever database they are from.

A backup is a SQLite database of this schema. So there is one form to check and to read, and a
backup of either database can be restored into the other.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    Table,
    create_engine,
    delete,
    func,
    insert,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.exc import DataError, DBAPIError
from sqlalchemy.orm import Session

import models.rows
from domain.errors import Conflict, InvalidInput, NotFound, StoreUnavailable
from models.base import Base
from models.engines import open_migration_engine, parse_url, sqlite_file
from models.errors import TranslatedErrors
from models.records import OWNER, ChangedBy
from models.repositories.changes import CHANGED_BY, note_change
from models.rows.api_key import ApiKeyRow
from models.schema import HEAD, current_revision, upgrade

assert models.rows.__all__  # imported for its effect: the metadata is complete

_BATCH = 100  # rows at a time: one may hold a file of measurements
_MAGIC = b"SQLite format 3\x00"


def backup(database_url: str, file: Path) -> dict[str, int]:
    """Write a backup into a file that is not there yet; return how many rows of each table it has.

    It has everything that was confirmed before it began, and nothing of what is half done; others
    write on meanwhile. The file appears when it is complete, checked and on the disk. Raises
    NotFound where there is no database, Conflict where the file is there or the database is of
    another version, StoreUnavailable.
    """
    url = parse_url(database_url)
    if file.exists():
        raise Conflict(f"{file.name} is there already; a backup replaces nothing", field="file")
    with _unnamed_beside(file) as unnamed:
        if url.get_backend_name() == "sqlite":
            _copy_file(url, unnamed)
        else:
            _copy_rows_into(url, unnamed)
        counts = _checked(unnamed)
        _sync(unnamed)
        try:
            os.link(unnamed, file)
        except FileExistsError:
            raise Conflict(f"{file.name} is there by now; nothing was replaced") from None
        _sync(file.parent)
    return counts


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
    _check_is_backup(file)
    target_file = sqlite_file(url) if url.get_backend_name() == "sqlite" else None
    if target_file is not None and target_file.exists() and target_file.samefile(file):
        raise InvalidInput("expected a backup, not the database itself", field="file")
    with _of_this_version(file) as source_file:
        counts = _checked(source_file)
        source = _readable(source_file)
        target = open_migration_engine(url)
        try:
            with TranslatedErrors():
                upgrade(target)
                with target.begin() as writing, source.connect() as reading:
                    _lock(writing)
                    ended = _ended_keys(writing)
                    _empty(writing, replace=replace)
                    try:
                        _copy_rows(reading, writing)
                    except (DataError, LookupError, TypeError, ValueError) as error:
                        raise _not_ours(file) from error
                    if _counts(writing) != counts:
                        raise StoreUnavailable("the rows that arrived are not those of the backup")
                    if with_keys:
                        _end_keys(writing, ended)
                    else:
                        writing.execute(delete(ApiKeyRow))
                        counts["api_key"] = 0
                    _note_restored(writing, file)
        finally:
            source.dispose()
            target.dispose()
    return counts


# --- taking one -----------------------------------------------------------------------------------


@contextmanager
def _unnamed_beside(file: Path) -> Iterator[Path]:
    """A file in the same folder, which is gone afterwards, readable by its owner alone."""
    try:
        number, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".partial", dir=file.parent)
    except OSError as refusal:
        reason = refusal.strerror or "it cannot be written"
        raise InvalidInput(f"{file.name}: {reason}", field="file") from None
    os.close(number)
    try:
        yield Path(name)
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            with suppress(FileNotFoundError):
                os.unlink(name + suffix)


def _copy_file(url: URL, target: Path) -> None:
    """Copy a SQLite database by its online backup: in one step, so as it was at one moment."""
    source_file = sqlite_file(url)
    assert source_file is not None
    if not source_file.exists():
        raise NotFound("there is no database yet", field="database_url")
    try:
        with (
            closing(
                sqlite3.connect(f"{source_file.absolute().as_uri()}?mode=rw", uri=True)
            ) as found,
            closing(sqlite3.connect(target)) as copy,
        ):
            found.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it
    except sqlite3.Error as error:
        raise StoreUnavailable(f"the database cannot be copied: {error}") from error


def _copy_rows_into(url: URL, target: Path) -> None:
    """Copy the rows of one snapshot of a PostgreSQL database."""
    source = open_migration_engine(url)
    copy = _new_database(target)
    try:
        with TranslatedErrors(), source.connect() as plain:
            reading = plain.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
            _check_revision(reading)
            with copy.begin() as writing:
                _copy_rows(reading, writing)
    finally:
        source.dispose()
        copy.dispose()
    with closing(sqlite3.connect(target)) as opened:
        opened.execute("PRAGMA journal_mode=DELETE")


def _new_database(file: Path) -> Engine:
    engine = open_migration_engine(_sqlite_url(file))
    upgrade(engine)
    return engine


def _check_revision(connection: Connection) -> None:
    found = current_revision(connection)
    if found is None:
        raise NotFound("there is no database of Sluice yet", field="database_url")
    if found != HEAD:
        raise Conflict(
            f"the database's schema has the revision {found!r}, this version of Sluice has "
            f"{HEAD!r}: start this version once, or use the other one"
        )


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- checking one ---------------------------------------------------------------------------------


def _check_is_backup(file: Path) -> None:
    try:
        with file.open("rb") as opened:
            begins = opened.read(len(_MAGIC))
    except FileNotFoundError:
        raise NotFound("there is no such backup", field="file", subject=file.name) from None
    except OSError as refusal:
        reason = refusal.strerror or "it cannot be read"
        raise InvalidInput(f"{file.name}: {reason}", field="file") from None
    if begins != _MAGIC:
        raise InvalidInput(f"{file.name} is no backup of Sluice", field="file")


def _checked(file: Path) -> dict[str, int]:
    """Return the counts of rows of a sound backup of this version. Raises InvalidInput."""
    try:
        with closing(_opened(file, "ro")) as opened:
            verdict = opened.execute("PRAGMA integrity_check").fetchone()[0]
            dangling = opened.execute("PRAGMA foreign_key_check").fetchall()
    except sqlite3.Error as error:
        raise InvalidInput(f"{file.name} is damaged: {error}", field="file") from error
    if verdict != "ok" or dangling:
        raise InvalidInput(f"{file.name} is damaged: it fails SQLite's own checks", field="file")
    engine = _readable(file)
    try:
        with engine.connect() as connection:
            _check_revision(connection)
            return _counts(connection)
    except DBAPIError as error:
        raise InvalidInput(f"{file.name} is no backup of Sluice", field="file") from error
    finally:
        engine.dispose()


@contextmanager
def _of_this_version(file: Path) -> Iterator[Path]:
    """The backup, or where it is of an earlier version a copy that is brought up to date."""
    with closing(_opened(file, "ro")) as opened:
        try:
            found = opened.execute("SELECT version_num FROM alembic_version").fetchone()
        except sqlite3.Error:
            raise InvalidInput(f"{file.name} is no backup of Sluice", field="file") from None
        if found == (HEAD,):
            yield file
            return
        with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
            copy = Path(folder) / file.name
            with closing(sqlite3.connect(copy)) as copied:
                opened.backup(copied)
            try:
                _new_database(copy).dispose()
            except DBAPIError as error:  # not the schema that its version says
                raise _not_ours(file) from error
            yield copy


def _not_ours(file: Path) -> InvalidInput:
    return InvalidInput(f"{file.name} holds what no version of Sluice stores", field="file")


# --- rows -----------------------------------------------------------------------------------------


def _tables() -> list[Table]:
    """Return the tables, each after those that it names."""
    return list(Base.metadata.sorted_tables)


def _copy_rows(reading: Connection, writing: Connection) -> None:
    if writing.dialect.name == "sqlite":
        # Of rows that name others of their own table: all are there at the end.
        writing.execute(text("PRAGMA defer_foreign_keys=ON"))
    for table in _tables():
        found = reading.execution_options(yield_per=_BATCH).execute(
            select(table).order_by(*table.primary_key)
        )
        for rows in found.mappings().partitions():
            writing.execute(insert(table), [dict(row) for row in rows])


def _counts(connection: Connection) -> dict[str, int]:
    return {
        table.name: connection.scalar(select(func.count()).select_from(table)) or 0
        for table in _tables()
    }


def _lock(connection: Connection) -> None:
    """Have nobody write or read until the transaction ends; SQLite has begun with its lock."""
    if connection.dialect.name == "postgresql":
        names = ", ".join(table.name for table in _tables())
        connection.execute(text(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE"))


def _empty(connection: Connection, *, replace: bool) -> None:
    held = {name: number for name, number in _counts(connection).items() if number}
    if held and not replace:
        raise Conflict(
            f"the database is not empty: it holds {_words(held)}; --replace deletes that"
        )
    for table in reversed(_tables()):
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


def _opened(file: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode={mode}", uri=True)


def _readable(file: Path) -> Engine:
    """Return an engine that only reads a file, which may be one that nobody may write to."""
    return create_engine("sqlite+pysqlite://", creator=lambda: _opened(file, "ro"))


def _sqlite_url(file: Path) -> URL:
    return parse_url(f"sqlite:///{file}")
