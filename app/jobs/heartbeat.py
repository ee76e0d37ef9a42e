"""A runner's beats, and its look at those of the others.

No clock is compared with another one: a runner is held for dead when this one, by its own monotonic
clock, has seen no beat of it for a whole lease. While the database is away nobody's beats can be
seen, so that the time begins anew when it is back.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.jobs.options import RunnerOptions
from app.jobs.processes import is_gone, this_process
from app.schemas.base import dump_json
from app.schemas.problems import ProblemOut
from domain.errors import Conflict, SolverFailed, StoreUnavailable
from models.identifiers import new_id
from models.records import MAX_LOSSES, RunnerRecord

if TYPE_CHECKING:
    from models.session import Store

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
