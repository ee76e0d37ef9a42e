"""The example of docs/adding-an-operation.md, run: operation, route, command, page."""

from __future__ import annotations

import argparse
import io
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jinja2 import ChoiceLoader, DictLoader

from app.console import running
from app.console.screen import Output, Screen
from app.execution.engine import Done, Engine, Pool, Steps
from app.execution.local import LocalEngine, PoolOptions
from app.execution.slot import SlotOptions
from app.execution.worker import WorkerOptions
from app.operations import tasks as registry
from app.operations.operation import OperationDefaults
from app.operations.tasks import task_of
from app.questions.profiles import seed_paper_profiles
from app.settings import Settings
from app.web.pages import all_pages
from domain.errors import NotFound
from models.session import create_store
from tests.app.serving import serving, settings_for
from tests.execution.support import MEMORY_BYTES, Heard
from tests.support import example_operation

PROFILE = "myrinet-gam"
RUNNER = WorkerOptions(runner="tests.support.example_operation:run", niceness=0)
WANTED = [(1, pytest.approx(27.36337890625)), (4096, pytest.approx(184.3572265625))]


class Collected:
    """A report that remembers."""

    files: Sequence[int] = ()

    def __init__(self) -> None:
        self.stated: list[tuple[int, int]] = []

    def steps(self, done: int, total: int) -> None:
        self.stated.append((done, total))

    def best(self, result: object) -> None:
        raise AssertionError("a curve has no partial result")


@pytest.fixture
def modules() -> Iterator[dict[str, ModuleType]]:
    with example_operation.installed() as found:
        yield found


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_for(f"sqlite:///{tmp_path / 'example.db'}")


def open_engine(_: Settings | None = None) -> Engine:
    """Whose workers know the page's operation."""
    slot = SlotOptions(RUNNER, is_always_warm=False)
    warm = SlotOptions(RUNNER)
    return LocalEngine({Pool.SOLVE: PoolOptions(1, warm), Pool.LONG: PoolOptions(2, slot)})


@pytest.fixture
def operation(modules: dict[str, ModuleType], settings: Settings) -> Any:
    """The curve of a profile of the papers."""
    curves = modules["app/operations/curves.py"]
    store = create_store(settings.database_url)
    store.upgrade()
    seed_paper_profiles(store)
    try:
        with store.reading() as unit:
            unknown = curves.CurveIn(profile="nobody", max_message_bytes=4096)
            with pytest.raises(NotFound):
                curves.curve_operation(unknown, unit, settings)
            asked = curves.CurveIn(profile=PROFILE, max_message_bytes=4096)
            made = curves.curve_operation(asked, unit, settings)
            again = curves.requested_curve(made.request, unit, settings)
    finally:
        store.dispose()
    assert (again, again.digest) == (made, made.digest)
    return made


def test_a_worker_computes_what_this_process_does(operation: Any) -> None:
    """To the byte, with the steps on the way."""
    assert isinstance(operation, OperationDefaults)
    report, heard, engine = Collected(), Heard(), open_engine()
    here = operation.run(report)
    try:
        engine.submit(task_of(operation, id="curve", memory_bytes=MEMORY_BYTES), heard)
        assert heard.end() == Done(pickle.dumps(here, pickle.HIGHEST_PROTOCOL))
    finally:
        engine.close()
    assert report.stated == [(done, 13) for done in range(1, 14)]
    assert Steps(*heard.steps[-1]) == Steps(13, 13)
    assert [here[0], here[-1]] == WANTED


def test_a_job_prepares_it_again(
    operation: Any,
    modules: dict[str, ModuleType],
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Out of what the ledger stores: its kind and its request."""
    kind = example_operation.OperationKind
    curves = modules["app/operations/curves.py"]
    monkeypatch.setattr(registry, "OperationKind", kind)
    monkeypatch.setitem(registry._PREPARE, kind("curve"), curves.requested_curve)
    store = create_store(settings.database_url)
    try:
        with store.reading() as unit:
            again = registry.prepare_request("curve", operation.request, unit, settings)
    finally:
        store.dispose()
    assert again == operation


def test_route_and_view(
    modules: dict[str, ModuleType], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One operation for both."""
    templates = all_pages()._templates
    added = DictLoader({"curve.html": example_operation.template()})
    assert templates.loader is not None
    monkeypatch.setattr(templates, "loader", ChoiceLoader([added, templates.loader]))
    asked = {"profile": PROFILE, "max_message_bytes": 4096}
    with serving(settings, open_engine=open_engine) as live:
        for path in ("app/api/curves.py", "app/web/profiles/curves.py"):
            live.app.router.routes.extend(modules[path].router.routes)
        answer = live.client.post("/curves", json=asked)
        assert answer.status_code == 200
        rows = [tuple(row) for row in answer.json()["latencies_us"]]
        assert [rows[0], rows[-1]] == WANTED
        shown = live.client.get(f"/ui/profiles/{PROFILE}/curve")
        assert shown.status_code == 200
        assert f"<td>4096 B</td><td>{rows[-1][1]} µs</td>" in shown.text


def test_the_command(
    operation: Any,
    modules: dict[str, ModuleType],
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SLUICE_DATABASE_URL", settings.database_url)
    monkeypatch.setattr(running, "open_local_engine", open_engine)
    printed = io.StringIO()
    output = Output(Screen(printed), Screen(io.StringIO()), wants_json=False)
    arguments = argparse.Namespace(profile=PROFILE, max_bytes=4096)
    assert modules["app/console/curve.py"].curve(arguments, output) == 0
    lines = printed.getvalue().splitlines()
    assert len(lines) == 13
    assert lines[-1].split()[:2] == ["4,096", "B"]
