"""Entries of repeated sizes that read as the best of every message of a range.

Source    own derivation; docs/theory.md sec. 15.
Notation  B: message; s: the repeated size; k fragments.
Cost      O(n) for each message and each count that is tried beside the best.
Exact     what a reader takes at every message: the gap of a stretch is the greatest of their
          quotients, and nothing of it is a bound.
Traps     a reader rounds up, so a size is right from one entry to the next where both are the last
          message of their size: that is where entries are put.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from domain.plan_table import MAX_SHIFT_UNITS
from domain.problem import Problem
from solvers.tables.repeat_duals import SAFE
from solvers.tables.repeat_messages import CHUNK, GROWTH, ROOM, EveryMessage

Ints = NDArray[np.int64]

_NEAR = (0, 1, 2, 3, -1)  # counts beside the best that may last longer


class Read(NamedTuple):
    """An entry: from this message on this size (0: none is admitted), and the gap up to the
    next.
    """

    message: int
    size: int
    relative_gap: float


class Entries:
    """Entries of a table over these messages, within a tolerance of the best of each."""

    def __init__(self, every: EveryMessage, problem: Problem, tolerance: float) -> None:
        self._every, self._limits, self._tolerance = every, problem.limits, tolerance
        self._max_count = min(problem.limits.max_fragments or 1 << 62, problem.fragment_cap)
        best = every.best_us
        self._limit_us = np.where(np.isfinite(best), best * (1.0 + tolerance), -np.inf)

    def runs(self) -> Iterator[tuple[int, list[Read]]]:
        """Yield the messages from one change of counts to the next: the last of them, and their
        entries, ascending.
        """
        at = self._every.first
        while at <= self._every.last:
            end, k, sizes = self._lasting(at)
            yield end, list(self._covered(at, k, sizes)) if k else [Read(at, 0, 0.0)]
            at = end + 1

    def closed(self, entry: Read, end: int) -> list[Read]:
        """Return what a run's last entry needs where any may follow its last message."""
        if entry.message == end:
            return []
        size = entry.size
        return [Read(end, size, self._gap(end, end + 1, (size, size)) if size else 0.0)]

    def _lasting(self, at: int) -> tuple[int, int, Ints]:
        """The last message that one count serves from here on, the count, and its best sizes."""
        every, index = self._every, at - self._every.first
        if not np.isfinite(every.best_us[index]):
            some = np.flatnonzero(np.isfinite(every.best_us[index:]))
            end = at + int(some[0]) - 1 if len(some) else every.last
            return end, 0, np.zeros(0, dtype=np.int64)
        best, span = int(every.counts[index]), max(CHUNK, at // GROWTH)
        counts = [best + more for more in _NEAR if 0 < best + more <= self._max_count]
        while True:
            last = min(every.last, at + span)
            found = [self._served(k, at, last) for k in counts]
            end, count, sizes = max(found, key=lambda one: one[0])
            if end < last or last == every.last:
                return end, count, sizes
            counts, span = [count for reached, count, _ in found if reached == last], 4 * span

    def _served(self, k: int, at: int, last: int) -> tuple[int, int, Ints]:
        """The last of these messages up to which this count keeps to the limit."""
        sizes, latency = self._every.of_count(k, at, last)
        start = at - self._every.first
        over = latency > self._limit_us[start : start + len(latency)]
        end = at + int(np.argmax(over)) - 1 if over.any() else last
        return end, k, sizes[: end - at + 1]

    def _covered(self, at: int, k: int, sizes: Ints) -> Iterator[Read]:
        """Entries for these messages, all of one count."""
        end, here = at + len(sizes) - 1, at
        steps = at + np.flatnonzero(np.diff(sizes))  # the last message of each size but the last
        if k == 1:
            steps = np.array([end] if end > at else [], dtype=np.int64)
        while True:
            size = int(sizes[here - at])
            passed = int(np.searchsorted(steps, here, side="right"))
            found = self._furthest((here, size), steps[passed:], sizes, at)
            if found is not None:
                yield Read(here, size, found[1])
                here = found[0]
            elif here < end and passed and steps[passed - 1] == here:
                yield Read(here, size, self._gap(here, here + 1, (size, size)))
                here += 1
            else:
                yield Read(here, size, self._gap(here, end + 1, (size, size)))
                return

    def _furthest(
        self, start: tuple[int, int], ahead: Ints, sizes: Ints, first: int
    ) -> tuple[int, float] | None:
        """The furthest of some messages, 1, 2, 4, .. steps ahead, to which a reader keeps to the
        limits, and the gap: of what is too far no more is read than twice the stretch.
        """
        found, at = None, min(1, len(ahead))
        while at:
            last = int(ahead[at - 1])
            gap = self._between(start[0], last, (start[1], int(sizes[last - first])))
            if gap is None:
                break
            found = last, gap
            at = min(2 * at, len(ahead)) if at < len(ahead) else 0
        return found

    def _between(self, first: int, last: int, sizes: tuple[int, int]) -> float | None:
        """The gap between entries of these sizes; None where it is too great or not a table's."""
        unit, minimum = self._limits.alignment_bytes, self._limits.min_fragment_bytes
        q, grown = (first - 1) // sizes[0], sizes[1] - sizes[0]
        if not 0 <= grown <= MAX_SHIFT_UNITS * unit:
            return None
        rest = min(first - q * sizes[0], last - q * sizes[1])
        if grown and q and minimum > 1 and 2 * (rest - minimum) < ROOM * unit * q:
            return None
        gap = self._gap(first, last, sizes)
        return gap if gap <= self._tolerance + 2.0 * SAFE else None

    def _gap(self, first: int, last: int, sizes: tuple[int, int]) -> float:
        """The greatest quotient, less 1, from the first message to before the last."""
        found = self._every.read_us(first, last, sizes)
        best = self._every.best_us[first - self._every.first : last - self._every.first]
        with np.errstate(divide="ignore", invalid="ignore"):
            over = np.where(best > 0.0, found / best - 1.0, np.where(found > 0.0, np.inf, 0.0))
        return max(0.0, float(over.max())) + SAFE
