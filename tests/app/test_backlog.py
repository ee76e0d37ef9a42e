"""What waits to be solved is refused where more is asked than the engine has slots for."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from app.http import call_threads
from app.http.call_threads import Backlog
from domain.errors import Overloaded
from tests.app.serving import LARGE, LARGE_BYTES, MYRINET, serving, settings_for
from tests.support.in_process_engine import InProcessEngine

SLOTS = 8


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits at all is what has waited for long."""
    monkeypatch.setattr(call_threads, "STANDING_S", -1.0)
    monkeypatch.setattr(call_threads, "CALM_S", -1.0)
    monkeypatch.setattr(call_threads, "STANDING_SOLVES", 0)


def test_a_client_who_has_nothing_here_is_let_in_beside_one_who_has_several() -> None:
    """Where something waits; anyone is once the engine has a slot more, or all have ended."""
    slots = 2
    backlog = Backlog(lambda: slots)
    with ExitStack() as held:
        for _ in range(slots + 1):
            held.enter_context(backlog.entered("one"))
        with pytest.raises(Overloaded):
            held.enter_context(backlog.entered("one"))
        held.enter_context(backlog.entered("another"))
        with pytest.raises(Overloaded):
            held.enter_context(backlog.entered("another"))
        slots = 5
        held.enter_context(backlog.entered("one"))
    assert not backlog.is_overloaded
    with backlog.entered("one"):
        pass


def test_as_much_is_let_in_as_the_engine_runs_at_once(tmp_path: Path) -> None:
    """Whatever the number of this machine's own workers: a cluster has others."""
    settings = settings_for(f"sqlite:///{tmp_path / 'sluice.db'}")
    with ExitStack() as held:
        live = held.enter_context(serving(settings, open_engine=lambda _: InProcessEngine(SLOTS)))
        for _ in range(SLOTS - 1):
            held.enter_context(live.service.backlog.entered("one"))
        body = {"message_bytes": 4321, "pipeline": MYRINET}
        assert live.client.post("/optimize", json=body).status_code == 200


def test_nothing_waits_for_a_cluster_without_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused once a worker that is started again would be back."""
    monkeypatch.setattr(call_threads, "WORKERLESS_S", 0.0)
    settings = settings_for(f"sqlite:///{tmp_path / 'sluice.db'}")
    engine = InProcessEngine()
    with serving(settings, open_engine=lambda _: engine) as live:
        monkeypatch.setattr(engine, "_slots", 0)
        monkeypatch.setattr(engine, "submit", lambda *_: None)
        body = {"message_bytes": LARGE_BYTES, "pipeline": LARGE}
        refused = live.client.post("/optimize", json=body)
        assert (refused.status_code, refused.json()["code"]) == (503, "not_ready")
        assert refused.headers["retry-after"] == "1"
