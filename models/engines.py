"""Engines: how the two databases are opened.

SQLite has one writer at a time. Units of work therefore go through an engine of one connection,
where threads of this process queue in order, and begin with BEGIN IMMEDIATE, where processes wait
for each other: a transaction that read first and wrote later could be refused half-way. Readings
have connections of their own, see the last commit (WAL), and wait for nobody.

On both databases a wait that takes longer than LIMIT_S ends as StoreUnavailable: the caller is
asked to come again, instead of holding up what is behind it. So does a connection that died without
a word, as behind a firewall that forgot it. Migrations are outside that limit.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sqlalchemy import URL, Engine, PoolProxiedConnection, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from domain.errors import InvalidInput

MAX_IDLE_S = 20.0  # of a transaction that writes, between its statements, on PostgreSQL
LIMIT_S = 5.0  # of a statement, and of each wait for a lock or a connection
MIGRATION_WAIT_S = 60.0  # for another process that migrates
WRITE_CONNECTIONS = 8
_READ_CONNECTIONS = 8
# SQLite looks after 1, 2, 5 ms, and in the end every 100 ms, which among many writers is too seldom
# to get a turn: after so long it begins anew.
_LOOK_MS = 10
_POSTGRESQL = ("postgresql", "postgres", "postgresql+psycopg")


def parse_url(text: str) -> URL:
    """The URL with the driver that is used. Raises InvalidInput, which does not repeat the URL."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise _refused("expected sqlite:///path or postgresql://host/database") from None
    if url.drivername in _POSTGRESQL:
        return url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("sqlite", "sqlite+pysqlite"):
        raise _refused("expected a database URL that begins with sqlite: or postgresql:")
    if sqlite_file(url) is None:
        raise _refused("expected the path of a SQLite file; a database in memory is not shared")
    return url.set(drivername="sqlite+pysqlite")


def database_folder(url: str) -> Path | None:
    """Return the folder of a SQLite database; None where the database is a server's."""
    known = parse_url(url)
    file = sqlite_file(known) if known.get_backend_name() == "sqlite" else None
    return None if file is None else file.absolute().parent


def sqlite_file(url: URL) -> Path | None:
    """The file of a SQLite URL, or None for one in memory."""
    path = url.database
    if not path or path == ":memory:" or path.startswith("file:"):
        return None
    return Path(path)


def open_engines(url: URL) -> tuple[Engine, Engine]:
    """(for units of work, for readings), which share no connection. Connects to nothing yet."""
    if url.get_backend_name() == "sqlite":
        return (
            _sqlite_engine(url, "BEGIN IMMEDIATE", wait_s=LIMIT_S),
            _sqlite_engine(url, "BEGIN", wait_s=LIMIT_S),
        )
    writer = _postgresql_engine(url, WRITE_CONNECTIONS)
    reader = _postgresql_engine(url, _READ_CONNECTIONS)
    _limit(reader)
    # A process that is stopped in the middle of a write holds up who would take over its jobs.
    _limit(writer, idle_in_transaction_session_timeout=MAX_IDLE_S)
    return writer, reader.execution_options(postgresql_readonly=True)


def open_migration_engine(url: URL) -> Engine:
    """One connection, without a limit on statements, which waits until others have migrated."""
    if url.get_backend_name() == "sqlite":
        return _sqlite_engine(url, "BEGIN IMMEDIATE", wait_s=MIGRATION_WAIT_S)
    return _postgresql_engine(url, 1)


# What is sent and not taken for 4 s, or does not answer three looks, is a connection that is gone:
# the kernel would find out after a quarter of an hour. A slow statement answers looks.
_SILENT: Mapping[str, int] = MappingProxyType(
    {
        "tcp_user_timeout": 4000,
        "keepalives": 1,
        "keepalives_idle": 2,
        "keepalives_interval": 1,
        "keepalives_count": 3,
    }
)


def _postgresql_engine(url: URL, connections: int) -> Engine:
    silent = {name: value for name, value in _SILENT.items() if name not in url.query}
    return create_engine(
        url,
        hide_parameters=True,  # an error is logged, and what was to be stored is not
        pool_size=connections,
        max_overflow=connections,
        pool_timeout=LIMIT_S,
        pool_pre_ping=True,  # a restarted server costs no request an error
        connect_args={"connect_timeout": 10, "application_name": "sluice", **silent},
    )


def _limit(engine: Engine, **more_s: float) -> None:
    """Have PostgreSQL end statements that take, or wait for a lock, longer than LIMIT_S."""
    limits_s = {"lock_timeout": LIMIT_S, "statement_timeout": LIMIT_S, **more_s}

    @event.listens_for(engine, "connect")
    def limit(connection: Any, _record: object) -> None:
        for name, seconds in limits_s.items():
            connection.execute(f"SET {name} = {round(seconds * 1e3)}")
        connection.commit()


def _sqlite_engine(url: URL, begin: str, *, wait_s: float) -> Engine:
    writes = begin != "BEGIN"
    engine = create_engine(
        url,
        hide_parameters=True,  # an error is logged, and what was to be stored is not
        pool_size=1 if writes else _READ_CONNECTIONS,
        max_overflow=0 if writes else 24,
        pool_timeout=wait_s,
        connect_args={"check_same_thread": False, "timeout": wait_s},
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # the driver begins nothing: do_begin does
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA synchronous=NORMAL")
        if not writes:
            connection.execute("PRAGMA query_only=ON")
        elif connection.execute("PRAGMA journal_mode").fetchone() == ("wal",):
            # Without a log (a file system may not take one) a commit waits as well, for readings.
            connection.execute(f"PRAGMA busy_timeout={_LOOK_MS}")

    def start(connection: PoolProxiedConnection) -> None:
        # Not a listener: SQLAlchemy would then ask for listeners at each step of each statement.
        assert connection.dbapi_connection is not None
        cursor, latest_s = connection.dbapi_connection.cursor(), time.monotonic() + wait_s
        while True:
            try:
                cursor.execute(begin)
                return
            except sqlite3.OperationalError as refusal:
                is_busy = refusal.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or time.monotonic() >= latest_s:
                    raise

    engine.dialect.do_begin = start  # type: ignore[assignment]
    return engine


def _refused(rule: str) -> InvalidInput:
    return InvalidInput(rule, field="database_url")
