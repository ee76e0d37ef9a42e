"""Replicas on one PostgreSQL are restarted in turn: who tries once more elsewhere misses nothing.

Here in this process, once each; in a campaign as processes of the command line, ten times. Who asks
those alone that say they are ready has no failure at all, also of uploads and events: seven times.
"""

from __future__ import annotations

import io
import itertools
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Protocol

import httpx
import pytest

from app.http.connections import DrainingServer
from app.main import create_app
from app.serving import configured
from models.records import JobState
from models.schema import HEAD, current_revision
from models.session import create_store
from tests.app.serving import GUARD_S, settings_for, wait_until
from tests.models.test_migrations import connected
from tests.support.counts import is_campaign
from tests.support.long_work import long_here_engine
from tests.support.postgres import PostgresServer

ROOT = Path(__file__).parents[2]
ENDED = re.compile(r"\nevent: (done|failed|cancelled)\ndata: .+\n\n$")
TRACE = (ROOT / "examples" / "local-path-direct.csv").read_bytes()
CLIENTS = 3
DRAIN_S, EXIT_S = 1, 30
START_S = 5 * GUARD_S  # three at once, beside their clients
LOOK_S = 0.1  # of who asks whether a replica is ready


class Replica(Protocol):
    """A service at a port, which it has again after each start."""

    port: int

    def start(self) -> None: ...

    def stop(self) -> None: ...


