"""The tests' own tools: counts, the list of what was not tested, the PostgreSQL keeper."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.counts import count
from tests.support.once import is_run_again, read_passed, write_passed
from tests.support.postgres import GIVEN, RUN_FOLDER
from tests.support.postgres_keeper import is_installed
from tests.support.system import require_system, skip_reason, summary_lines

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Report:
    """As much of a pytest report as the summary reads."""

    longrepr: Any


def test_a_campaign_runs_all_and_a_test_a_twentieth(monkeypatch: pytest.MonkeyPatch) -> None:
    """At least one case, and fractions upwards."""
    monkeypatch.delenv("SLUICE_CAMPAIGN", raising=False)
    assert [count(full) for full in (300, 25, 1)] == [15, 2, 1]
    monkeypatch.setenv("SLUICE_CAMPAIGN", "1")
    assert [count(full) for full in (300, 25, 1)] == [300, 25, 1]


def test_what_is_missing_skips_and_in_ci_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command in both; what is there does neither."""
    require_system("/usr/bin/cc", "a C compiler", "apt-get install gcc")
    monkeypatch.setenv("CI", "false")
    with pytest.raises(pytest.skip.Exception, match="apt-get install gcc"):
        require_system(None, "a C compiler", "apt-get install gcc")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="apt-get install gcc"):
        require_system(None, "a C compiler", "apt-get install gcc")


def test_the_summary_names_each_missing_thing_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """How often, and the command that helps."""
    monkeypatch.setenv("CI", "")
    with pytest.raises(pytest.skip.Exception) as skipped:
        require_system(None, "a C compiler", "apt-get install gcc")
    report = Report(("file.py", 1, f"Skipped: {skipped.value}"))
    with pytest.raises(pytest.skip.Exception) as skipped:
        require_system(None, "PostgreSQL", "apt-get install postgresql gcc, then set its URL")
    server = Report(("file.py", 3, f"Skipped: {skipped.value}"))
    other = Report(("file.py", 2, "Skipped: for another reason"))
    assert skip_reason(other) == "for another reason"
    assert summary_lines([report, other, report, server]) == [
        "not tested (2 skipped): a C compiler",
        "    to test it: apt-get install gcc",
        "not tested (1 skipped): for another reason",
        "not tested (1 skipped): PostgreSQL",
        "    to test it: apt-get install postgresql gcc, then set its URL",
        "to test all of it: apt-get install gcc postgresql",
    ]
    assert summary_lines([other]) == ["not tested (1 skipped): for another reason"]
    assert summary_lines([]) == []


@dataclass(frozen=True)
class Ended:
    """As much of a pytest report as the list of passed tests reads."""

    nodeid: str


def test_what_passed_does_not_run_again_but_what_is_about_the_machine(tmp_path: Path) -> None:
    """A test whose end failed has not passed; one of a longer name is another test."""
    names = ("tests/app/a.py::test", "tests/app/a.py::test_b", "tests/clients/c.py::test")
    good, late, compiled = map(Ended, names)
    file = tmp_path / "passed"
    write_passed(file, {"passed": [good, late, compiled], "error": [late], "skipped": []})
    passed = read_passed(file)
    assert passed == {good.nodeid, compiled.nodeid}
    assert [is_run_again(name, passed) for name in names] == [False, True, True]
    assert is_run_again("tests/app/test_new.py::test", passed)


def test_the_server_of_a_killed_run_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is left to stop it: the keeper sees the owner's lock released."""
    require_system(is_installed(), "PostgreSQL", f"apt-get install postgresql, set {GIVEN}")
    monkeypatch.delenv(RUN_FOLDER, raising=False)
    monkeypatch.delenv(GIVEN, raising=False)
    program = (
        "import time\n"
        "from tests.support.postgres import PostgresServer, RunFolder\n"
        "run = RunFolder.open()\n"
        "with PostgresServer(run.path).database():\n"
        "    print(run.path, flush=True)\n"
        "    time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        server = int((folder / "server/data/postmaster.pid").read_text().split()[0])
        owner.kill()
    deadline = time.monotonic() + 60.0
    while (folder.exists() or _runs(server)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not folder.exists()
    assert not _runs(server)


def _runs(process: int) -> bool:
    """Whether the process is there and not merely waiting to be collected."""
    status = Path(f"/proc/{process}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
