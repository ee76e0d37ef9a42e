"""Runners on each database, and with a cluster, while everything that they stand on dies or stops.

A part of it runs every time. A campaign runs three seeds of each, with 500 jobs and 20 deaths;
SLUICE_CHAOS_JOBS sets another number of jobs, of which one in 25 has something killed.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TypeVar

import psutil
import pytest
from sqlalchemy import URL

from domain.errors import StoreUnavailable
from models.records import JobRecord, JobState
from models.session import Store, create_store
from tests.execution.support import MARKER, marked
from tests.jobs.support import accepted
from tests.support.chaos import Chaos, Member, chaos_jobs
from tests.support.cluster import TestCluster
from tests.support.compiler import build_shifted_clock
from tests.support.counts import count, is_campaign
from tests.support.postgres_keeper import Keeper

JOBS = chaos_jobs(count(500))
JOBS_A_DEED = 25 if is_campaign() else 4
LAST_JOBS = 6  # long ones, so that whoever is stopped has one
LEASE_S = 3.0
STOP_S = 2.0
GUARD_S = 600.0
LOOK_S = 0.1
SEEDS = (1, 2, 3) if is_campaign() else (1,)
SETUPS = ("sqlite", "postgresql", "cluster") if is_campaign() else ("postgresql", "cluster")
# "clocks": the runners' clocks are off by hours, in turn.
CLOCK_SETUPS = ("sqlite, clocks", "postgresql, clocks") if is_campaign() else ("sqlite, clocks",)
CLOCKS_S = (0, 5 * 3600, -3 * 3600)
# What is written must outlive the server, but no power cut.
DURABLE = ("listen_addresses=", "fsync=off", "full_page_writes=off", "max_connections=100")

T = TypeVar("T")


def patiently(act: Callable[[], T]) -> T:
    """Do it, again and again while the database is away."""
    until_s = time.monotonic() + GUARD_S
    while True:
        try:
            return act()
        except StoreUnavailable:
            assert time.monotonic() < until_s, "the database stays away"
            time.sleep(LOOK_S)


def wait_until(condition: Callable[[], bool], what: Callable[[], object]) -> None:
    until_s = time.monotonic() + GUARD_S
    while not condition():
        assert time.monotonic() < until_s, f"waited in vain: {what()}"
        time.sleep(LOOK_S)


@dataclass
class WorldChaos(Chaos):
    """Runners with all that they stand on."""

    cluster: TestCluster | None = None
    server: Keeper | None = None
    done: Counter[str] = field(default_factory=Counter)

    def deeds(self) -> list[Callable[[], None]]:
        """What may be done here, each about as often as it matters."""
        found = [self.kill_child, self.kill_child, self.kill_member]
        if self.server is not None:
            found.append(self.crash_database)
        if self.cluster is not None:
            found += [self.kill_engine_worker, self.kill_scheduler]
            found += [self.stop_scheduler, self.stop_engine_worker]
        return found

    def states(self) -> dict[str, int]:
        """How many jobs are in which state."""
        return patiently(super().states)

    def kill_child(self) -> None:
        """kill -9 of a process below whoever runs operations."""
        above = self.members if self.cluster is None else self.cluster.workers
        below = [child for member in above for child in member.workers()]
        if below:
            with suppress(psutil.NoSuchProcess):
                self.rng.choice(below).kill()

    def crash_database(self) -> None:
        """End PostgreSQL without any good-bye, and start it again."""
        assert self.server is not None
        self.server.crash()
        time.sleep(self.rng.uniform(0.0, 1.0))
        self.server.serve()

    def kill_engine_worker(self) -> None:
        """kill -9 of a worker, and another one in its place."""
        assert self.cluster is not None
        worker = self.rng.choice(self.cluster.workers)
        worker.kill()
        self.cluster.workers.remove(worker)
        self.cluster.start_worker()

    def kill_scheduler(self) -> None:
        """kill -9 of the scheduler, and another one at its place."""
        assert self.cluster is not None
        assert self.cluster.scheduler is not None
        self.cluster.scheduler.kill()
        self.cluster.start_scheduler()

    def stop_scheduler(self) -> None:
        """Stop the scheduler for a while."""
        assert self.cluster is not None
        assert self.cluster.scheduler is not None
        _stopped(self.cluster.scheduler)

    def stop_engine_worker(self) -> None:
        """Stop a worker for a while."""
        assert self.cluster is not None
        _stopped(self.rng.choice(self.cluster.workers))


def _stopped(member: Member) -> None:
    member.process.send_signal(signal.SIGSTOP)
    time.sleep(STOP_S)
    member.process.send_signal(signal.SIGCONT)


@contextmanager
def _server() -> Iterator[tuple[Keeper, str]]:
    """A PostgreSQL of its own, which may be crashed."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-", dir="/tmp"))
    keeper = Keeper(folder, DURABLE)
    try:
        keeper.start()
        url = URL.create(
            "postgresql",
            username="sluice",
            database="postgres",
            query={"host": str(folder / "socket")},
        )
        yield keeper, url.render_as_string()
    finally:
        keeper.end()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _world(setup: str, seed: int, folder: Path) -> Iterator[tuple[WorldChaos, Store]]:
    """Two runners, three without a cluster on PostgreSQL; with one, two workers of two slots."""
    marker = f"chaos-{uuid.uuid4().hex}"
    environment = {**os.environ, MARKER: marker}
    server, url = None, f"sqlite:///{folder / 'sluice.db'}"
    cluster = TestCluster(environment=environment, slots=2) if setup == "cluster" else None
    with _server_where(not setup.startswith("sqlite")) as given:
        if given is not None:
            server, url = given
        store = create_store(url)
        store.upgrade()
        address = []
        if cluster is not None:
            cluster.start_scheduler()
            address = [cluster.address]
        command = ("-m", "tests.jobs.runner_process", url, str(LEASE_S), *address)
        clocks = cycle(_clocks(folder) if setup.endswith("clocks") else [{}])

        def start() -> Member:
            return Member.start(command, {**environment, **next(clocks)})

        chaos = WorldChaos(store, url, start, random.Random(seed), cluster=cluster, server=server)
        try:
            if cluster is not None:
                for _ in range(2):
                    cluster.start_worker()
            chaos.populate(2 if setup in ("sqlite", "cluster") else 3)
            yield chaos, store
        finally:
            chaos.close()
            if cluster is not None:
                cluster.close()
            store.dispose()
    until_s = time.monotonic() + 30.0
    while marked(marker) and time.monotonic() < until_s:
        time.sleep(LOOK_S)
    assert marked(marker) == set()


