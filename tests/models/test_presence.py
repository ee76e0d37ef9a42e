"""models/presence.py: a lock that goes with its process, on every database."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from domain.errors import StoreUnavailable
from models.session import Store, create_store
from tests.support.postgres import PostgresServer

CHECKOUT = Path(__file__).parents[2]
_HOLDS = """
import sys
from models.session import create_store
held = create_store(sys.argv[1]).presence()
print(held.name, flush=True)
sys.stdin.read()
"""


def test_it_lives_until_it_is_closed(store: Store) -> None:
    """Also for another one in this process."""
    first, second = store.presence(), store.presence()
    assert first.name != second.name
    assert first.lives(second.name)
    assert second.lives(first.name)
    first.close()
    assert not second.lives(first.name)
    assert second.lives(second.name)
    second.close()


def test_a_killed_process_lives_no_more(database_url: str) -> None:
    """At once, and nothing of it is left."""
    store = create_store(database_url)
    here = store.presence()
    command = [sys.executable, "-c", _HOLDS, database_url]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=CHECKOUT, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        assert here.lives(name)
        process.kill()
    while here.lives(name):  # PostgreSQL notices a moment later
        pass
    here.close()
    store.dispose()


def test_a_lock_that_the_server_forgot_is_taken_again(postgres: PostgresServer) -> None:
    """As after a restart of PostgreSQL; not while it is away."""
    with postgres.database() as url:
        store = create_store(url)
        here, other = store.presence(), store.presence()
        here.keep()
        assert other.lives(here.name)
        plain = make_url(url).set(drivername="postgresql")
        with psycopg.connect(plain.render_as_string(hide_password=False)) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_database ON oid = database"
                " WHERE locktype = 'advisory' AND datname = current_database()"
            )
        while other.lives(here.name):
            pass
        here.keep()
        assert other.lives(here.name)
        here.close()
        other.close()
        store.dispose()


def test_what_killed_processes_left_is_removed(tmp_path: Path) -> None:
    """Beside a SQLite file, by the next process that starts; its own when it ends."""
    store = create_store(f"sqlite:///{tmp_path / 'it.db'}")
    (tmp_path / "it.db-runs-0000000000000007").touch()
    (tmp_path / "other.db-runs-0000000000000007").touch()
    held = store.presence()
    kept = {"other.db-runs-0000000000000007", f"it.db-runs-{held.name}"}
    assert {path.name for path in tmp_path.iterdir()} == kept
    held.close()
    assert [path.name for path in tmp_path.iterdir()] == ["other.db-runs-0000000000000007"]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """Is said as of a database that cannot be used."""
    store = create_store(f"sqlite:///{tmp_path / 'nowhere' / 'it.db'}")
    with pytest.raises(StoreUnavailable):
        store.presence()
