"""Processes that share the jobs of a database, and everything that may happen to them."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from models.engines import parse_url, sqlite_file
from models.records import JobState
from models.session import Store

CHECKOUT = Path(__file__).parents[2]
_TRIES = 50


def chaos_jobs(default: int) -> int:
    """How many jobs a campaign of deaths has."""
    return int(os.environ.get("SLUICE_CHAOS_JOBS") or default)


@dataclass(slots=True)
class Member:
    """One process, and what it said when it was ready."""

    process: subprocess.Popen[str]
    ready: dict[str, Any]

    @classmethod
    def start(cls, command: Sequence[str], environment: dict[str, str]) -> Member:
        """Start it, and wait for a line of JSON."""
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=CHECKOUT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        return cls(process, json.loads(process.stdout.readline()))

    @property
    def lives(self) -> bool:
        return self.process.poll() is None

    def workers(self) -> list[psutil.Process]:
        """The processes below it."""
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.process.pid).children(recursive=True)
        return []

    def stop(self) -> str:
        """End it as an operator does; what it said since it was ready."""
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        return self.process.communicate()[0]

    def kill(self) -> None:
        """End it at once; nothing happens where it has ended."""
        if self.lives:
            self.process.kill()
            self.process.communicate()


@dataclass
class Chaos:
    """A few members, one of which is started anew for each that is gone."""

    store: Store
    url: str
    start: Callable[[], Member]
    rng: random.Random
    members: list[Member] = field(default_factory=list)
    killed: int = 0
    workers_killed: int = 0
    stopped: int = 0

    def populate(self, count: int) -> None:
        """Start members."""
        self.members += [self.start() for _ in range(count)]

    def kill_member(self) -> None:
        """kill -9 of a member, and another one in its place."""
        member = self.rng.choice(self.members)
        member.kill()
        self.killed += 1
        self.members[self.members.index(member)] = self.start()

    def kill_worker(self) -> None:
        """kill -9 of a process below a member."""
        workers = [worker for member in self.members for worker in member.workers()]
        if workers:
            with suppress(psutil.NoSuchProcess):
                self.rng.choice(workers).kill()
                self.workers_killed += 1

    def stop_member(self, guard_s: float) -> None:
        """Stop a member that runs a job, until the others hold it for dead; then it goes on.

        Whatever it still writes of that job comes too late.
        """
        for _ in range(_TRIES):
            member = self.rng.choice(self.members)
            member.process.send_signal(signal.SIGSTOP)
            try:
                held = self.held_by(member)
                if held and not self._is_locked() and self._is_removed(held, guard_s):
                    self.stopped += 1
                    return
            finally:
                member.process.send_signal(signal.SIGCONT)
            time.sleep(self.rng.uniform(0.0, 0.2))
        raise AssertionError("no member had a job when it was stopped")

    def close(self) -> None:
        """End all members at once."""
        for member in self.members:
            member.kill()

    def states(self) -> dict[str, int]:
        """How many jobs are in which state."""
        with self.store.reading() as unit:
            jobs = unit.jobs.list(limit=10**6)
        return {state: sum(job.state == state for job in jobs) for state in JobState}

    def held_by(self, member: Member) -> str | None:
        """Its name as a runner, where it runs a job."""
        with self.store.reading() as unit:
            runners = {runner.name: runner.process.split() for runner in unit.runners.all()}
            running = {job.runner for job in unit.jobs.list(state=JobState.RUNNING, limit=10**6)}
        number = str(member.process.pid)
        for name, process in runners.items():
            if name in running and process[1:2] == [number]:
                return name
        return None

    def _is_removed(self, name: str, guard_s: float) -> bool:
        end_s = time.monotonic() + guard_s
        while time.monotonic() < end_s:
            with self.store.reading() as unit:
                if name not in {runner.name for runner in unit.runners.all()}:
                    return True
            time.sleep(0.05)
        return False

    def _is_locked(self) -> bool:
        """Whether it was stopped in the middle of a write, which on SQLite stops everybody."""
        file = sqlite_file(parse_url(self.url)) if self.store.dialect == "sqlite" else None
        if file is None:
            return False
        with closing(sqlite3.connect(file, timeout=0.2, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("ROLLBACK")
            except sqlite3.OperationalError:
                return True
        return False
