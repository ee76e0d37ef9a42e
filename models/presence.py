"""Which processes run the jobs of a database: each holds a lock that goes when it ends.

However a process ends, its lock goes with it at once, and no clock is asked. On PostgreSQL it is an
advisory lock of a connection of its own, on SQLite a lock on an empty file beside the database.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from domain.errors import StoreUnavailable
from models.engines import sqlite_file
from models.errors import translated_errors

_BITS = 62  # of the key of an advisory lock, which has 63 and a sign
# The server then notices within a minute that this machine is no more, not within hours.
_SOON_GONE = (
    "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3"
)


class Presence(Protocol):
    """This process, by a name that no other one has, until it is closed."""

    @property
    def name(self) -> str:
        """The name under which it takes jobs."""

    def lives(self, name: str) -> bool:
        """Whether the process of this name still holds its lock. Raises StoreUnavailable."""

    def keep(self) -> None:
        """Take the lock again where it was lost. Raises StoreUnavailable."""

    def close(self) -> None:
        """Give the lock back."""


def presence(writer: Engine) -> Presence:
    """Take a lock of a new name. Raises StoreUnavailable."""
    file = sqlite_file(writer.url) if writer.dialect.name == "sqlite" else None
    return _Session(writer) if file is None else _Files(file)


class _Session:
    """On PostgreSQL. A server that restarts forgets the lock, until it is kept again."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._one_at_a_time = threading.Lock()
        self.name = f"{secrets.randbits(_BITS):016x}"
        self._connection = self._locked()

    def lives(self, name: str) -> bool:
        with translated_errors(), self._engine.begin() as connection:
            locks = text("SELECT pg_try_advisory_xact_lock(:key)")
            return not connection.execute(locks, _key(name)).scalar_one()

    def keep(self) -> None:
        with self._one_at_a_time, translated_errors():
            try:
                self._connection.execute(text("SELECT 1"))
            except DBAPIError:
                self._end()
                self._connection = self._locked()

    def close(self) -> None:
        with self._one_at_a_time:
            with suppress(DBAPIError):  # at once: a session that only ends does so when it can
                unlocks = text("SELECT pg_advisory_unlock(:key)")
                self._connection.execute(unlocks, _key(self.name))
            self._end()

    def _locked(self) -> Connection:
        with translated_errors():
            connection = self._engine.connect()
            connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.execute(text(_SOON_GONE))
            connection.execute(text("SELECT pg_advisory_lock(:key)"), _key(self.name))
        return connection

    def _end(self) -> None:
        self._connection.invalidate()  # its session ends, and the lock with it
        self._connection.close()


def _key(name: str) -> dict[str, int]:
    return {"key": int(name, 16)}


class _Files:
    """On SQLite. Files of processes that were killed go when the next process starts."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self.name = f"{secrets.randbits(_BITS):016x}"
        try:
            self._held = self._locked()
            for left in database.parent.glob(f"{database.name}-runs-*"):
                self.lives(left.name.rpartition("-")[2])
        except OSError as error:
            raise StoreUnavailable("no file can be made beside the database") from error

    def lives(self, name: str) -> bool:
        path = self._path(name)
        try:
            with path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink(missing_ok=True)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def keep(self) -> None:
        """It is lost with the process alone."""

    def close(self) -> None:
        self._path(self.name).unlink(missing_ok=True)
        self._held.close()

    def _locked(self) -> IO[bytes]:
        """The locked file; whoever starts at this moment may have removed the one just made."""
        path = self._path(self.name)
        while True:
            file = path.open("wb")
            fcntl.flock(file, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if os.path.samestat(path.stat(), os.fstat(file.fileno())):
                    return file
            file.close()

    def _path(self, name: str) -> Path:
        return self._database.with_name(f"{self._database.name}-runs-{name}")
