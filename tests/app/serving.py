"""A real server for the tests: uvicorn in a thread, on a free port, with a database of its own."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from app.execution.child import WorkerOptions
from app.execution.engine import Engine, Pool
from app.execution.local import LocalEngine, PoolOptions
from app.execution.slot import SlotOptions
from app.http.service import Service
from app.main import create_app
from app.operations.tasks import SOLVE_WARM_UP
from app.serving import configured
from app.settings import Settings
from tests.support.engines import local_engine, shared_fork_server

GUARD_S = 60.0  # against tests that hang; nothing that works comes near
MIB = 2**20

# Table 1 of Wang et al. 1998, with 1 KB = 1024 bytes.
MYRINET: dict[str, Any] = {
    "stages": [
        {"name": "sender copy", "overhead_us": 7.2, "ns_per_byte": 7.03125},
        {"name": "sender host DMA", "overhead_us": 5.2, "ns_per_byte": 24.31640625},
        {
            "name": "network DMAs and receiver host DMA",
            "overhead_us": 7.5,
            "ns_per_byte": 24.31640625,
        },
        {"name": "receiver copy", "overhead_us": 7.4, "ns_per_byte": 7.71484375},
    ]
}
# Not certain to end within 50 ms, so it goes to the engine.
LARGE: dict[str, Any] = {
    "stages": [
        {"name": f"stage {j}", "overhead_us": 5.0 + j, "ns_per_byte": 10.0 + 3 * (j % 5)}
        for j in range(16)
    ]
}
LARGE_BYTES = 4_000_000


@dataclass(frozen=True, slots=True)
class Live:
    """A running server: a client of it, and its inside."""

    client: httpx.Client
    app: FastAPI
    port: int

    @property
    def service(self) -> Service:
        service: Service = self.app.state.service
        return service

    def stored(self) -> tuple[int, int, int]:
        """How many answers, profiles and jobs there are."""
        with self.service.context.store.reading() as unit:
            return (
                len(unit.answers.list(limit=100_000)),
                len(unit.profiles.list(after=None, limit=100_000)),
                len(unit.jobs.list(limit=100_000)),
            )


def settings_for(database_url: str, **changes: Any) -> Settings:
    """Settings of a small server."""
    return Settings(database_url=database_url, workers=1, **changes)


def scripted_engine(settings: Settings) -> Engine:
    """The local engine, whose workers do what tests/app/scripted_solver.py says."""
    options = WorkerOptions(runner="tests.app.scripted_solver:run", warm_up=SOLVE_WARM_UP)
    return LocalEngine(
        {
            Pool.SOLVE: PoolOptions(settings.worker_count, SlotOptions(options)),
            Pool.READ: PoolOptions(1, SlotOptions(is_always_warm=False)),
            Pool.LONG: PoolOptions(2, SlotOptions(options, is_always_warm=False)),
        },
        fork_server=shared_fork_server(),
    )


@contextmanager
def serving(
    settings: Settings, *, open_engine: Callable[[Settings], Engine] | None = None
) -> Iterator[Live]:
    """Serve until the block ends; then everything is closed."""
    app = create_app(settings, open_engine=open_engine or local_engine)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    config = configured(app, settings, log_level="error")
    config.lifespan, config.timeout_graceful_shutdown = "on", 5
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started or not thread.is_alive())
        assert server.started, "the server did not start"
        # The service closes what is idle for 5 s: who keeps it as long may lose a request.
        limits = httpx.Limits(keepalive_expiry=2.0)
        address = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=address, timeout=GUARD_S, limits=limits) as client:
            wait_until(lambda: client.get("/readyz").status_code == 200)
            yield Live(client, app, port)
    finally:
        server.should_exit = True
        thread.join(GUARD_S)
        listener.close()
        assert not thread.is_alive(), "the server did not stop"


def wait_until(condition: Callable[[], bool], *, guard_s: float = GUARD_S) -> None:
    """Return when it holds."""
    end_s, pause_s = time.monotonic() + guard_s, 0.005
    while not condition():
        assert time.monotonic() < end_s, "waited in vain"
        time.sleep(pause_s)
        pause_s = min(0.05, 1.5 * pause_s)  # to ask a service takes time from what is waited for


def wait_for_end(client: httpx.Client, location: str) -> dict[str, Any]:
    """The job of this address when it has ended."""
    job: dict[str, Any] = {}

    def has_ended() -> bool:
        job.update(client.get(location).json())
        return job["state"] in ("done", "failed", "cancelled")

    wait_until(has_ended)
    return job
