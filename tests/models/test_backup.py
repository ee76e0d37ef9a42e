"""Backups of either database, taken under writes, restored into either, killed at each step."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import Connection, text

from app.cli import main
from domain.errors import Conflict, InvalidInput, NotFound
from models.backup import backup
from models.restore import restore
from models.schema import alembic_config
from models.session import Store, create_store
from tests.conftest import DIALECTS
from tests.models.test_collection import Row, bytes_by_owner, connected, everything, fill
from tests.support.counts import count
from tests.support.postgres import PostgresServer
from tests.support.records import GIVEN, TIMESTAMP, a_key, a_pipeline, an_answer

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=DIALECTS)
def target_url(
    request: pytest.FixtureRequest, tmp_path: Path, postgres: PostgresServer
) -> Iterator[str]:
    """Where to restore: a database without a schema, on each database in turn."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'target.db'}"
    else:
        with postgres.empty_database() as url:
            yield url


@pytest.fixture
def filled_url(database_url: str) -> str:
    """A database with something in every table, and references between it."""
    with connected(database_url) as connection:
        fill(connection, random.Random(7))
        assert all(
            everything(connection)[name] for name in ("job", "fit", "active_table", "runner")
        )
    return database_url


def restored(target: Connection) -> dict[str, list[Row]]:
    """All rows but the one that says who restored them, which is the newest and there once."""
    found = everything(target)
    notes = [row for row in found["change"] if row["action"] == "database.restore"]
    assert [(row["made_by"], row["subject"]) for row in notes] == [("command line", "backup")]
    return {**found, "change": [row for row in found["change"] if row not in notes]}


def test_what_is_restored_is_what_was_there(
    filled_url: str, target_url: str, tmp_path: Path
) -> None:
    """Every row and byte, from and into either database; the file is its owner's alone."""
    file = tmp_path / "backup"
    counts = backup(filled_url, file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(found.name for found in tmp_path.glob("*backup*")) == ["backup"]
    assert restore(file, target_url) == counts
    with connected(filled_url) as source, connected(target_url) as target:
        assert restored(target) == everything(source)
    store = create_store(target_url)
    store.upgrade()  # a start finds nothing to do
    with store.unit_of_work() as unit:
        unit.profiles.create("new", a_pipeline(), GIVEN)
    store.dispose()


@pytest.mark.long
def test_what_was_confirmed_before_it_began_is_in_it(
    store: Store, database_url: str, target_url: str, tmp_path: Path
) -> None:
    """While others write, and each answer with its body, which are two tables."""
    confirmed: list[str] = []
    stop = threading.Event()

    def write(number: int) -> None:
        while not stop.wait(0.01):
            answer = an_answer(question_digest=f"{number}")
            with store.unit_of_work() as unit:
                unit.answers.add(answer)
            confirmed.append(answer.id)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        for number in range(count(20, share=10)):
            while len(confirmed) < 5 * (number + 1):
                stop.wait(0.001)
            before = list(confirmed)
            backup(database_url, tmp_path / f"backup{number}")
            with closing(sqlite3.connect(tmp_path / f"backup{number}")) as opened:
                found = {row[0] for row in opened.execute("SELECT id FROM answer")}
                bodies = {row[0] for row in opened.execute("SELECT answer_id FROM answer_body")}
            assert found >= set(before)
            assert found == bodies
            restore(tmp_path / f"backup{number}", target_url, replace=number > 0)
            with connected(target_url) as target:
                assert set(target.scalars(text("SELECT id FROM answer"))) == found
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def killed(verb: str, url: str, file: Path) -> list[tuple[str, str, bool, bool]]:
    """(function, call, whether it was killed there, whether the file is there), for each step."""
    script = [sys.executable, "-m", "tests.models.killed_upkeep", verb, url, str(file)]
    ran = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=True)
    found = [line.split() for line in ran.stdout.splitlines()]
    return [(name, call, dead == "True", there == "True") for name, call, dead, there in found]


