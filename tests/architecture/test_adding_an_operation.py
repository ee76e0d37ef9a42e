"""The example of docs/adding-an-operation.md, run: operation, routes, command, page."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jinja2 import ChoiceLoader, DictLoader

from app import cli
from app.console import running
from app.execution.child import WorkerOptions
from app.execution.engine import Done, Engine, Pool, Steps
from app.execution.local import LocalEngine, PoolOptions
from app.execution.slot import SlotOptions
from app.operations.operation import OperationDefaults
from app.operations.tasks import prepare_request, task_of
from app.questions.profiles import seed_paper_profiles
from app.questions.source import Stored
from app.settings import Settings
from app.ui.pages import all_pages
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
    return LocalEngine(
        dict.fromkeys(Pool, PoolOptions(2, slot)) | {Pool.SOLVE: PoolOptions(1, warm)}
    )


@pytest.fixture
def operation(modules: dict[str, ModuleType], settings: Settings) -> Any:
    """The curve of a profile of the papers."""
    curves, curve_in = modules["app/verbs/curve/operation.py"], modules["contract/curve.py"].CurveIn
    store = create_store(settings.database_url)
    store.upgrade()
    seed_paper_profiles(store)
    try:
        with store.reading() as unit:
            stored = Stored.of_unit(unit)
            unknown = curve_in(profile="nobody", max_message_bytes=4096)
            with pytest.raises(NotFound):
                curves.operation(unknown, stored, settings)
            asked = curve_in(profile=PROFILE, max_message_bytes=4096)
            made = curves.operation(asked, stored, settings)
            again = curves.requested(made.request, stored, settings)
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


def test_a_job_prepares_it_again(operation: Any, settings: Settings) -> None:
    """Out of what the ledger stores: its kind and its request."""
    store = create_store(settings.database_url)
    try:
        with store.reading() as unit:
            again = prepare_request("curve", operation.request, Stored.of_unit(unit), settings)
    finally:
        store.dispose()
    assert again == operation
    title = example_operation.VERB.module("request").title
    assert title(operation.request) == f"A curve of {PROFILE}@1"


def test_routes_and_page(
    modules: dict[str, ModuleType], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One operation for both; what is not understood is said at its field, and in the document of
    the interface each field has its words.
    """
    templates = all_pages()._templates
    added = DictLoader({"curve.html": example_operation.template()})
    assert templates.loader is not None
    monkeypatch.setattr(templates, "loader", ChoiceLoader([added, templates.loader]))
    asked = {"profile": PROFILE, "max_message_bytes": 4096}
    with serving(settings, open_engine=open_engine) as live:
        for path in ("app/verbs/curve/routes.py", "app/verbs/curve/page/views.py"):
            live.app.router.routes.extend(modules[path].router.routes)
        answer = live.client.post("/curve", json=asked)
        assert answer.status_code == 200, answer.text
        points = [tuple(point.values()) for point in answer.json()["points"]]
        assert [points[0], points[-1]] == WANTED
        shown = live.client.get("/ui/curve", params={"profile": PROFILE, "message": "4 KiB"})
        assert shown.status_code == 200
        assert '<th scope="row" class="number">4 KiB</th><td class="number">184.4 µs</td>' in (
            shown.text
        )
        assert f"sluice curve {PROFILE} --max-message 4KiB" in shown.text
        refused = live.client.get("/ui/curve", params={"profile": PROFILE, "message": "x"})
        assert refused.status_code == 422
        assert 'id="message-mistake">expected a size' in refused.text
        live.app.openapi_schema = None
        fields = live.app.openapi()["components"]["schemas"]["CurveIn"]["properties"]
        assert fields["max_message_bytes"]["description"] == "the largest message, bytes"


def test_the_command(
    operation: Any, settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("SLUICE_DATABASE_URL", settings.database_url)
    monkeypatch.setattr(running, "open_local_engine", open_engine)
    assert cli.main(["curve", PROFILE, "--max-message", "4KiB"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 13
    assert lines[-1].split() == ["4", "KiB", "184.4", "µs"]
