"""`sluice work`: a runner without HTTP."""

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
from app.settings import Settings
from models.base import utc_now
from models.records import JobState
from models.session import create_store
from tests.app.serving import MYRINET, wait_until
from tests.models.test_collection import add, connected

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_runs_jobs_until_it_is_told_to_stop(tmp_path: Path, number: signal.Signals) -> None:
    """Of a database that it makes; it leaves no runner behind."""
    url = f"sqlite:///{tmp_path / 'sluice.db'}"
    child = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "work", "--workers", "1", "--json"],
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
            operation = prepare_request("optimize", request, unit, Settings())
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
    assert main(["work", "--workers", "5000"]) == 2
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
            add(connection, "answer", id=f"a{number}", created_at=at)
    monkeypatch.setenv("SLUICE_DATABASE_URL", url)
    assert main(["collect"]) == 2
    assert "SLUICE_RETENTION" in capsys.readouterr().err
    assert main(["collect", "--keep", "answers=soon"]) == 2
    assert "answers=90d" in capsys.readouterr().err
    monkeypatch.setenv("SLUICE_RETENTION", "answers=1d")
    assert main(["collect", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"dry_run": True, "rows": {"answers": 2}}
    assert main(["collect", "--keep", "answers=2"]) == 0
    assert capsys.readouterr().out == "1 rows of answers are gone\n"
    assert main(["collect", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"dry_run": False, "rows": {"answers": 1}}
