"""The best repeated size of every message of a range, in whole bytes.

Source    own derivation; docs/theory.md sec. 15.
Notation  B: message; s: the repeated size; k fragments: q = k - 1 of s and r = B - q s <= s; g, G:
          (n,) µs and µs/byte.
Cost      O(n) for each message and each count that a dual does not exclude: two or three of them.
Exact     the best of every admitted whole size.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from domain.errors import StrategyDeclined
from domain.plan_table import FRACTION_BITS
from domain.problem import Problem
from solvers.contract import Deadline
from solvers.heuristics.repeat import search
from solvers.heuristics.repeat_search import Best
from solvers.kernels import PipelineArrays, active
from solvers.kernels.native_whole import whole_of
from solvers.tables.points import HostCosts
from solvers.tables.repeat_duals import Dual, Line, live_counts
from solvers.tables.repeat_points import value_us

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROOM = 3  # units that the remainder leaves for each full fragment, in halves
CHUNK = 64  # messages that are looked at together, at least;
GROWTH = 50  # and a part of the message
_MAX_WORK = 6_000_000  # messages times counts
_DUALS = (0.85, 0.93, 1.0, 1.07, 1.15)  # of the best count: whose duals are asked
_MAX_MESSAGES = 1 << 21
_MAX_LIVE = 64  # counts of a chunk

_WHOLE_SHARE = 0.5  # of the tolerance, that rounding up takes where chords can do without

_FAR_S = 3600.0


def best_of_count(problem: Problem, k: int, first: int, messages: int) -> tuple[Ints, Floats]:
    """Return the best whole size of k fragments for each of this many messages from the first on,
    and its latency in µs without delay; 0 and infinity where the limits admit none.

    None of the messages is above the problem's own.
    """
    if k > 1 and active.NATIVE is not None and (whole := whole_of(problem)) is not None:
        return active.NATIVE.whole.repeated_each(whole, k, first, messages)
    arrays, limits = PipelineArrays.of(problem.pipeline), problem.limits
    B, unit = first + np.arange(messages, dtype=np.int64), limits.alignment_bytes
    if k == 1:
        alone = (limits.max_fragment_bytes or first + messages) >= B
        latency = np.where(alone, arrays.g.sum() + arrays.G.sum() * B, np.inf)
        return np.where(alone, -(-B // unit) * unit, 0), latency
    minimum, maximum = problem.aligned_sizes()
    low = np.maximum(-(-B // k), minimum)
    low = -(-low // unit)
    high = np.minimum((B - problem.smallest_fragment_bytes) // (k - 1), maximum) // unit
    fits = (low <= high) & (problem.smallest_fragment_bytes < B)
    low, high = np.where(fits, low, 1), np.where(fits, high, 1)
    counts, start, end = np.full(messages, k), low, high
    while (start < end).any():
        middle = (start + end) // 2
        falls = _latencies(arrays, B, counts, middle * unit)[1] < 0.0
        start = np.where(falls, np.minimum(middle + 1, end), start)
        end = np.where(falls, end, middle)
    before = np.maximum(start - 1, low)
    one, other = (_latencies(arrays, B, counts, z * unit)[0] for z in (before, start))
    size = np.where(one < other, before, start) * unit
    return np.where(fits, size, 0), np.where(fits, np.minimum(one, other), np.inf)


def read_us(problem: Problem, first: int, messages: int, sizes: tuple[int, int]) -> Floats:
    """Return the latency in µs, without delay, of what a reader takes for each of this many
    messages from the first on, where the sizes are those of an entry there and of that behind them.
    """
    if active.NATIVE is not None and (whole := whole_of(problem)) is not None:
        return active.NATIVE.whole.read_us(whole, first, messages, sizes)
    at, unit = np.arange(messages, dtype=np.int64), problem.limits.alignment_bytes
    share = -((-at << FRACTION_BITS) // messages)
    s = sizes[0] + unit * -(-((sizes[1] - sizes[0]) // unit * share) >> FRACTION_BITS)
    arrays, B = PipelineArrays.of(problem.pipeline), first + at
    return _latencies(arrays, B, -(-B // s), s)[0]


def _latencies(arrays: PipelineArrays, B: Ints, k: Ints, size: Ints) -> tuple[Floats, Floats]:
    value, slope, _ = value_us(arrays.g, arrays.G, B.astype(float), k, size.astype(float))
    return value, slope


def rounding_us(problem: Problem, k: int) -> float:
    """Return the most that a size greater by 1.5 units adds, in the steepest of all paths, µs."""
    G, q = PipelineArrays.of(problem.pipeline).G, k - 1
    before, after = np.cumsum(G), np.cumsum(G[::-1])[::-1]
    steepest = float((before + (q - 1) * np.maximum.accumulate(G) - q * after).max())
    return 0.5 * ROOM * problem.limits.alignment_bytes * max(0.0, steepest)


class EveryMessage:
    """The best of all whole repeated sizes of every message from `first` to `last`, run times
    beside a host.

    `last` is where a tolerance leaves room for rounding up, or where counting on would take too
    long; `first` - 1 where there are none.
    """

    def __init__(
        self, problem: Problem, host: HostCosts | None, first: int, *, tolerance: float
    ) -> None:
        self._problem, self._host, self.first, self.last = problem, host, first, first - 1
        self._tolerance, self.work, self._near = tolerance, 0, 0
        self._best_us: list[Floats] = []
        self._counts: list[Ints] = []
        self.is_done = False

    def run(self, reached: Callable[[int], bool]) -> None:
        """Find them all, as long as `reached`, called with the message it has come to, is true."""
        maximum = min(self._last_rough(), self.first + _MAX_MESSAGES)
        while self.last < maximum and self.work < _MAX_WORK:
            start = self.last + 1
            if not reached(start):
                break
            end = min(maximum, start - 1 + max(CHUNK, start // GROWTH))
            if not self._chunk(start, end):
                break
            self.last = end
        self.is_done = True
        self.best_us = np.concatenate([np.zeros(0), *self._best_us])
        self.counts = np.concatenate([np.zeros(0, dtype=np.int64), *self._counts])

    def of_count(self, k: int, first: int, last: int) -> tuple[Ints, Floats]:
        """Return best sizes of k fragments and what they take, µs, delay included."""
        sizes, latency = best_of_count(self._problem, k, first, last - first + 1)
        return sizes, self._taken_us(latency, k, first)

    def read_us(self, first: int, last: int, sizes: tuple[int, int]) -> Floats:
        """Return what a reader's sizes take from the first message to before the last, µs, delay
        included.
        """
        found = read_us(self._problem, first, last - first, sizes)
        return self._taken_us(found, -(-first // sizes[0]), first)

    def _taken_us(self, latency: Floats, k: int, first: int) -> Floats:
        total = latency + self._problem.pipeline.delay_us
        if self._host is None:
            return total
        return self._host.longer_us(total, k, first + np.arange(len(total), dtype=np.int64))

    def _chunk(self, first: int, last: int) -> bool:
        """Append these messages; whether that is of use and was not too much."""
        counts = self._admitted(first, last)
        near = self._near or -(-first // max(1, self._best_at(first).size))
        near = min(max(near, counts[0]), counts[1])
        _, known = self.of_count(near, first, last)
        live = self._live(first, last, counts, (near, known))
        if live is None or len(live) > _MAX_LIVE:
            return False
        rows = [known if k == near else self.of_count(k, first, last)[1] for k in live.tolist()]
        self.work += len(rows) * len(known)
        best = np.argmin(rows, axis=0)
        self._best_us.append(np.min(rows, axis=0))
        self._counts.append(live[best])
        self._near = int(live[best[-1]])
        return True

    def _admitted(self, first: int, last: int) -> tuple[int, int]:
        """The counts that some of these messages admit."""
        ends = [replace(self._problem, message_bytes=size).count_range() for size in (first, last)]
        most = min(self._problem.limits.max_fragments or 1 << 62, self._problem.fragment_cap)
        return ends[0].minimum, min(most, max(ends[0].maximum, ends[1].maximum) + 1)

    def _last_rough(self) -> int:
        """A message above which rounding up leaves room within the tolerance."""
        size, smooth = self._problem.message_bytes, self._problem.message_bytes + 1
        while size >= self.first:
            best = self._best_at(size)
            k = max(2, -(-size // best.size)) if best.size else 2
            if rounding_us(self._problem, k) > _WHOLE_SHARE * self._tolerance * best.latency_us:
                break
            smooth, size = size, size // 2
        return smooth - 1

    def _best_at(self, message: int) -> Best:
        best = Best()
        with suppress(StrategyDeclined):
            search(replace(self._problem, message_bytes=message), best, Deadline.after(_FAR_S))
        return best

    def _live(
        self, first: int, last: int, counts: tuple[int, int], near: tuple[int, Floats]
    ) -> Ints | None:
        """The counts that may be best at one of these messages."""
        k, known = near
        duals = [
            Dual.at(self._problem, other, at, size)
            for other in sorted({max(2, int(k * part)) for part in _DUALS})
            for at in (first, last)
            if (size := int(best_of_count(self._problem, other, at, 1)[0][0]))
        ]
        if not duals or not np.isfinite(known).all():
            span = counts[1] - counts[0]
            return np.arange(counts[0], counts[1] + 1) if span < _MAX_LIVE else None
        line = np.linspace(known[0], known[-1], len(known))
        over = float((known - line).max()) - self._problem.pipeline.delay_us
        straight = Line(first, last, float(line[0]) + over, float(line[-1]) + over)
        live = live_counts(duals, straight, counts, k)
        return None if live is None else np.union1d(live, [k])