def free_port() -> int:
    """A port that no client is given for its side of a connection.

    While a replica is down, a client that asks for its port could get that very port, and have it.
    """
    for port in random.sample(range(20_000, 32_000), 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")


class Here:
    """One in this process, which drains as one that gets SIGTERM."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.port = free_port()

    def start(self) -> None:
        app = create_app(settings_for(self._url), open_engine=long_here_engine)
        config = configured(app, log_level="error")

        def begin() -> None:
            app.state.is_draining = True

        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._server = DrainingServer(config, 0.2, begin)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._listener]}, daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self._server.handle_exit(signal.SIGTERM, None)
        self._thread.join(GUARD_S)
        assert not self._thread.is_alive()
        self._listener.close()


class Process:
    """One of the command line."""

    def __init__(self, url: str, folder: Path = ROOT) -> None:
        self.port = free_port()
        self.folder = folder  # of the software that the next start runs
        self._environment = {
            **os.environ,
            "SLUICE_DATABASE_URL": url,
            "SLUICE_DRAIN_S": f"{DRAIN_S}",
            "SLUICE_WORKERS": "1",
        }
        self.seen_draining = 0

    def start(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "serve", "--port", str(self.port)],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def stop(self) -> None:
        self._child.send_signal(signal.SIGTERM)
        address = f"http://127.0.0.1:{self.port}"
        with suppress(httpx.TransportError):  # it may have drained while this process waited
            wait_until(lambda: httpx.get(f"{address}/readyz").status_code == 503)
            self.seen_draining += httpx.get(f"{address}/healthz").status_code == 200
        self._child.wait(DRAIN_S + EXIT_S)


class RoundRobin:
    """A client that asks replicas in turn, and where that fails the next one, once.

    Of those that were ready a moment ago, where somebody looks.
    """

    def __init__(self, replicas: list[Replica], ready: set[int]) -> None:
        self._ports = itertools.cycle([replica.port for replica in replicas])
        self._ready = ready
        self._client = httpx.Client(timeout=GUARD_S)
        self.outcomes: Counter[str] = Counter()
        self.jobs: dict[str, set[str]] = {}

    def ask(self, method: str, path: str, **more: object) -> httpx.Response | None:
        for attempt in ("first", "second"):
            port = next(port for port in self._ports if port in self._ready)
            url = f"http://127.0.0.1:{port}{path}"
            try:
                answer = self._client.request(method, url, **more)  # type: ignore[arg-type]
            except httpx.TransportError:
                continue
            if answer.status_code < 500:
                self.outcomes[attempt] += 1
                return answer
        self.outcomes["failed"] += 1
        return None

    def work(self, number: int, stop: threading.Event) -> None:
        """Read, solve and start jobs until told to stop; a key makes a POST safe to repeat."""
        for count in itertools.count():
            if stop.is_set():
                return
            key = f"{number}-{count}"
            size = 4096 + 7 * count + number
            asked = {"message_bytes": size, "profile": "gms"}
            self.ask("GET", "/profiles/gms")
            self.ask("POST", "/optimize", json=asked, headers={"Idempotency-Key": f"a{key}"})
            headers = {"Idempotency-Key": f"b{key}", "Prefer": "respond-async"}
            asked = {"message_bytes": size + 10**6, "profile": "gms"}
            job = self.ask("POST", "/optimize", json=asked, headers=headers)
            if job is not None:
                location = job.headers["location"]
                self.jobs.setdefault(key, set()).add(location.rpartition("/")[2])
                events = self.ask("GET", f"{location}/events")
                if events is not None and not ENDED.search(events.text):
                    self.outcomes["failed"] += 1
            self.ask("POST", "/fit", content=TRACE, headers={"Content-Type": "text/csv"})


def is_ready(replica: Replica) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{replica.port}/readyz").status_code == 200
    except httpx.TransportError:
        return False


@contextmanager
def started(replicas: list[Replica]) -> Iterator[None]:
    with ExitStack() as stack:
        for replica in replicas:
            replica.start()
            stack.callback(replica.stop)
            wait_until(partial(is_ready, replica), guard_s=START_S)
        yield


def _ask_more(clients: list[RoundRobin]) -> None:
    """Return when they have had some more answers."""

    def answers() -> int:
        return sum(sum(client.outcomes.values()) for client in clients)

    enough = answers() + 10
    wait_until(lambda: answers() >= enough, guard_s=START_S)


def _missed_nothing(
    url: str,
    replicas: list[Replica],
    turns: Iterable[Callable[[], None]],
    *,
    looks: bool = False,
) -> Counter[str]:
    """Take these turns with the replicas while clients ask them; return what became of requests.

    No request fails, and what was accepted is run once, whichever replica went. Where somebody
    looks, clients ask those alone that say they are ready.
    """
    stop, ready = threading.Event(), {replica.port for replica in replicas}

    def look(replica: Replica) -> None:
        while not stop.wait(LOOK_S):
            (ready.add if is_ready(replica) else ready.discard)(replica.port)

    with started(replicas):
        clients = [RoundRobin(replicas, ready) for _ in range(CLIENTS)]
        threads = [
            threading.Thread(target=client.work, args=(number, stop))
            for number, client in enumerate(clients)
        ]
        if looks:
            threads += [threading.Thread(target=look, args=(replica,)) for replica in replicas]
        for thread in threads:
            thread.start()
        try:
            for take in turns:
                _ask_more(clients)
                take()
            _ask_more(clients)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    outcomes = sum((client.outcomes for client in clients), Counter[str]())
    print(dict(outcomes))
    assert outcomes["failed"] == 0, outcomes
    jobs = [found for client in clients for found in client.jobs.values()]
    assert all(len(found) == 1 for found in jobs)
    store = create_store(url)
    with store.reading() as unit:
        states = {unit.jobs.get(next(iter(found))).state for found in jobs}
    store.dispose()
    assert states <= {JobState.QUEUED, JobState.RUNNING, JobState.DONE}
    return outcomes


def _restart(replica: Replica) -> None:
    replica.stop()
    replica.start()
    wait_until(partial(is_ready, replica), guard_s=START_S)


@pytest.mark.long
def test_one_retry_is_enough(postgres: PostgresServer) -> None:
    """Each replica is restarted, so often."""
    kind, rounds, count = (Process, 10, 3) if is_campaign() else (Here, 1, 2)
    with postgres.database() as url:
        replicas: list[Replica] = [kind(url) for _ in range(count)]
        turns = [partial(_restart, replica) for _ in range(rounds) for replica in replicas]
        outcomes = _missed_nothing(url, replicas, turns)
    assert outcomes["first"] > 10 * rounds


if is_campaign():

    def test_who_looks_which_are_ready_needs_no_retry(postgres: PostgresServer) -> None:
        """At most one of 10 000 requests; each replica says that it drains while it answers."""
        with postgres.database() as url:
            processes = [Process(url) for _ in range(3)]
            turns = [partial(_restart, replica) for _ in range(7) for replica in processes]
            outcomes = _missed_nothing(url, [*processes], turns, looks=True)
        assert outcomes["second"] <= 1e-4 * outcomes["first"]
        assert sum(replica.seen_draining for replica in processes) >= len(turns)

    def test_an_upgrade_of_the_schema_misses_nothing(
        postgres: PostgresServer, tmp_path: Path
    ) -> None:
        """Two replicas of the version before the newest migration become this one in turn.

        The first that does migrates under the other one, which goes on as it was.
        """
        (newest,) = (ROOT / "migrations/versions").glob(f"{HEAD}_*.py")
        asked = ["git", "log", "-1", "--format=%H", "--diff-filter=A", "--", str(newest)]
        commit = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        packed = subprocess.run(
            ["git", "archive", "--format=zip", f"{commit.strip()}^"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        before = tmp_path / "before"
        with zipfile.ZipFile(io.BytesIO(packed.stdout)) as archive:
            archive.extractall(before)
        assert not list((before / "migrations/versions").glob(f"{HEAD}_*.py"))

        def upgrade(replica: Process) -> None:
            replica.folder = ROOT
            _restart(replica)

        with postgres.empty_database() as url:
            processes = [Process(url, before) for _ in range(2)]
            replicas: list[Replica] = [*processes]
            turns: list[Callable[[], None]] = [
                lambda: _check_revision(url, is_newest=False),
                *(partial(upgrade, replica) for replica in processes),
                lambda: _check_revision(url, is_newest=True),
            ]
            outcomes = _missed_nothing(url, replicas, turns)
        assert outcomes["first"] > 10

    def _check_revision(url: str, *, is_newest: bool) -> None:
        with connected(url) as connection:
            assert (current_revision(connection) == HEAD) == is_newest
