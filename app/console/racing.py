"""A race of sizes as it is run: within a time limit, shown and kept run by run.

The race names sizes (`analysis.size_race`), what runs one is given: a program of the user's own, or
the probe's transfers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from measuring.own_program import ProgramRun

if TYPE_CHECKING:
    from analysis.size_race import SizeRace

RunSize = Callable[[int, float], ProgramRun]  # of a size, in s at most
_USUAL_RUNS = 24  # of a race, in the median
_HANGS, _HANGS_S = 10.0, 5.0  # so many times the longest run, and so many s, are no run any more
_TOO_LONG = 3.0  # times the longest run: it is the size that takes long, not the limit that is near


class Ended(StrEnum):
    """Why no further size is run."""

    RACE = "race"  # it is decided, or its runs are used up
    TIME = "time"
    INTERRUPTED = "interrupted"


@dataclass(slots=True)
class RaceRun:
    """One session of a race: `limit_s` for all its runs together.

    `after_run` is given a size and what came of it, once the race has it. `began_s` is when the
    session begins, in s after the first run of all.
    """

    race: SizeRace
    run: RunSize
    limit_s: float
    began_s: float = 0.0
    after_run: Callable[[int, ProgramRun], None] = lambda size, run: None
    _longest_s: float = field(default=0.0, init=False)
    _beyond_s: float = field(default=0.0, init=False)  # of a run, beside the time that counts

    def to_end(self) -> Ended:
        """Run sizes until the race ends, or time does.

        A run that takes longer than all that is left, and than any before, gets SIGTERM: it is the
        last one. One that takes ten times as long as any before gets it too, and is refused.
        """
        start_s = time.monotonic()
        while (size := self.race.next()) is not None:
            now_s = time.monotonic() - start_s
            left_s = self.limit_s - now_s
            if self._expected_s(size) > left_s or left_s <= 0.0:
                return Ended.TIME
            hangs_s = max(_HANGS_S, _HANGS * self._longest_s) if self._longest_s else left_s
            found = self.run(size, min(left_s, hangs_s))
            is_last = found.is_too_long and hangs_s >= left_s
            if is_last and not (self._longest_s and found.took_s > _TOO_LONG * self._longest_s):
                return Ended.TIME  # which says nothing of this size
            self.race.tell(
                size,
                None if found.latency_us is None else max(0.001, round(found.latency_us, 3)),
                began_s=round(self.began_s + now_s, 6),
                is_too_long=found.is_too_long,
                reason=found.reason,
            )
            if found.latency_us is not None:
                self._longest_s = max(self._longest_s, found.took_s)
                self._beyond_s = max(self._beyond_s, found.took_s - found.latency_us * 1e-6)
            self.after_run(size, found)
            if is_last:
                return Ended.TIME
        return Ended.RACE

    def _expected_s(self, size: int) -> float:
        expected_us = self.race.expected_us(size)
        return 0.0 if expected_us is None else expected_us * 1e-6 + self._beyond_s


def first_words(took_s: float, limit_s: float, max_runs: int) -> str:
    """Return what the first run lets expect: "9 s a run: about 24 runs, 220 s; 60 s allow 6"."""
    runs = min(_USUAL_RUNS, max_runs)
    words = f"{_seconds(took_s)} a run: about {runs} runs, {_seconds(runs * took_s)}"
    if runs * took_s <= limit_s:
        return words
    return f"{words}; {_seconds(limit_s)} allow {max(1, int(limit_s / took_s))}"


def _seconds(time_s: float) -> str:
    return f"{time_s:.2g} s" if time_s < 99.5 else f"{round(time_s, -1):.0f} s"