def test_a_backup_that_is_killed_is_none(filled_url: str, tmp_path: Path) -> None:
    """The file is not there, or complete; the database goes on, and another backup is taken."""
    file = tmp_path / "backup"
    steps = killed("backup", filled_url, file)
    assert sum(dead for _, _, dead, _ in steps) == 4
    for name, _, dead, there in steps:
        assert there == (name == "unlink" or not dead)
    counts = backup(filled_url, file)
    with closing(sqlite3.connect(file)) as opened:
        assert opened.execute("SELECT count(*) FROM job").fetchone() == (counts["job"],)


def test_a_restore_that_is_killed_leaves_nothing(
    new_sqlite: Callable[[Path], str], target_url: str, tmp_path: Path
) -> None:
    """An empty database, into which the next restore goes."""
    file, url = tmp_path / "backup", new_sqlite(tmp_path)
    with connected(url) as source:
        fill(source, random.Random(7))
        expected = everything(source)
    backup(url, file)
    steps = killed("restore", target_url, file)
    assert all(dead for _, _, dead, _ in steps), steps
    with connected(target_url) as target:
        assert not any(everything(target).values())
    restore(file, target_url)
    with connected(target_url) as target:
        assert restored(target) == expected


def test_what_owners_store_is_counted_anew(
    filled_url: str, target_url: str, tmp_path: Path
) -> None:
    """A figure that software of before has left wrong is right in what is restored."""
    with connected(filled_url) as source:
        source.execute(text("UPDATE owner_bytes SET stored_bytes = 7"))
        expected = bytes_by_owner(everything(source))
    backup(filled_url, tmp_path / "backup")
    restore(tmp_path / "backup", target_url)
    with connected(target_url) as target:
        found = everything(target)["owner_bytes"]
    assert {row["owner"]: row["stored_bytes"] for row in found} == expected


