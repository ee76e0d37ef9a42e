"""Migrations: up, down and up again, on both databases, and never apart from the metadata."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, MetaData, func, inspect, select, text

import models.rows
from domain.errors import Conflict, StoreUnavailable
from models.base import Base
from models.engines import open_engines, parse_url
from models.schema import HEAD, alembic_config, current_revision
from models.session import create_store
from tests.models.test_collection import fill
from tests.support.counts import is_campaign
from tests.support.records import GIVEN, a_pipeline


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    """One transaction on the database."""
    writer, reader = open_engines(parse_url(url))
    with writer.begin() as connection:
        yield connection
    writer.dispose()
    reader.dispose()


def test_up_down_and_up_again(empty_database_url: str) -> None:
    """Each time the same schema; going down leaves nothing but Alembic's own table."""
    seen = []
    for _ in range(2):
        with connected(empty_database_url) as connection:
            command.upgrade(alembic_config(connection), "head")
        with connected(empty_database_url) as connection:
            seen.append(_schema(connection))
            assert current_revision(connection) == HEAD
            command.downgrade(alembic_config(connection), "base")
        with connected(empty_database_url) as connection:
            assert inspect(connection).get_table_names() == ["alembic_version"]
            assert current_revision(connection) is None
            assert _triggers(connection) == 0
    assert seen[0] == seen[1]
    store = create_store(empty_database_url)
    store.upgrade()
    with store.unit_of_work() as work:
        work.profiles.create("gam", a_pipeline(), GIVEN)
    store.dispose()


def test_every_migration_can_be_undone_and_redone(empty_database_url: str) -> None:
    """Step by step to the base and back to the head."""
    with connected(empty_database_url) as connection:
        config = alembic_config(connection)
        revisions = list(ScriptDirectory.from_config(config).walk_revisions())
        command.upgrade(config, "head")
        for script in revisions:
            command.downgrade(config, "-1")
            command.upgrade(config, "+1")
            command.downgrade(config, "-1")
            assert current_revision(connection) == (script.down_revision or None)
        command.upgrade(config, "head")
        assert current_revision(connection) == HEAD


def test_the_migrated_schema_is_that_of_the_metadata(database_url: str) -> None:
    """Alembic finds no difference in tables, columns, types, keys and indexes."""
    with connected(database_url) as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
        names = {
            constraint["name"] for constraint in inspect(connection).get_check_constraints("job")
        }
    assert names == {"ck_job_state", "ck_job_end", "ck_job_runner", "ck_job_cancel"}
    assert len(Base.metadata.tables) == len(models.rows.__all__)


def test_the_head_that_a_start_looks_for_is_the_newest_migration(database_url: str) -> None:
    """The constant spares a start at the head the import of Alembic."""
    with connected(database_url) as connection:
        script = ScriptDirectory.from_config(alembic_config(connection))
        assert script.get_heads() == [HEAD]


def test_upgrade_is_repeatable_and_keeps_what_is_stored(empty_database_url: str) -> None:
    """A second start changes nothing."""
    for _ in range(2):
        store = create_store(empty_database_url)
        store.upgrade()
        store.ping()
        with store.unit_of_work() as work:
            work.profiles.save("gam", a_pipeline(), GIVEN)
        store.dispose()
    store = create_store(empty_database_url)
    with store.reading() as work:
        assert work.profiles.get("gam").latest == 2
    store.dispose()


def test_a_database_of_newer_software_is_refused(database_url: str) -> None:
    """The message names the revision, and the database is left as it is."""
    with connected(database_url) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 'from_the_future'"))
    store = create_store(database_url)
    with pytest.raises(Conflict, match=r"'from_the_future'.*newer software"):
        store.upgrade()
    store.dispose()
    with connected(database_url) as connection:
        assert current_revision(connection) == "from_the_future"
        assert inspect(connection).has_table("answer")


