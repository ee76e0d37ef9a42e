"""The store: URLs, transactions, what it says when the database is away."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import URL, Engine, event, text
from sqlalchemy.exc import DBAPIError, OperationalError

from domain.errors import Conflict, InvalidInput, NotFound, StoreUnavailable
from models import engines
from models.engines import open_engines, open_migration_engine, parse_url
from models.session import Store, create_store
from tests.support.postgres import PostgresServer
from tests.support.records import GIVEN, a_pipeline, an_answer


@pytest.mark.parametrize(
    ("given", "driver", "dialect"),
    [
        ("sqlite:///var/sluice.db", "sqlite+pysqlite", "sqlite"),
        ("postgresql://me:secret@host:5433/db", "postgresql+psycopg", "postgresql"),
        ("postgres://host/db", "postgresql+psycopg", "postgresql"),
        ("postgresql+psycopg://host/db", "postgresql+psycopg", "postgresql"),
    ],
)
def test_urls_name_one_driver_each(given: str, driver: str, dialect: str) -> None:
    """The usual forms are accepted; nothing is connected to."""
    assert parse_url(given).drivername == driver
    assert create_store(given).dialect == dialect


@pytest.mark.parametrize(
    "url",
    [
        "",
        "no url",
        "mysql://me:secret@host/db",
        "sqlite://",
        "sqlite:///:memory:",
        "http://[",
        "a:b",
    ],
)
def test_other_urls_are_refused_without_repeating_them(url: str) -> None:
    """The error names the field and the rule, and never shows a password."""
    with pytest.raises(InvalidInput) as refused:
        create_store(url)
    assert refused.value.field == "database_url"
    assert "expected" in refused.value.detail
    assert "secret" not in refused.value.detail


def test_errors_do_not_tell_what_was_to_be_stored(database_url: str) -> None:
    """They are logged, and what is stored is somebody's."""
    engine = open_migration_engine(parse_url(database_url))
    try:
        with engine.connect() as connection, pytest.raises(DBAPIError) as raised:
            connection.execute(text("SELECT :value FROM no_table"), {"value": "a secret"})
    finally:
        engine.dispose()
    assert "no_table" in str(raised.value)
    assert "a secret" not in str(raised.value)


def test_an_error_rolls_everything_back(store: Store) -> None:
    """A unit of work is stored as a whole or not at all."""
    answer = an_answer()

    def fail_half_way() -> None:
        with store.unit_of_work() as work:
            work.answers.add(answer)
            work.profiles.create("gam", a_pipeline(), GIVEN)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    with store.reading() as work:
        assert work.profiles.list(limit=5) == []
        with pytest.raises(NotFound):
            work.answers.get(answer.id)


def test_a_reading_changes_nothing(store: Store) -> None:
    """The database refuses a write there, and the connection serves on."""
    for _ in range(3):
        with pytest.raises(Exception, match=r"(?i)read.?only|not usable"), store.reading() as work:
            work.profiles.create("gam", a_pipeline(), GIVEN)
    with store.reading() as work:
        assert work.profiles.list(limit=5) == []
    with store.unit_of_work() as work:
        work.profiles.create("gam", a_pipeline(), GIVEN)


def test_a_disposed_store_opens_again(store: Store) -> None:
    """Dispose closes connections, no more."""
    store.ping()
    store.dispose()
    store.ping()


def test_ping_needs_the_schema(empty_database_url: str) -> None:
    """A database without it is not ready."""
    store = create_store(empty_database_url)
    with pytest.raises(StoreUnavailable):
        store.ping()
    store.upgrade()
    store.ping()
    store.dispose()


def test_a_server_that_is_away_is_said_without_the_password(tmp_path: Path) -> None:
    """Every door of the store says the same."""
    store = create_store(f"postgresql://me:secret@/db?host={tmp_path}")
    for call in (store.upgrade, store.ping, lambda: _one_answer(store)):
        with pytest.raises(StoreUnavailable) as away:
            call()
        assert "secret" not in away.value.detail
    store.dispose()


def test_sqlite_is_opened_as_promised(sqlite_store: Store, tmp_path: Path) -> None:
    """Write-ahead logging, foreign keys, NORMAL; SQLite's own wait is for readings."""
    sqlite_store.ping()
    both = open_engines(parse_url(f"sqlite:///{tmp_path / 'sluice.db'}"))
    for engine, wait_ms in zip(both, (10, 5_000), strict=True):
        with engine.connect() as connection:
            found = {
                name: connection.execute(text(f"PRAGMA {name}")).scalar_one()
                for name in ("journal_mode", "foreign_keys", "synchronous", "busy_timeout")
            }
        engine.dispose()
        assert found == {
            "journal_mode": "wal",
            "foreign_keys": 1,
            "synchronous": 1,
            "busy_timeout": wait_ms,
        }


def test_units_of_work_on_sqlite_take_the_lock_at_once(sqlite_store: Store, tmp_path: Path) -> None:
    """A writer before its first statement; a reader never, and it sees one state to its end."""
    with closing(sqlite3.connect(tmp_path / "sluice.db", timeout=0)) as other:
        with sqlite_store.unit_of_work(), pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        with sqlite_store.reading() as reading:
            assert reading.profiles.list(limit=1) == []
            other.execute("BEGIN IMMEDIATE")
            other.rollback()
            with sqlite_store.unit_of_work() as work:
                work.profiles.create("p", a_pipeline(), GIVEN)
            assert reading.profiles.list(limit=1) == []


