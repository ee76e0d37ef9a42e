"""Engines: how the two databases are opened.

SQLite has one writer at a time. Units of work therefore go through an engine of one connection,
where threads of this process queue in order, and begin with BEGIN IMMEDIATE, where processes wait
for each other (`busy_timeout`): a transaction that read first and wrote later could be refused
half-way. Readings have connections of their own, see the last commit (WAL), and wait for nobody.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from domain.errors import InvalidInput

WAIT_S = 60.0
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


def sqlite_file(url: URL) -> Path | None:
    """The file of a SQLite URL, or None for one in memory."""
    path = url.database
    if not path or path == ":memory:" or path.startswith("file:"):
        return None
    return Path(path)


def open_engines(url: URL) -> tuple[Engine, Engine]:
    """(for units of work, for readings). Connects to nothing yet."""
    if url.get_backend_name() == "sqlite":
        return _sqlite_engine(url, "BEGIN IMMEDIATE"), _sqlite_engine(url, "BEGIN")
    engine = create_engine(
        url,
        pool_size=8,
        max_overflow=24,
        pool_timeout=WAIT_S,
        pool_pre_ping=True,  # a restarted server costs no request an error
        connect_args={"connect_timeout": 10, "application_name": "sluice"},
    )
    return engine, engine.execution_options(postgresql_readonly=True)


def _sqlite_engine(url: URL, begin: str) -> Engine:
    writes = begin != "BEGIN"
    engine = create_engine(
        url,
        pool_size=1 if writes else 8,
        max_overflow=0 if writes else 24,
        pool_timeout=WAIT_S,
        connect_args={"check_same_thread": False, "timeout": WAIT_S},
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # the driver begins nothing: the listener below does
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA synchronous=NORMAL")
        if not writes:
            connection.execute("PRAGMA query_only=ON")

    @event.listens_for(engine, "begin")
    def start(connection: Any) -> None:
        connection.exec_driver_sql(begin)

    return engine


def _refused(rule: str) -> InvalidInput:
    return InvalidInput(rule, field="database_url")
