"""Taking a backup: all rows of a database, as they were at one moment, in one file."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sqlalchemy import URL

from domain.errors import Conflict, InvalidInput, NotFound, StoreUnavailable
from models.all_rows import copy_rows
from models.backup_file import check_revision, checked_counts, new_database
from models.engines import open_migration_engine, parse_url, sqlite_file
from models.errors import TranslatedErrors


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
        counts = checked_counts(unnamed)
        _sync(unnamed)
        try:
            os.link(unnamed, file)
        except FileExistsError:
            raise Conflict(f"{file.name} is there by now; nothing was replaced") from None
        _sync(file.parent)
    return counts


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
    copy = new_database(target)
    try:
        with TranslatedErrors(), source.connect() as plain:
            reading = plain.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
            check_revision(reading)
            with copy.begin() as writing:
                copy_rows(reading, writing)
    finally:
        source.dispose()
        copy.dispose()
    with closing(sqlite3.connect(target)) as opened:
        opened.execute("PRAGMA journal_mode=DELETE")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
