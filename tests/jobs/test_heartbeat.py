"""app/jobs/ledger.py: who is held for dead, and when; on each database."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from app.jobs import ledger
from app.jobs.ledger import (
    Heartbeat,
    RunnerOptions,
    is_gone,
    remember_retention,
    this_process,
)
from app.settings import Settings
from domain.errors import StoreUnavailable
from models.base import utc_now
from models.records import EVERYBODY, JobState, Keep
from models.session import Store
from tests.jobs.support import wait_until
from tests.models.test_collection import add, connected
from tests.support.records import a_job

OPTIONS = RunnerOptions(lease_s=15.0, beat_s=3.0, fence_s=12.0)


class Clock:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(ledger, "time", made)
    return made


@pytest.fixture
def lost() -> list[str]:
    """What a runner was told."""
    return []


@pytest.fixture
def heart(store: Store, clock: Clock, lost: list[str]) -> Heartbeat:
    made = Heartbeat(store, OPTIONS, partial(lost.append, "lost"))
    made.beat()
    return made


def register(store: Store, name: str, *, process: str = "") -> None:
    """Another runner, with a job."""
    with store.unit_of_work() as unit:
        unit.runners.register(name, process=process)
        unit.jobs.add(a_job())
        assert unit.jobs.claim(name) is not None


def names(store: Store) -> set[str]:
    with store.reading() as unit:
        return {runner.name for runner in unit.runners.all()}


def test_who_does_not_beat_for_a_lease_is_removed(
    store: Store, heart: Heartbeat, clock: Clock
) -> None:
    """And what it ran waits again; who beats stays, however slow its clock."""
    for name in ("silent", "slow"):
        register(store, name)
    for second in range(0, 15, 3):
        clock.now_s = 1000.0 + second
        heart.beat()
        if second % 6 == 0:
            with store.unit_of_work() as unit:
                assert unit.runners.beat("slow")
        assert names(store) == {"silent", "slow", heart.name}
    clock.now_s = 1015.0
    heart.beat()
    assert names(store) == {"slow", heart.name}
    with store.reading() as unit:
        states = {job.runner: (job.state, job.losses) for job in unit.jobs.list(limit=9)}
    assert states == {"slow": (JobState.RUNNING, 0), None: (JobState.QUEUED, 1)}


def test_time_in_which_it_could_not_look_does_not_count(
    store: Store, heart: Heartbeat, clock: Clock
) -> None:
    """It was stopped itself, and with it maybe everybody."""
    register(store, "other")
    heart.beat()
    clock.now_s += 100.0
    for _ in range(5):
        heart.beat()
        assert "other" in names(store)
        clock.now_s += 3.0
    heart.beat()
    assert "other" not in names(store)


def test_who_was_removed_goes_on_under_a_new_name(
    store: Store, heart: Heartbeat, lost: list[str]
) -> None:
    """And is told that what it ran is lost."""
    was = heart.name
    with store.unit_of_work() as unit:
        unit.runners.remove(was)
    heart.beat()
    assert (heart.name != was, lost) == (True, ["lost"])
    assert names(store) == {heart.name}
    heart.beat()
    assert lost == ["lost"]


def test_what_is_claimed_under_the_new_name_is_not_told_to_be_lost(store: Store) -> None:
    """The runner hears that it was held for dead while it still has the name that is gone."""
    seen: list[str] = []
    heart = Heartbeat(store, OPTIONS, lambda: seen.append(heart.name))
    heart.beat()
    was = heart.name
    with store.unit_of_work() as unit:
        unit.runners.remove(was)
    heart.beat()
    assert seen == [was] != [heart.name]


def test_who_cannot_beat_fences_itself(
    store: Store, clock: Clock, lost: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the others take its jobs; each time that it tries, until it can again."""
    heart = Heartbeat(store, replace(OPTIONS, beat_s=0.01), partial(lost.append, "lost"))
    heart.start()

    def away() -> None:
        clock.now_s += 3.0
        raise StoreUnavailable("the database is away")

    with monkeypatch.context() as patched:
        patched.setattr(store, "unit_of_work", away)
        began_s = clock.now_s
        wait_until(lambda: bool(lost))
    assert clock.now_s - began_s >= 12.0
    heart.close()
    assert names(store) == set()


def test_a_neighbour_that_ended_is_removed_at_once(store: Store, heart: Heartbeat) -> None:
    """By its number and start; one of another machine is not judged by them."""
    with _neighbour() as process:
        reported = _reported(process)
        register(store, "neighbour", process=reported)
        register(store, "elsewhere", process=f"another-machine {reported.partition(' ')[2]}")
        heart.beat()
        assert {"neighbour", "elsewhere"} <= names(store)
        assert not is_gone(reported)
        process.kill()
        process.wait()
    assert is_gone(reported)
    heart.beat()
    assert names(store) == {"elsewhere", heart.name}


def test_what_is_no_process_is_not_gone() -> None:
    """Nobody is judged by what cannot be read; a number that was given anew is another process."""
    here = this_process()
    machine, number, _ = here.split()
    assert int(number) == os.getpid()
    unknown = ("", "x", f"{machine} x 1.0", f"{machine} {number}", "other 1 1.0", here)
    assert [is_gone(process) for process in unknown] == [False] * len(unknown)
    assert is_gone(f"{machine} {number} 1.00")


def test_a_process_is_known_by_its_start_since_the_boot(tmp_path: Path) -> None:
    """Which setting the clock does not move; by any name, and gone before its parent looks."""
    ticks = time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK")
    assert 0 < int(this_process().split()[2]) <= ticks
    program = tmp_path / "a) Z (1"
    program.symlink_to(sys.executable)
    with subprocess.Popen([program, "-c", "import time; time.sleep(1000)"]) as process:
        reported = _reported(process)
        assert not is_gone(reported)
        process.kill()
        wait_until(lambda: is_gone(reported))


def _neighbour() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])


def _reported(process: subprocess.Popen[bytes]) -> str:
    machine = this_process().split()[0]
    return f"{machine} {process.pid} {ledger._start_of(process.pid)}"


def test_the_oldest_runner_deletes_by_rules_that_another_process_was_given(
    store: Store, database_url: str
) -> None:
    """One that was started without any: a service that starts later with some writes them down."""
    at = utc_now() - timedelta(hours=3)
    with connected(database_url) as connection:
        for number in range(99):
            add(connection, "job", id=f"j{number}", state="done", created_at=at, finished_at=at)
    options = replace(OPTIONS, beat_s=0.1, collect_s=0.05)
    with started(store, options, retention="") as oldest:
        wait_until(lambda: oldest.collector.may_collect)
        assert not oldest.collector.collected
        with started(store, options, retention="jobs=1h") as youngest:
            wait_until(lambda: oldest.collector.collected["jobs"] == 99)
            assert not youngest.collector.collected
    with started(store, options, retention=""), store.reading() as unit:
        assert unit.retention.all() == {EVERYBODY: {"jobs": Keep(3600.0)}}


@contextmanager
def started(store: Store, options: RunnerOptions, *, retention: str) -> Iterator[Heartbeat]:
    """A process that runs jobs, with this variable, until the block ends."""
    remember_retention(store, Settings(retention=retention))
    heart = Heartbeat(store, options, lambda: None)
    heart.start()
    try:
        yield heart
    finally:
        heart.close()