def test_a_commit_that_fails_leaves_no_transaction(sqlite_store: Store, tmp_path: Path) -> None:
    """Neither another process nor the next unit of work finds the lock taken."""

    def fail_at_the_end() -> None:
        with sqlite_store.unit_of_work() as work:
            work.profiles.create("lost", a_pipeline(), GIVEN)
            opened = work._connection
            opened.execute(text("PRAGMA defer_foreign_keys=ON"))
            opened.execute(text("INSERT INTO answer_body (answer_id, body) VALUES ('none', x'00')"))

    with pytest.raises(Conflict):
        fail_at_the_end()
    with closing(sqlite3.connect(tmp_path / "sluice.db", timeout=0)) as other:
        other.execute("BEGIN IMMEDIATE")
    with sqlite_store.unit_of_work() as work:
        assert work.profiles.list(limit=1) == []


def test_a_file_without_a_log_is_committed_once_it_is_not_read(tmp_path: Path) -> None:
    """A file system may refuse write-ahead logging: a commit then waits, as a begin does."""
    file = tmp_path / "sluice.db"
    store = create_store(f"sqlite:///{file}")
    store.upgrade()
    with closing(sqlite3.connect(file)) as other:
        assert other.execute("PRAGMA journal_mode=DELETE").fetchone() == ("delete",)
    writer, _ = open_engines(parse_url(f"sqlite:///{file}"))
    with writer.connect() as connection:
        assert connection.execute(text("PRAGMA busy_timeout")).scalar_one() == 5_000
    writer.dispose()
    store.dispose()


def test_every_page_of_answers_uses_an_index(sqlite_store: Store, tmp_path: Path) -> None:
    """Whatever the filters: no scan of the table and no sort, at any depth."""
    choices: tuple[tuple[Any, ...], ...] = (
        (None, "gam"),
        (None, 1),
        (None, 4096),
        (None, "exact"),
        (None, an_answer().id),
    )
    with recorded() as statements, sqlite_store.reading() as work:
        for profile, revision, size, strategy, after in product(*choices):
            work.answers.list(
                profile=profile,
                revision=revision,
                message_bytes=size,
                strategy=strategy,
                after=after,
                limit=100,
            )
        work.answers.find("0" * 64)
    writer, _ = open_engines(parse_url(f"sqlite:///{tmp_path / 'sluice.db'}"))
    asked = [(sql, values) for sql, values in statements if sql.startswith("SELECT answer.")]
    assert len(asked) == 2 ** len(choices) + 1
    with writer.connect() as connection:
        for sql, values in asked:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values).fetchall()
            steps = [str(row[-1]) for row in plan]
            assert all("USING INDEX" in step for step in steps), (sql, steps)
            assert not any("TEMP B-TREE" in step for step in steps), (sql, steps)
    writer.dispose()


def test_a_start_at_the_head_imports_no_alembic(tmp_path: Path) -> None:
    """And importing the room opens nothing and brings no driver along."""
    url = f"sqlite:///{tmp_path / 'sluice.db'}"
    store = create_store(url)
    store.upgrade()
    store.dispose()
    program = (
        "import sys\n"
        "from models.session import create_store\n"
        "assert not {'psycopg', 'alembic'} & set(sys.modules), 'imported with the room'\n"
        f"store = create_store({url!r})\n"
        "store.upgrade()\n"
        "store.ping()\n"
        "assert 'alembic' not in sys.modules, 'imported at the head'\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@contextmanager
def recorded() -> Iterator[list[tuple[str, Any]]]:
    """Every statement that any engine runs in the block, with its values."""
    statements: list[tuple[str, Any]] = []

    def record(*seen: Any) -> None:
        statements.append((seen[2], seen[3]))

    event.listen(Engine, "before_cursor_execute", record)
    try:
        yield statements
    finally:
        event.remove(Engine, "before_cursor_execute", record)


def _one_answer(store: Store) -> None:
    with store.unit_of_work() as work:
        work.answers.add(an_answer())


def test_postgresql_is_opened_as_promised(postgres: PostgresServer) -> None:
    """Statements, and waits for locks, have an end; those of a migration have none."""
    with postgres.empty_database() as url:
        seen = []
        for engine in (*open_engines(parse_url(url)), open_migration_engine(parse_url(url))):
            with engine.connect() as connection:
                found = {
                    name: connection.execute(text(f"SHOW {name}")).scalar_one()
                    for name in ("statement_timeout", "lock_timeout")
                }
            engine.dispose()
            seen.append((found["statement_timeout"], found["lock_timeout"]))
        assert seen == [("5s", "5s"), ("5s", "5s"), ("0", "0")]


@pytest.mark.parametrize(
    ("opened", "wait_s"), [(lambda url: open_engines(url)[0], 5), (open_migration_engine, 60)]
)
def test_another_process_is_waited_for(
    opened: Callable[[URL], Engine], wait_s: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration waits longer: it may take its time with a large database. A second each look."""
    file, clock, here = tmp_path / "sluice.db", count(), threading.get_ident()

    def monotonic() -> float:
        """Servers of other tests write in other threads meanwhile."""
        return next(clock) if threading.get_ident() == here else time.monotonic()

    monkeypatch.setattr(engines, "time", SimpleNamespace(monotonic=monotonic))
    engine = opened(parse_url(f"sqlite:///{file}"))
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode=WAL")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OperationalError, match="locked"), engine.connect() as connection:
            connection.execute(text("SELECT 1"))
        assert next(clock) == wait_s + 1
        other.execute("ROLLBACK")
        with engine.connect() as connection:
            assert connection.execute(text("SELECT 1")).scalar_one() == 1
    engine.dispose()