def test_what_is_there_is_replaced_only_when_told(
    filled_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And then all of it goes; what was refused changes nothing."""
    file = tmp_path / "backup"
    monkeypatch.setenv("SLUICE_DATABASE_URL", filled_url)
    assert main(["admin", "backup", str(file)]) == 0
    assert main(["admin", "backup", str(file)]) == 5
    with connected(filled_url) as source:
        expected = everything(source)
    store = create_store(filled_url)
    with store.unit_of_work() as unit:
        unit.profiles.create("later", a_pipeline(), GIVEN)
    assert main(["admin", "restore", str(file)]) == 5
    assert "rows of profile" in capsys.readouterr().err
    with store.reading() as unit:
        unit.profiles.get("later")
    store.dispose()
    assert main(["admin", "restore", str(file), "--replace"]) == 0
    with connected(filled_url) as target:
        assert restored(target) == expected


@pytest.mark.parametrize("with_keys", [True, False])
def test_a_key_that_was_revoked_since_stays_so(
    store: Store, database_url: str, tmp_path: Path, with_keys: bool
) -> None:
    """Where the database that is replaced knows of it; without keys none is left."""
    kept, revoked, exchanged, made_since = a_key(), a_key(), a_key(), a_key()
    with store.unit_of_work() as unit:
        for key in (kept, revoked, exchanged):
            unit.api_keys.add(key)
    backup(database_url, tmp_path / "backup")
    with store.unit_of_work() as unit:
        unit.api_keys.add(made_since)
        ended = unit.api_keys.revoke(revoked.id)
        unit.api_keys.expire(exchanged.id, TIMESTAMP)
    options = [] if with_keys else ["--without-keys"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SLUICE_DATABASE_URL", database_url)
        assert main(["admin", "restore", str(tmp_path / "backup"), "--replace", *options]) == 0
    with store.reading() as unit:
        found = {key.id: key for key in unit.api_keys.list()}
        usable = {key.id for key in unit.api_keys.usable()}
    assert set(found) == ({kept.id, revoked.id, exchanged.id} if with_keys else set())
    assert usable == ({kept.id} if with_keys else set())
    if with_keys:
        assert found[revoked.id] == ended


def test_a_backup_of_earlier_software_is_brought_up_to_date(
    filled_url: str, target_url: str, tmp_path: Path
) -> None:
    """In a copy: the file stays as it is, also where nobody may write to it."""
    file = tmp_path / "backup"
    counts = backup(filled_url, file)
    with connected(f"sqlite:///{file}") as connection:
        command.downgrade(alembic_config(connection), "0012")
    file.chmod(0o400)
    before = file.read_bytes()
    found = restore(file, target_url)
    assert file.read_bytes() == before
    assert {name: found[name] for name in ("job", "answer", "revision", "trace")} == {
        name: counts[name] for name in ("job", "answer", "revision", "trace")
    }


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _other(file: Path) -> None:
    with closing(sqlite3.connect(file)) as opened, opened:
        opened.execute("UPDATE alembic_version SET version_num = 'from_the_future'")


def _dangling(file: Path) -> None:
    with closing(sqlite3.connect(file)) as opened, opened:
        opened.execute("DELETE FROM answer")


def _foreign(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as opened, opened:
        opened.execute("CREATE TABLE other (id INTEGER)")


@pytest.mark.parametrize(
    ("harm", "refusal"),
    [
        (_cut, InvalidInput),
        (_other, Conflict),
        (_dangling, InvalidInput),
        (_foreign, InvalidInput),
        (lambda file: file.write_bytes(b"no database"), InvalidInput),
        (lambda file: file.unlink(), NotFound),
    ],
)
def test_what_is_no_backup_is_refused(
    harm: Callable[[Path], object],
    refusal: type[Exception],
    new_sqlite: Callable[[Path], str],
    tmp_path: Path,
) -> None:
    """By name, with nothing written."""
    url = new_sqlite(tmp_path)
    with connected(url) as connection:
        fill(connection, random.Random(3))
    file = tmp_path / "backup"
    backup(url, file)
    harm(file)
    target = tmp_path / "target.db"
    with pytest.raises(refusal):
        restore(file, f"sqlite:///{target}")
    assert not target.exists()
    assert sorted(os.listdir(tmp_path)) == sorted({*os.listdir(tmp_path)} - {"target.db"})


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE trace SET created_at = 'yesterday'",
        "UPDATE trace SET created_at = 1",
        "UPDATE alembic_version SET version_num = '0001'",
        "DELETE FROM alembic_version",
    ],
)
def test_what_nobody_stored_is_refused(
    change: str, sqlite_store: Store, target_url: str, tmp_path: Path
) -> None:
    """As bad input, with nothing of it restored."""
    with sqlite_store.unit_of_work() as unit:
        unit.traces.add(b"a trace", kind="csv")
    file = tmp_path / "backup"
    backup(f"sqlite:///{tmp_path / 'sluice.db'}", file)
    with closing(sqlite3.connect(file)) as opened:
        opened.execute(change)
        opened.commit()
    with pytest.raises(InvalidInput, match="holds what no version of Sluice stores"):
        restore(file, target_url)
    create_store(target_url).upgrade()
    with connected(target_url) as connection:
        assert not any(everything(connection).values())


def test_there_is_nothing_to_save(tmp_path: Path, empty_database_url: str) -> None:
    """No database, one without a schema, no folder for the file, the database itself."""
    with pytest.raises(NotFound):
        backup(empty_database_url, tmp_path / "backup")
    store = create_store(empty_database_url)
    store.upgrade()
    store.dispose()
    with pytest.raises(InvalidInput, match="No such file"):
        backup(empty_database_url, tmp_path / "nowhere" / "backup")
    assert [found.name for found in tmp_path.iterdir() if "partial" in found.name] == []
    if empty_database_url.startswith("sqlite"):
        with pytest.raises(InvalidInput, match="not the database itself"):
            restore(tmp_path / "sluice.db", empty_database_url)
