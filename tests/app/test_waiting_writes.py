"""Another process keeps the database from writing: reads are answered, writes refused in time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import psycopg
import pytest
from sqlalchemy import make_url

from app.errors import RETRY_AFTER_S
from app.settings import Settings
from models import engines, session
from tests.app.serving import GUARD_S, MYRINET, Live, serving, settings_for, wait_until
from tests.support.in_process_engine import InProcessEngine

WRITES = 6
STAGES = {"stages": MYRINET["stages"]}
LOCK_SQLITE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def locked(database_url: str) -> Iterator[None]:
    """No write by anybody else while the block lasts; readings are not concerned."""
    url = make_url(database_url)
    if url.get_backend_name() == "sqlite":
        with subprocess.Popen(
            [sys.executable, "-c", LOCK_SQLITE, str(url.database)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "locked\n"
            try:
                yield
            finally:
                process.communicate()
        return
    address = url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(address) as connection:
        connection.execute("LOCK TABLE profile, answer IN EXCLUSIVE MODE")
        yield


@contextmanager
def limited(monkeypatch: pytest.MonkeyPatch, limit_s: float, database_url: str) -> Iterator[Live]:
    """A server whose writes wait this long."""
    for module in (engines, session):
        monkeypatch.setattr(module, "LIMIT_S", limit_s)
    with serving(settings_for(database_url), open_engine=_threads) as live:
        yield live


def _threads(settings: Settings) -> InProcessEngine:
    return InProcessEngine(1)


def created(client: httpx.Client, name: str) -> httpx.Response:
    return client.post("/profiles", json={"name": name, "pipeline": STAGES})


def hanging(live: Live) -> int:
    """Calls in threads, or waiting for one."""
    lines = live.client.get("/metrics").text.splitlines()
    (gauge,) = [line for line in lines if line.startswith("sluice_pending_calls ")]
    return int(float(gauge.split()[1]))


def test_readings_do_not_wait_behind_writes(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many writes as there are threads for them, and new answers that cannot be stored."""
    asked = {"message_bytes": 4096, "profile": "gms"}
    with limited(monkeypatch, GUARD_S, database_url) as live, ThreadPoolExecutor(16) as pool:
        client = live.client
        stored = client.post("/optimize", json=asked)
        writes: list[Future[httpx.Response]] = []
        with locked(database_url):
            writes += [pool.submit(created, client, f"new-{i}") for i in range(WRITES)]
            for size in (5001, 5002, 5003):
                new = {**asked, "message_bytes": size}
                writes.append(pool.submit(client.post, "/optimize", json=new))
            wait_until(lambda: hanging(live) >= len(writes))
            for _ in range(3):
                assert client.get("/profiles").status_code == 200
                assert client.get("/profiles/gms").status_code == 200
                assert client.get(f"/optimizations/{stored.json()['id']}").status_code == 200
                assert client.get("/jobs/none").status_code == 404
                assert client.get("/readyz").status_code == 200
            assert client.post("/optimize", json=asked).content == stored.content
            table = {"profile": "gms", "message_bytes": [4096], "strategies": ["auto"]}
            assert client.post("/compare", json=table).status_code == 200
            assert not any(write.done() for write in writes)
        statuses = [write.result(GUARD_S).status_code for write in writes]
        assert statuses == [201] * WRITES + [200] * 3


def test_writes_that_wait_too_long_are_refused(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a time to try again; afterwards all is as before."""
    with limited(monkeypatch, 0.5, database_url) as live, ThreadPoolExecutor(WRITES) as pool:
        with locked(database_url):
            writes = [pool.submit(created, live.client, f"new-{i}") for i in range(WRITES)]
            for write in writes:
                refused = write.result(GUARD_S)
                assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable")
                assert int(refused.headers["retry-after"]) in RETRY_AFTER_S
            assert live.client.get("/profiles").status_code == 200
        assert live.client.get("/profiles/new-0").status_code == 404
        assert created(live.client, "new-0").status_code == 201
