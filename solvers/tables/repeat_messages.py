"""The best repeated size of every message of a range, in whole bytes, and entries that read as it.

Source    own derivation; docs/theory.md sec. 15.
Notation  B: message; s: the repeated size; k fragments: q = k - 1 of s and r = B - q s <= s; g, G:
          (n,) µs and µs/byte; b <= c: stages; a dual: paths' mean alpha q + beta s + rho r + ...
Cost      O(n) for each message and each count that a dual does not exclude: two or three of them.
Exact     the best of every admitted whole size, and what a reader takes at every message: the gap
          of a stretch is the greatest of their quotients, and nothing of it is a bound.
Traps     a reader rounds up, so a size is right from one entry to the next where both are the last
          message of their size: that is where entries are put.

Derivation. The path that enters stage c with the remainder, and waited in stage b, takes
sum_{j<=c} t_j(s) + (q - 1) t_b(s) + sum_{j>=c} t_j(r). With q s = B - r this is a line in q, s, r
and B. A mean of such lines, whatever its weights, is below the latency of every count at every
message; over r in [0, B/k], s = (B - r)/q, it is least at an end of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from domain.errors import StrategyDeclined
from domain.plan_table import FRACTION_BITS, MAX_SHIFT_UNITS
from domain.problem import Problem
from solvers.contract import Deadline
from solvers.heuristics.repeat import Best, search
from solvers.kernels import PipelineArrays, active
from solvers.kernels.native_whole import whole_of
from solvers.tables.points import HostCosts
from solvers.tables.repeat_points import value_us

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

ROOM = 3  # units that the remainder leaves for each full fragment, in halves
_CHUNK = 64  # messages that are looked at together, at least;
_GROWTH = 50  # and a part of the message
_MAX_WORK = 6_000_000  # messages times counts
_DUALS = (0.85, 0.93, 1.0, 1.07, 1.15)  # of the best count: whose duals are asked
_MAX_MESSAGES = 1 << 21
_MAX_LIVE = 64  # counts of a chunk
_MAX_COUNTS = 16_384  # that a dual is asked of
_WHOLE_SHARE = 0.5  # of the tolerance, that rounding up takes where chords can do without
_NEAR = (0, 1, 2, 3, -1)  # counts beside the best that may last longer
_FAR_S = 3600.0
_SAFE = 1e-12


class Read(NamedTuple):
    """An entry: from this message on this size (0: none is admitted), and the gap up to the
    next.
    """

    message: int
    size: int
    relative_gap: float


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


# --- which counts can be best ---------------------------------------------------------------------


class Dual(NamedTuple):
    """A mean of paths: fixed + per_byte B + per_full q + per_size s + per_rest r, µs, no delay."""

    fixed: float
    per_byte: float
    per_full: float
    per_size: float
    per_rest: float

    @classmethod
    def at(cls, problem: Problem, k: int, message: int, size: int) -> Dual:
        """Return the mean of the longest paths at this size and at the one before it that is least
        where the two meet; the longest path alone where there are no two that fall and rise.
        """
        arrays, unit = PipelineArrays.of(problem.pipeline), problem.limits.alignment_bytes
        rising, slope = _path(arrays, k, message, size)
        falling, before = _path(arrays, k, message, max(size - unit, 1))
        if not before < 0.0 < slope:
            return rising
        share = slope / (slope - before)
        mean = share * np.array(falling) + (1.0 - share) * np.array(rising)
        return cls(*mean.tolist())

    def ends_us(self, k: Floats, message: int) -> Floats:
        """Return (2, counts) what k >= 2 fragments take at least without a remainder and with one
        that is as large as the others; the lesser of both is below all that is between.
        """
        plain = self.fixed + self.per_byte * message + self.per_full * (k - 1.0)
        ends = np.array(
            [
                self.per_size * message / (k - 1.0),
                (self.per_size + self.per_rest) * message / k,
            ]
        )
        terms = abs(self.fixed) + self.per_byte * message + self.per_full * k
        terms += (self.per_size + abs(self.per_rest)) * message / (k - 1.0)
        out: Floats = plain + ends - _SAFE * terms
        return out


def _path(arrays: PipelineArrays, k: int, message: int, size: int) -> tuple[Dual, float]:
    """The longest path of a count at a size, and its slope in the size."""
    g, G, q = arrays.g, arrays.G, k - 1
    t, rest = g + G * size, g + G * (message - q * size)
    totals = np.cumsum(t) + (q - 1) * np.maximum.accumulate(t) + np.cumsum(rest[::-1])[::-1]
    c = int(np.argmax(totals))
    b = int(np.argmax(t[: c + 1]))
    before, behind, wait = float(G[: c + 1].sum()), float(G[c:].sum()), float(G[b])
    fixed = float(g[: c + 1].sum() + g[c:].sum() - g[b])
    slope = before + (q - 1) * wait - q * behind
    return Dual(fixed, wait, float(g[b]), before - wait, behind - wait), slope


class Line(NamedTuple):
    """What is known of messages: straight from one to the other, µs without delay."""

    first: int
    last: int
    first_us: float
    last_us: float


def live_counts(duals: list[Dual], known: Line, counts: tuple[int, int], near: int) -> Ints | None:
    """Return the counts, of these from the least to the greatest, that no dual shows to reach what
    is known at all of its messages. None where it takes too many of them to tell.
    """
    low, high = counts
    last = min(high, max(2 * near, near + 8))
    while last - low <= _MAX_COUNTS:
        k = np.arange(low, last + 1)
        out, is_all = np.zeros(len(k), dtype=bool), last == high
        for dual in duals:
            one, other = (
                dual.ends_us(np.maximum(k, 2).astype(float), message)
                for message in (known.first, known.last)
            )
            rows = np.concatenate([one - known.first_us, other - known.last_us])
            reached = (rows >= 0.0).all(axis=0) & (k > 1)
            out |= reached  # each row is convex in k, or rises: once it rises it does so for ever
            is_all |= bool(reached[-1]) and bool((rows[:, -1] >= rows[:, -2:][:, 0]).all())
        if is_all:
            return k[~out]
        last = min(high, 2 * last)
    return None


def rounding_us(problem: Problem, k: int) -> float:
    """Return the most that a size greater by 1.5 units adds, in the steepest of all paths, µs."""
    G, q = PipelineArrays.of(problem.pipeline).G, k - 1
    before, after = np.cumsum(G), np.cumsum(G[::-1])[::-1]
    steepest = float((before + (q - 1) * np.maximum.accumulate(G) - q * after).max())
    return 0.5 * ROOM * problem.limits.alignment_bytes * max(0.0, steepest)


# --- all messages of a range ----------------------------------------------------------------------


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
            end = min(maximum, start - 1 + max(_CHUNK, start // _GROWTH))
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


# --- entries --------------------------------------------------------------------------------------


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
        best, span = int(every.counts[index]), max(_CHUNK, at // _GROWTH)
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
        return gap if gap <= self._tolerance + 2.0 * _SAFE else None

    def _gap(self, first: int, last: int, sizes: tuple[int, int]) -> float:
        """The greatest quotient, less 1, from the first message to before the last."""
        found = self._every.read_us(first, last, sizes)
        best = self._every.best_us[first - self._every.first : last - self._every.first]
        with np.errstate(divide="ignore", invalid="ignore"):
            over = np.where(best > 0.0, found / best - 1.0, np.where(found > 0.0, np.inf, 0.0))
        return max(0.0, float(over.max())) + _SAFE
