"""Bringing a database's schema up to date.

A database that is up to date is recognised by one SELECT: Alembic is imported only where there is
something to do. Everything then happens in one transaction behind a lock, so that of several
processes that start together one migrates and the others find it done, and a process that dies
half-way leaves the old schema.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text

from domain.errors import Conflict, StoreUnavailable
from models.engines import MIGRATION_WAIT_S, sqlite_file

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0019"  # the newest file in migrations/versions; a test compares them
MIGRATIONS = Path(__file__).resolve().parent.parent / "migrations"
_LOCK = 0x536C75696365  # "Sluice": every version of it must ask for the same advisory lock


def upgrade(engine: Engine) -> None:
    """Migrate to HEAD. Raises Conflict where newer software has been here."""
    if engine.dialect.name == "sqlite":
        _prepare_file(engine)
    with engine.begin() as connection:
        if current_revision(connection) == HEAD:
            return
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        if current_revision(connection) != HEAD:
            _migrate(connection)


def current_revision(connection: Connection) -> str | None:
    """The revision a database says it is at; None for one without a schema."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all()
    return ",".join(found) or None


def alembic_config(connection: Connection) -> Config:
    """Alembic's configuration for work on this connection, inside its transaction."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _migrate(connection: Connection) -> None:
    from alembic import command
    from alembic.script import ScriptDirectory

    config = alembic_config(connection)
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    current = current_revision(connection)
    if current is not None and current not in known:
        raise Conflict(
            f"the database's schema has the revision {current!r}, which this version of Sluice "
            "does not know: newer software has written it; start that, or use another database"
        )
    command.upgrade(config, "head")


def _prepare_file(engine: Engine) -> None:
    file = sqlite_file(engine.url)
    assert file is not None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _use_wal(file)
    except (OSError, sqlite3.Error) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise StoreUnavailable(f"the database file cannot be opened: {reason}") from error


def _use_wal(file: Path) -> None:
    """Switch the file to write-ahead logging, which it then keeps.

    SQLite does not wait for other connections here as it does elsewhere, so this does.
    """
    deadline = time.monotonic() + MIGRATION_WAIT_S
    connection = sqlite3.connect(file, timeout=MIGRATION_WAIT_S, isolation_level=None)
    try:
        while True:
            try:
                connection.execute("PRAGMA journal_mode=WAL").fetchone()
                return
            except sqlite3.OperationalError as error:
                busy = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                if not busy or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
    finally:
        connection.close()
