"""The file of a backup: a SQLite database of this schema, which is checked before it is read.

So there is one form to check and to read, and a backup of either database can be restored into the
other.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine
from sqlalchemy.exc import DBAPIError

from domain.errors import Conflict, InvalidInput, NotFound
from models.all_rows import row_counts
from models.engines import open_migration_engine, parse_url
from models.schema import HEAD, current_revision, upgrade

_MAGIC = b"SQLite format 3\x00"


def new_database(file: Path) -> Engine:
    """Return an engine for a file that has the schema of this version."""
    engine = open_migration_engine(_sqlite_url(file))
    upgrade(engine)
    return engine


def check_revision(connection: Connection) -> None:
    """Raise NotFound where there is no schema, Conflict where it is not this version's."""
    found = current_revision(connection)
    if found is None:
        raise NotFound("there is no database of Sluice yet", field="database_url")
    if found != HEAD:
        raise Conflict(
            f"the database's schema has the revision {found!r}, this version of Sluice has "
            f"{HEAD!r}: start this version once, or use the other one"
        )


def check_is_backup(file: Path) -> None:
    """Raise NotFound where there is no file, InvalidInput where it cannot be a backup."""
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


def checked_counts(file: Path) -> dict[str, int]:
    """Return the counts of rows of a sound backup of this version. Raises InvalidInput."""
    try:
        with closing(_opened(file, "ro")) as opened:
            verdict = opened.execute("PRAGMA integrity_check").fetchone()[0]
            dangling = opened.execute("PRAGMA foreign_key_check").fetchall()
    except sqlite3.Error as error:
        raise InvalidInput(f"{file.name} is damaged: {error}", field="file") from error
    if verdict != "ok" or dangling:
        raise InvalidInput(f"{file.name} is damaged: it fails SQLite's own checks", field="file")
    engine = readable_engine(file)
    try:
        with engine.connect() as connection:
            check_revision(connection)
            return row_counts(connection)
    except DBAPIError as error:
        raise InvalidInput(f"{file.name} is no backup of Sluice", field="file") from error
    finally:
        engine.dispose()


@contextmanager
def of_this_version(file: Path) -> Iterator[Path]:
    """Yield the backup, or where it is of an earlier version a copy that is brought up to date."""
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
                new_database(copy).dispose()
            except DBAPIError as error:  # not the schema that its version says
                raise not_ours(file) from error
            yield copy


def not_ours(file: Path) -> InvalidInput:
    """Return the refusal of a file whose rows are of no version."""
    return InvalidInput(f"{file.name} holds what no version of Sluice stores", field="file")


def _opened(file: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode={mode}", uri=True)


def readable_engine(file: Path) -> Engine:
    """Return an engine that only reads a file, which may be one that nobody may write to."""
    return create_engine("sqlite+pysqlite://", creator=lambda: _opened(file, "ro"))


def _sqlite_url(file: Path) -> URL:
    return parse_url(f"sqlite:///{file}")
