"""sluice admin fleet: tables of many profiles, by jobs that any runner takes, once each."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import solvers
from app.cli import main
from app.execution.local import LocalEngine
from app.operations import tasks
from app.questions.profiles import create_profile
from app.settings import Settings
from domain.aggregate import Aggregate
from domain.pipeline import Pipeline, Stage
from models.session import Store, create_store
from tests.support.in_process_engine import InProcessEngine
from tests.support.plan_tables import whole_messages

NAMES = ("alpha", "beta", "delta", "gamma")
SMALL = ("--max-message", "64KiB", "--relative-gap", "5%")


@pytest.fixture(autouse=True)
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database of its own; jobs run in this process."""
    for name in [name for name in os.environ if name.startswith("SLUICE_")]:
        monkeypatch.delenv(name)
    url = f"sqlite:///{tmp_path / 'fleet.db'}"
    monkeypatch.setenv("SLUICE_DATABASE_URL", url)
    monkeypatch.setattr(tasks, "open_engine", lambda _, **_given: InProcessEngine(2))
    monkeypatch.setattr(solvers, "compile_table", whole_messages)
    return url


@pytest.fixture
def store(url: str) -> Any:
    store = create_store(url)
    store.upgrade()
    for number, name in enumerate(NAMES, start=1):
        create_profile(store, name, pipeline(number))
    yield store
    store.dispose()


def pipeline(number: int) -> Pipeline:
    return Pipeline(
        (
            Stage.of_line("copy", overhead_us=number, ns_per_byte=1.0),
            Stage.of_line("wire", overhead_us=2.0, ns_per_byte=0.5),
        )
    )


def report_of(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["admin", "fleet", *words, *SMALL, "--json"])
    return code, json.loads(capsys.readouterr().out)


def outcomes(report: dict[str, Any]) -> dict[str, str]:
    return {one["profile"]: one["outcome"] for one in report["items"]}


def test_each_profile_has_its_table_and_a_second_run_makes_none(
    store: Store, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "report.json"
    code, first = report_of(capsys, *NAMES, "--report", str(file))
    assert code == 0
    assert outcomes(first) == {f"{name}@1": "compiled" for name in NAMES}
    assert json.loads(file.read_text()) == first
    counts = {name: first[name] for name in ("profiles", "compiled", "stored", "failed")}
    assert counts == {"profiles": 4, "compiled": 4, "stored": 0, "failed": 0}
    with store.reading() as unit:
        for one in first["items"]:
            name = one["profile"].partition("@")[0]
            active = unit.tables.active_summary(name, 1)
            assert active is not None
            assert (active.digest, active.worst_gap) == (one["digest"], one["relative_gap"])
        jobs = len(unit.jobs.list(limit=100))
    code, second = report_of(capsys, *NAMES)
    assert code == 0
    assert outcomes(second) == {f"{name}@1": "stored" for name in NAMES}
    assert [one["digest"] for one in second["items"]] == [one["digest"] for one in first["items"]]
    with store.reading() as unit:
        assert len(unit.jobs.list(limit=100)) == jobs == len(NAMES)


def test_what_was_not_done_is_done_by_the_next_run(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was ended leaves jobs behind, which any runner may take; nothing is made twice."""
    assert report_of(capsys, "beta")[0] == 0
    with monkeypatch.context() as only:
        only.setenv("SLUICE_RUN_JOBS", "0")
        only.setattr("app.verbs.fleet.operation.time.sleep", _interrupt)
        assert main(["admin", "fleet", *NAMES, *SMALL]) == 130
        assert "goes on" in capsys.readouterr().err
    with store.reading() as unit:
        assert sum(unit.jobs.waiting("solve", "long").values()) == 3
    code, report = report_of(capsys, *NAMES)
    assert code == 0
    found = outcomes(report)
    assert found.pop("beta@1") == "stored"
    # One whose job has ended before the run comes to its profile is stored by then.
    assert set(found) == {f"{name}@1" for name in NAMES if name != "beta"}
    assert set(found.values()) <= {"compiled", "stored"}
    with store.reading() as unit:
        assert len(unit.jobs.list(limit=100)) == len(NAMES)


def _interrupt(_: float) -> None:
    raise KeyboardInterrupt


def test_what_has_no_table_is_told_and_fails_no_other(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that has no tables, one that is not there, and limits that no cut keeps are told."""
    create_profile(
        store,
        "outside",
        Aggregate(
            Stage.of_line("total", overhead_us=3.0, ns_per_byte=2.0),
            Stage.of_line("bottleneck", overhead_us=1.0, ns_per_byte=1.0),
        ),
    )
    code, report = report_of(capsys, "alpha", "outside", "nobody", "beta@7")
    assert code == 3
    assert outcomes(report) == {
        "alpha@1": "compiled",
        "beta@7": "failed",
        "nobody": "failed",
        "outside": "failed",
    }
    assert all(one["error"] for one in report["items"] if one["outcome"] == "failed")
    assert main(["admin", "fleet", "nobody", *SMALL]) == 3
    assert "1 failed" in (shown := capsys.readouterr().out)
    assert "nobody" in shown
    code, report = report_of(
        capsys, "alpha", "--min-fragment-bytes", "4KiB", "--max-fragment-bytes", "1KiB"
    )
    assert (code, outcomes(report)) == (3, {"alpha": "failed"})
    assert report["items"][0]["error"]


def test_without_names_every_profile_of_the_owner_is_asked_about(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On pages; those of papers that the store was given come along."""
    monkeypatch.setattr("app.verbs.fleet.command._PAGE", 3)
    monkeypatch.setattr("app.verbs.fleet.operation._AHEAD", 2)
    _, report = report_of(capsys)
    assert {f"{name}@1" for name in NAMES} < {one["profile"] for one in report["items"]}
    assert report["profiles"] == len(report["items"]) > len(NAMES)
    other = store.of("others")
    create_profile(other, "theirs", pipeline(9))
    code, report = report_of(capsys, "--owner", "others")
    assert (code, outcomes(report)) == (0, {"theirs@1": "compiled"})


@pytest.mark.parametrize(
    "words",
    [
        ("alpha@x",),
        ("--max-message", "0"),
        ("--owner", "NOBODY!"),
        ("--report", "/nowhere/fleet.json"),
    ],
)
def test_bad_input_is_refused_before_anything_begins(words: tuple[str, ...]) -> None:
    assert main(["admin", "fleet", *words]) == 2


def test_the_settings_choose_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    engine = tasks.open_engine(Settings(workers=1))
    assert isinstance(engine, LocalEngine)
    engine.close()
