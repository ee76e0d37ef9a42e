"""Clients that send heads without an end, against the service as it is started."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx
import psutil

from bench.hostile import HEADS, REQUESTS, attack, outcome
from bench.service import RunningService, serving
from tests.app.serving import GUARD_S, MIB

CLIENTS = 20
SECONDS = 3.0
KINDS = {**HEADS, **REQUESTS}


class _Watch:
    """Asks the service all the time, and looks how much memory it takes, until told to end."""

    def __init__(self, service: RunningService) -> None:
        self._service = service
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.statuses: list[int] = []
        self.peak_bytes = _resident(service)

    def _run(self) -> None:
        base = f"http://127.0.0.1:{self._service.port}"
        with httpx.Client(base_url=base, timeout=GUARD_S) as client:
            while not self._ended.is_set():
                self.statuses.append(client.get("/healthz").status_code)
                self.peak_bytes = max(self.peak_bytes, _resident(self._service))

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(GUARD_S)
        assert not self._thread.is_alive()


def test_heads_without_an_end(tmp_path: Path) -> None:
    """Each is refused or its connection closed; others are answered; little memory is taken."""
    url, settings = f"sqlite:///{tmp_path / 'sluice.db'}", {"SLUICE_WORKERS": "1"}
    with serving(url, settings, answers="/healthz") as service:
        for start, following in KINDS.values():  # what the first of a kind loads, stays
            assert outcome(service.port, start, following) in ("400", "431", "closed")
        before = _resident(service)
        with _Watch(service) as watch:
            found = attack(service.port, CLIENTS, SECONDS, KINDS)
        assert sum(found.values()) >= CLIENTS
        assert {kind.rpartition(": ")[0] for kind in found} == set(KINDS)
        assert {kind.rpartition(": ")[2] for kind in found} <= {"400", "431", "closed"}
        assert found["one endless header: 431"] > 0
        assert found["endless headers: 431"] > 0
        assert set(watch.statuses) == {200}
        assert watch.peak_bytes - before < 32 * MIB


def _resident(service: RunningService) -> int:
    process: psutil.Process = service.process
    return int(process.memory_info().rss)