def _clocks(folder: Path) -> list[dict[str, str]]:
    library = str(build_shifted_clock(folder))
    return [{"LD_PRELOAD": library, "SLUICE_TEST_CLOCK_S": str(off_s)} for off_s in CLOCKS_S]


@contextmanager
def _server_where(wanted: bool) -> Iterator[tuple[Keeper, str] | None]:
    if not wanted:
        yield None
        return
    with _server() as found:
        yield found


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("setup", [*SETUPS, *CLOCK_SETUPS])
def test_nothing_is_lost_doubled_or_failed(setup: str, seed: int, tmp_path: Path) -> None:
    """Answers are those of an undisturbed run, and at least one came too late and was refused."""
    rng = random.Random(seed)
    with _world(setup, seed, tmp_path) as (chaos, store):
        hours = {round((member.ready["time_s"] - time.time()) / 3600) for member in chaos.members}
        assert hours == ({s // 3600 for s in CLOCKS_S} if setup.endswith("clocks") else {0})
        jobs = [accepted(store, at, "lasts", wall_s=rng.uniform(0.05, 0.4)) for at in range(JOBS)]
        kinds = chaos.deeds()
        number = max(len(kinds), JOBS // JOBS_A_DEED) if is_campaign() else len(kinds)
        deeds = [kinds[at % len(kinds)] for at in range(number)]
        rng.shuffle(deeds)
        began_s = time.monotonic()
        for at, deed in enumerate(deeds):
            enough = JOBS * (at + 1) // (len(deeds) + 2)
            wait_until(partial(_have_ended, chaos, enough), chaos.states)
            deed()
            chaos.done[deed.__name__] += 1
        wait_until(partial(_have_ended, chaos, JOBS), chaos.states)
        jobs += [accepted(store, JOBS + at, "lasts", wall_s=1.5) for at in range(LAST_JOBS)]
        wait_until(lambda: chaos.states()[JobState.RUNNING] >= len(chaos.members), chaos.states)
        chaos.stop_member(GUARD_S)
        wait_until(partial(_have_ended, chaos, len(jobs)), chaos.states)
        states = {state: number for state, number in chaos.states().items() if number}
        kept = patiently(partial(_kept, store))
        claims = Counter(job.claim for job in _all(store))
        blamed = {
            "losses": sum(job.losses for job in _all(store)),
            "crashes": sum(job.crashes for job in _all(store)),
        }
        fenced = sum(json.loads(member.stop())["fenced"] for member in chaos.members)
        print(
            json.dumps(
                {
                    "setup": setup,
                    "seed": seed,
                    "jobs": len(jobs),
                    "deeds": chaos.done,
                    "states": states,
                    "claims": claims,
                    **blamed,
                    "fenced": fenced,
                    "seconds": round(time.monotonic() - began_s, 1),
                }
            )
        )
    assert states == {JobState.DONE: len(jobs)}
    expected = [json.dumps({"number": at, "latency_us": 2.0}).encode() for at in range(len(jobs))]
    assert kept == sorted(expected)
    assert fenced >= 1, "nothing came too late: it shows nothing"


def _have_ended(chaos: Chaos, number: int) -> bool:
    states = chaos.states().items()
    return sum(count for state, count in states if JobState(state).is_terminal) >= number


def _kept(store: Store) -> list[bytes]:
    with store.reading() as unit:
        names = [one.id for one in unit.answers.list(limit=10**6)]
        return sorted(unit.answers.get(name).body for name in names)


def _all(store: Store) -> list[JobRecord]:
    with store.reading() as unit:
        return list(unit.jobs.list(limit=10**6))
