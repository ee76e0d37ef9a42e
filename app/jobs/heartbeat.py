"""Heartbeats of a runner: its process, its times, and its check of the other runners.

Neighbours on the same machine see at once that a process is gone; elsewhere its beats are missed.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from app.schemas.base import ProblemOut, dump_json
from domain.errors import Conflict, SolverFailed, StoreUnavailable
from models.identifiers import new_id
from models.records import MAX_LOSSES, RunnerRecord

if TYPE_CHECKING:
    from models.session import Store


_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")


def this_process() -> str:
    """Return this process by its machine, namespace of processes, number and start; else ''."""
    try:
        started = psutil.Process().create_time()
    except psutil.Error:
        return ""
    return f"{_machine()} {os.getpid()} {started:.2f}" if _machine() else ""


def is_gone(process: str) -> bool:
    """Return whether this process was on this machine and has ended; False where unknown."""
    machine, _, rest = process.partition(" ")
    number, _, started = rest.partition(" ")
    if not started or machine != _machine():
        return False
    try:
        found = psutil.Process(int(number))
        return f"{found.create_time():.2f}" != started or found.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
    except (psutil.Error, ValueError):
        return False


def _machine() -> str:
    """Return the boot and the namespace in which numbers of processes mean something."""
    try:
        return f"{_BOOT.read_text().strip()}/{_NAMESPACE.stat().st_ino}"
    except OSError:
        return ""


# --- the times of a runner ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerOptions:
    """Seconds. A runner beats each `beat_s`; others hold it for dead after `lease_s` without one.

    One that could not beat for `fence_s` ends its own tasks: by `lease_s` others may have them.
    Each `poll_s` it looks for jobs and cancels that it was not notified of; `show_s` lies between
    two writes of how far a job is. A job whose worker crashed waits for `crash_wait_s`, four times
    as long after the second crash.
    """

    lease_s: float = 15.0
    beat_s: float = 3.0
    fence_s: float = 12.0
    poll_s: float = 1.0
    show_s: float = 0.5
    retry_s: float = 1.0
    crash_wait_s: float = 1.0

    @classmethod
    def of_lease(cls, lease_s: float) -> RunnerOptions:
        """Return the options of a lease: five beats in it, four until a runner fences itself."""
        return cls(lease_s=lease_s, beat_s=lease_s / 5, fence_s=lease_s * 0.8)


# --- a runner's beats, and its check of the others ------------------------------------------------


log = logging.getLogger("sluice.jobs")

LOST_TOO_OFTEN = dump_json(
    ProblemOut.of(SolverFailed(f"what ran the job was lost {MAX_LOSSES} times"))
)


@dataclass(frozen=True, slots=True)
class _Sighting:
    beats: int
    since_s: float


class Heartbeat:
    """One per runner, with a thread of its own: beats must go on whatever else has to wait.

    `on_lost` is called where this runner has to take all that it runs for lost: it was removed by
    another one, or could not beat for too long.
    """

    def __init__(self, store: Store, options: RunnerOptions, on_lost: Callable[[], None]) -> None:
        self._store = store
        self._options = options
        self._on_lost = on_lost
        self._process = this_process()
        self._seen: dict[str, _Sighting] = {}
        self._beaten_s = time.monotonic()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="sluice-beats", daemon=True)
        self._is_registered = False
        self.name = new_id()

    def start(self) -> None:
        """Register this runner and begin to beat. Raises StoreUnavailable."""
        self.beat()
        self._thread.start()

    def close(self) -> None:
        """Beat no more and leave: what is still running under this name counts as lost."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(timeout=self._options.lease_s)
        try:
            with self._store.unit_of_work() as unit:
                unit.runners.remove(self.name, error=LOST_TOO_OFTEN)
        except StoreUnavailable as error:
            log.warning("a runner could not say that it leaves: %s", error)

    def beat(self) -> None:
        """Beat once, and remove who is dead. Raises StoreUnavailable."""
        name = self.name
        with self._store.unit_of_work() as unit:
            is_known = unit.runners.beat(name)
            if not is_known:
                # By a new name where another one has removed it: what it ran is not its any more.
                name = new_id() if self._is_registered else name
                unit.runners.register(name, process=self._process)
            others = [found for found in unit.runners.all() if found.name != name]
        self.name = name
        if not is_known and self._is_registered:
            log.warning("this runner was held for dead")
            self._on_lost()
        self._is_registered = True
        self._remove_dead(others)
        self._beaten_s = time.monotonic()

    # --- in its thread ----------------------------------------------------------------------------

    def _work(self) -> None:
        while not self._closing.wait(self._options.beat_s):
            try:
                self.beat()
            except (StoreUnavailable, Conflict) as error:
                log.warning("a runner could not beat: %s", error)
                self._seen.clear()
                if time.monotonic() - self._beaten_s >= self._options.fence_s:
                    self._on_lost()
            except Exception:
                log.exception("a runner's beat failed")

    def _remove_dead(self, others: list[RunnerRecord]) -> None:
        now_s = time.monotonic()
        if now_s - self._beaten_s > self._options.lease_s / 2:
            self._seen.clear()  # it was stopped itself, and saw nothing for a while
        self._seen = {other.name: self._sighting(other, now_s) for other in others}
        for other in others:
            unseen_s = now_s - self._seen[other.name].since_s
            if unseen_s >= self._options.lease_s or is_gone(other.process):
                self._remove(other)

    def _sighting(self, other: RunnerRecord, now_s: float) -> _Sighting:
        seen = self._seen.get(other.name)
        return seen if seen and seen.beats == other.beats else _Sighting(other.beats, now_s)

    def _remove(self, dead: RunnerRecord) -> None:
        with self._store.unit_of_work() as unit:
            recovered = unit.runners.remove(dead.name, beats=dead.beats, error=LOST_TOO_OFTEN)
        if recovered is not None:
            log.warning("runner %s is gone; %d of its jobs wait again", dead.name, recovered)
