"""`sluice admin work`: a runner without HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from app.cli import main
from app.jobs.ledger import accept_job, get_job
from app.operations.tasks import prepare_request
from app.questions.source import Stored
from app.settings import Settings
from models.base import utc_now
from models.records import JobState
from models.session import create_store
from tests.app.serving import MYRINET, wait_until
from tests.models.test_collection import add, connected, rows

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_runs_jobs_until_it_is_told_to_stop(tmp_path: Path, number: signal.Signals) -> None:
    """Of a database that it makes; it leaves no runner behind."""
    url = f"sqlite:///{tmp_path / 'sluice.db'}"
    child = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "admin", "work", "--workers", "1", "--json"],
        cwd=ROOT,
        env={**os.environ, "SLUICE_DATABASE_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    store = create_store(url)
    try:
        assert child.stdout is not None
        name = json.loads(child.stdout.readline())["runner"]
        with store.reading() as unit:
            assert [runner.name for runner in unit.runners.all()] == [name]
            request = json.dumps({"message_bytes": 4096, "pipeline": MYRINET}).encode()
            operation = prepare_request("optimize", request, Stored.of_unit(unit), Settings())
        job = accept_job(store, operation)
        wait_until(lambda: get_job(store, job.id).state is JobState.DONE)
        child.send_signal(number)
        assert child.wait(timeout=60) == 0
        with store.reading() as unit:
            assert unit.runners.all() == ()
    finally:
        child.kill()
        child.communicate()
        store.dispose()


def test_a_wrong_count_of_workers_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["admin", "work", "--workers", "5000"]) == 2
    assert "workers" in capsys.readouterr().err


def test_what_is_kept_no_longer_is_said_and_deleted(
    new_sqlite: Callable[[Path], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By the rules of the environment, or by those that are given in their place."""
    url = new_sqlite(tmp_path)
    with connected(url) as connection:
        for number, days in enumerate((9, 8, 0)):
            at = utc_now() - timedelta(days=days)
            add(connection, "answer", id=f"a{number}", created_at=at, note="n" * (number + 1))
    monkeypatch.setenv("SLUICE_DATABASE_URL", url)
    assert main(["admin", "collect"]) == 2
    assert "SLUICE_RETENTION" in capsys.readouterr().err
    assert main(["admin", "collect", "--keep", "answers=soon"]) == 2
    assert "answers=90d" in capsys.readouterr().err
    assert main(["admin", "collect", "--keep", "answers=1d", "--remember", "--dry-run"]) == 2
    assert main(["admin", "collect", "--forget"]) == 2
    assert "--forget takes --owner" in capsys.readouterr().err
    monkeypatch.setenv("SLUICE_RETENTION", "answers=1d")
    assert main(["admin", "collect", "--dry-run", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == {"dry_run": True, "rows": {"answers": 2}, "stored_bytes": {}}
    assert main(["admin", "collect", "--keep", "answers=2"]) == 0
    assert capsys.readouterr().out == "1 rows of answers are gone\nlocal stores 5 bytes\n"
    assert main(["admin", "collect", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == {"dry_run": False, "rows": {"answers": 1}, "stored_bytes": {"local": 3}}


def test_rules_of_one_owner_are_stored_and_forgotten(
    new_sqlite: Callable[[Path], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """They hold without a variable from then on, in the place of all's."""
    url = new_sqlite(tmp_path)
    with connected(url) as connection:
        for owner in ("a", "b"):
            for days in (9, 8, 7):
                at = utc_now() - timedelta(days=days)
                add(connection, "answer", id=f"{owner}{days}", owner=owner, created_at=at)
    monkeypatch.setenv("SLUICE_DATABASE_URL", url)

    def rows_of(*words: str) -> int:
        assert main(["admin", "collect", "--json", *words]) == 0
        found: int = json.loads(capsys.readouterr().out)["rows"]["answers"]
        return found

    assert rows_of("--owner", "a", "--keep", "answers=2", "--dry-run") == 1
    assert rows_of("--owner", "a", "--keep", "answers=2", "--remember") == 1
    assert rows_of("--keep", "answers=3", "--remember") == 0
    monkeypatch.setenv("SLUICE_RETENTION", "answers=1")
    assert rows_of("--dry-run") == 2  # of b: a has rules of his own
    assert rows_of("--dry-run", "--owner", "a") == 0
    monkeypatch.setenv("SLUICE_RETENTION", "everything")
    assert main(["admin", "collect", "--owner", "b"]) == 0
    monkeypatch.delenv("SLUICE_RETENTION")
    assert main(["admin", "collect", "--keep", "answers=1", "--remember"]) == 0
    with connected(url) as connection:
        assert [row["id"] for row in rows(connection, "answer")] == ["a7", "a8", "b7"]
    assert main(["admin", "collect", "--forget", "--owner", "a"]) == 0
    with connected(url) as connection:
        assert [row["id"] for row in rows(connection, "answer")] == ["a7", "b7"]
    assert main(["admin", "collect", "--owner", "../a"]) == 2