def test_a_failed_migration_leaves_the_old_schema(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On both databases the whole upgrade is one transaction."""

    def fail(*_arguments: object) -> None:
        raise RuntimeError("power cut")

    store = create_store(empty_database_url)
    with monkeypatch.context() as patched:
        patched.setattr("alembic.op.create_index", fail)
        with pytest.raises(RuntimeError, match="power cut"):
            store.upgrade()
    with connected(empty_database_url) as connection:
        assert inspect(connection).get_table_names() == []
    store.upgrade()
    store.ping()
    store.dispose()


def test_a_revision_cannot_be_changed_even_by_sql(database_url: str) -> None:
    """The database itself refuses an UPDATE."""
    store = create_store(database_url)
    with store.unit_of_work() as work:
        work.profiles.create("gam", a_pipeline(), GIVEN)
    store.dispose()
    with (
        pytest.raises(Exception, match="revisions are immutable"),
        connected(database_url) as connection,
    ):
        connection.execute(text("UPDATE revision SET detail = 'changed'"))


@pytest.mark.parametrize(
    ("constraint", "state", "cancel_requested"),
    [("end", "done", False), ("runner", "running", False), ("cancel", "queued", True)],
)
def test_states_that_contradict_themselves_are_refused(
    database_url: str, constraint: str, state: str, cancel_requested: bool
) -> None:
    """By the database: an end without a time, a run without a runner, a cancel that waits."""
    columns = "id, kind, state, request, created_at, claim, cancel_requested"
    values = "'a', 'optimize', :state, '', '2024-01-01', 0, :asked"
    with (
        pytest.raises(Exception, match=f"ck_job_{constraint}"),
        connected(database_url) as connection,
    ):
        connection.execute(
            text(f"INSERT INTO job ({columns}) VALUES ({values})"),
            {"state": state, "asked": cancel_requested},
        )


def test_the_folder_of_a_sqlite_file_is_made(tmp_path: Path) -> None:
    """Also several levels of it."""
    file = tmp_path / "new" / "folder with spaces" / "sluice.db"
    store = create_store(f"sqlite:///{file}")
    store.upgrade()
    store.dispose()
    assert file.is_file()


def test_a_sqlite_file_that_cannot_be_is_said(tmp_path: Path) -> None:
    """A file in place of its folder, and a file that is no database."""
    (tmp_path / "file").write_text("no folder")
    store = create_store(f"sqlite:///{tmp_path / 'file' / 'sluice.db'}")
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        store.upgrade()
    (tmp_path / "text.db").write_text("this is no database\n" * 100)
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        create_store(f"sqlite:///{tmp_path / 'text.db'}").upgrade()


def _schema(connection: Connection) -> dict[str, tuple[str, ...]]:
    found = inspect(connection)
    return {
        table: (
            *(f"{column['name']} {column['type']}" for column in found.get_columns(table)),
            *sorted(str(index["name"]) for index in found.get_indexes(table)),
        )
        for table in sorted(found.get_table_names())
    }


def _triggers(connection: Connection) -> int:
    catalogue = {
        "sqlite": "SELECT count(*) FROM sqlite_master WHERE type = 'trigger'",
        "postgresql": "SELECT count(*) FROM pg_proc WHERE proname = 'revision_immutable'",
    }
    return int(connection.execute(text(catalogue[connection.dialect.name])).scalar_one())


def _neighbours() -> list[tuple[str, str]]:
    """Versions between which replicas are upgraded while they run: from this one on."""
    folder = Path(models.rows.__file__).parents[2] / "migrations" / "versions"
    found = sorted(file.name[:4] for file in folder.glob("[0-9]*.py"))
    return [pair for pair in itertools.pairwise(found) if pair[0] >= "0012"]


@pytest.mark.parametrize(("before", "after"), _neighbours())
def test_software_of_the_version_before_goes_on(
    empty_database_url: str, before: str, after: str
) -> None:
    """Of two replicas one is upgraded first: the other one reads and writes as it did meanwhile.

    Its tables are those of its own schema; so a migration only adds, and what it adds needs no
    value of who does not know it.
    """
    with connected(empty_database_url) as connection:
        command.upgrade(alembic_config(connection), before)
    earlier = MetaData()
    with connected(empty_database_url) as connection:
        earlier.reflect(connection)
        fill(connection, random.Random(1), earlier.tables)
        written = _read(connection, earlier)
    with connected(empty_database_url) as connection:
        command.upgrade(alembic_config(connection), after)
    with connected(empty_database_url) as connection:
        assert _read(connection, earlier) == written
        for table in reversed(earlier.sorted_tables):
            if table.name != "alembic_version":
                connection.execute(table.delete())
        fill(connection, random.Random(1), earlier.tables)
        assert _read(connection, earlier) == written
        job = earlier.tables["job"]
        connection.execute(job.update().where(job.c.state == "queued").values(claim=7))


def _read(connection: Connection, schema: MetaData) -> dict[str, list[str]]:
    return {
        table.name: sorted(map(str, connection.execute(select(table)).all()))
        for table in schema.sorted_tables
        if table.name != "alembic_version"
    }


def test_a_migration_that_is_killed_changes_nothing(empty_database_url: str) -> None:
    """At whichever statement: the schema and the rows of before are there, and the next start
    migrates them.
    """
    with connected(empty_database_url) as connection:
        command.upgrade(alembic_config(connection), "0012")
    earlier = MetaData()
    with connected(empty_database_url) as connection:
        earlier.reflect(connection)
        fill(connection, random.Random(2), earlier.tables)
        written = _read(connection, earlier)
    numbers = range(2, 62, 3) if is_campaign() else (9, 33, 57)
    script = [sys.executable, "-m", "tests.models.killed_upkeep", "upgrade", empty_database_url]
    ran = subprocess.run(
        [*script, ",".join(map(str, numbers))],
        cwd=Path(models.rows.__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.split()[2] for line in ran.stdout.splitlines()] == ["True"] * len(numbers)
    with connected(empty_database_url) as connection:
        assert current_revision(connection) == "0012"
        assert _read(connection, earlier) == written
    store = create_store(empty_database_url)
    store.upgrade()
    store.dispose()
    with connected(empty_database_url) as connection:
        assert current_revision(connection) == HEAD
        counts = {name: len(rows) for name, rows in written.items()}
        assert {
            name: connection.scalar(select(func.count()).select_from(table))
            for name, table in earlier.tables.items()
            if name in counts
        } == counts
