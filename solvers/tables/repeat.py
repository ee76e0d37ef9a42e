"""The best repeated size for every message size of a range, certified at every byte.

Source    theory sec. 2 (`repeat`); own derivation for the bound in the message size.
Notation  B: message; s: the repeated size; k fragments: q = k-1 of size s and a remainder
          r = B - q s <= s; g, G: (n,) µs and µs/byte; a: alignment; b, c: stages.
Cost      O(n) NumPy passes over the counts that can win, a dozen rounds for each message size.
Exact     among repeated sizes, in real sizes; whole units are rounded up, and what that costs is
          in the certificate.
Traps     a size that falls short of B/k by one byte costs a further fragment: readers round up,
          and the remainder of a k > 1 must leave room for that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from domain.errors import StrategyDeclined, TimeLimitReached
from domain.plan_table import FRACTION_BITS, MAX_SHIFT_UNITS, MAX_STRETCH_BYTES, TableRepeat
from domain.problem import Problem
from domain.schedule import latency_us
from domain.solution import relative_excess
from solvers.contract import Deadline
from solvers.heuristics.repeat import search
from solvers.heuristics.repeat_search import Best
from solvers.tables.budget import Memory
from solvers.tables.points import HostCosts, between, up
from solvers.tables.repeat_entries import Entries, Read
from solvers.tables.repeat_messages import ROOM, EveryMessage, read_us, rounding_us
from solvers.tables.repeat_points import (
    Floats,
    Ints,
    RepeatPoint,
    outside,
    repeat_point,
    rows_us,
    shared,
)

_EACH_BYTE = 4_096  # message sizes of a stretch that are evaluated one by one,
_MAX_EACH = 16  # as often as a unit has bytes, up to so often: units hide more of the chord
_FIRST_RATIO = 2.0
_FLOOR_SLACK = 1.05
_MAX_COUNTS = 4  # counts that are tried for a stretch
_MAX_POINTS = 8_000  # message sizes that are tried; then the gaps reached are stated
_UNIT_SHARE = 0.5  # of a unit's share of the size, where units are greater than a byte
_SAFE = 1e-12
_FAR_S = 3600.0


Ends = tuple[int, int]  # whole sizes at the first and the last message of a stretch


class RepeatCompiler:
    """Compiles the repeated sizes of one table, from the least message size upwards."""

    def __init__(
        self,
        problem: Problem,
        host: HostCosts | None = None,
        *,
        min_message_bytes: int,
        max_message_bytes: int,
        tolerance: float,
    ) -> None:
        self._problem, self._host, self._tolerance = problem, host, tolerance
        self._minimum, self._maximum = min_message_bytes, max_message_bytes
        self._unit = problem.limits.alignment_bytes
        self._entries: list[TableRepeat] = []
        self._points = 0
        self._excesses: dict[int, float] = {}  # of the best whole size, by message size
        self._memory = Memory()
        self._every = EveryMessage(problem, host, min_message_bytes, tolerance=tolerance)

    def restart(self, tolerance: float) -> None:
        """Begin anew to this tolerance, with what is known of single messages and stretches."""
        self._tolerance, self._entries, self._points = tolerance, [], 0
        self._memory.open()

    def spend(self) -> None:
        """Take what is proven from now on, as where more message sizes were asked for."""
        self._points = _MAX_POINTS + 1

    @property
    def is_spent(self) -> bool:
        """Whether more message sizes were asked for than are tried."""
        return self._points > _MAX_POINTS

    def run(self, deadline: Deadline, reached: Callable[[int], None]) -> list[TableRepeat]:
        """Return the entries, ascending; `reached` is called with the message that it is at.

        Raises Infeasible and TimeLimitReached.
        """
        start = self._each_message(deadline, reached)
        if start > self._maximum:
            return self._entries
        ahead = [self._point(size) for size in self._first_sizes(start)][::-1]
        here, pending = ahead.pop(), None
        while ahead:
            reached(here.message)
            if deadline.passed:
                raise TimeLimitReached("the plan table was not compiled within its time limit")
            last = ahead[-1]
            if last.message - here.message > MAX_STRETCH_BYTES:
                ahead.append(self._point(here.message + MAX_STRETCH_BYTES))
                continue
            alone = last.message - here.message == 1
            choices = [] if alone else self._choices(here, last, pending)
            if not choices and not alone:
                ahead.append(self._point(between(here.message, last.message)))
                continue
            if alone or (pending is not None and choices[0][0] != pending):
                self._add(here, self._alone(here) if pending is None else pending)
                here, pending = ahead.pop() if alone else self._point(here.message + 1), None
                continue
            same = [ends for ends in choices if pending is None or ends[0] == pending]
            accepted = self._accepted(here, last, same)
            if accepted is not None:
                ends, excess = accepted
                self._add(here, ends[0], excess)
                here, pending = ahead.pop(), ends[1]
            else:
                ahead.append(self._point(between(here.message, last.message)))
        self._add(here, self._alone(here) if pending is None else pending)
        return self._entries

    def _point(self, size: int) -> RepeatPoint:
        self._points += 1
        return self._memory.of(
            size,
            lambda: repeat_point(replace(self._problem, message_bytes=size), self._host),
            cells=lambda point: 4 * len(point.size),
        )

    def _each_message(self, deadline: Deadline, reached: Callable[[int], None]) -> int:
        """Entries of the messages whose whole bytes matter; the first message behind them."""

        def goes_on(size: int) -> bool:
            reached(size)
            if deadline.passed:
                raise TimeLimitReached("the plan table was not compiled within its time limit")
            return not self.is_spent

        if not self._every.is_done:
            self._every.run(goes_on)
        entries, end = Entries(self._every, self._problem, self._tolerance), self._minimum - 1
        found: list[Read] = []
        for run_end, run in entries.runs():
            end = run_end
            found += run
            self._points += len(run)
            if not goes_on(run[0].message):
                break
        if found:
            found += entries.closed(found[-1], end)
        for message, size, relative_gap in found:
            latency = self._us(message, size) if size else 0.0
            self._entries.append(TableRepeat(message, size, latency, relative_gap if size else 0.0))
        return end + 1

    def _first_sizes(self, start: int) -> list[int]:
        sizes = [start]
        while sizes[-1] < self._maximum:
            sizes.append(min(self._maximum, max(sizes[-1] + 1, int(sizes[-1] * _FIRST_RATIO))))
        return sizes

    def _accepted(
        self, first: RepeatPoint, last: RepeatPoint, choices: list[Ends]
    ) -> tuple[Ends, float] | None:
        """The first choice that is good enough, and its excess; None where none is.

        The counts are ranked by real sizes; what whole units add may turn that order over.
        """
        tried = self._points > _MAX_POINTS
        found = []
        for ends in choices:
            excess, floor = self._measured(first, last, ends)
            if excess <= max(self._tolerance, _FLOOR_SLACK * floor):
                return ends, excess
            if tried and excess < 1e299:
                found.append((excess, ends))
        return min(found)[::-1] if found else None

    def _choices(self, first: RepeatPoint, last: RepeatPoint, pending: int | None) -> list[Ends]:
        """Whole sizes at both ends for the counts that are best over both, the best first."""
        low = max(first.first, last.first)
        high = min(first.first + len(first.size), last.first + len(last.size)) - 1
        if high < low:
            return []
        k = np.arange(low, high + 1)
        excess = np.maximum(
            first.upper_us[k - first.first] / max(1e-300, float(first.upper_us.min())),
            last.upper_us[k - last.first] / max(1e-300, float(last.upper_us.min())),
        )
        near = (
            excess > excess.min() + 0.5 * self._tolerance
        )  # fewer fragments where it hardly matters
        ranked = k[np.lexsort((np.where(near, excess, 0.0), near))[:_MAX_COUNTS]].tolist()
        found = (self._choice(first, last, pending, count) for count in ranked)
        return [ends for ends in found if ends is not None]

    def _choice(
        self, first: RepeatPoint, last: RepeatPoint, pending: int | None, k: int
    ) -> Ends | None:
        """Whole sizes at both ends for one count; None where none is admitted."""
        keeps = pending is not None and -(-first.message // pending) == k
        one = pending if keeps else self._whole(first, k)
        other = self._whole(last, k)
        if one is not None and other is not None and (k == 1 or self._grows(one, other)):
            return (one, other) if self._fits(first, one, k) else None
        same = pending if keeps else self._constant(first, last, k)
        if same is not None and self._holds(first, last, same, k):
            return same, same
        return None

    def _grows(self, one: int, other: int) -> bool:
        """Whether a reader's products hold what lies between these sizes."""
        return 0 <= other - one <= MAX_SHIFT_UNITS * self._unit

    def _constant(self, first: RepeatPoint, last: RepeatPoint, k: int) -> int | None:
        """One size for the whole stretch, near the best at its end; None where none is admitted."""
        if k == 1:
            return None
        real = float(last.size[k - last.first])
        minimum = up(up(last.message, k) // k, self._unit)
        maximum = (first.message - max(1, self._problem.limits.min_fragment_bytes)) // (k - 1)
        size = min(max(minimum, int(real) // self._unit * self._unit), maximum)
        return size // self._unit * self._unit or None

    def _holds(self, first: RepeatPoint, last: RepeatPoint, size: int, k: int) -> bool:
        """Whether this size gives k admitted fragments at both ends, and so in between."""
        limits = self._problem.limits
        rests = [point.message - (k - 1) * size for point in (first, last)]
        low, high = limits.min_fragment_bytes, limits.max_fragment_bytes or last.message
        return low <= size <= high and low <= min(rests) and max(rests) <= size

    def _whole(self, point: RepeatPoint, k: int) -> int | None:
        """The real size rounded up, with room for a reader's rounding in the remainder."""
        if k == 1:
            return up(point.message, self._unit)
        unit, real = self._unit, float(point.size[k - point.first])
        size = up(int(np.ceil(real - 1e-9 * real)), unit)
        room = (
            point.message - point.problem.smallest_fragment_bytes - ROOM * unit * (k - 1) // 2 - 1
        )
        size = min(size, room // (k - 1) // unit * unit)
        minimum = up(up(point.message, k) // k, unit)
        size = max(size, minimum)
        return size if self._fits(point, size, k) else None

    def _fits(self, point: RepeatPoint, size: int, k: int) -> bool:
        """Whether the whole fragments and the remainder keep the limits with this count."""
        limits, rest = self._problem.limits, point.message - (k - 1) * size
        if k == 1:
            return point.problem.admits((point.message,))
        low, high = limits.min_fragment_bytes, limits.max_fragment_bytes or point.message
        if k > 1 and low > 1 and 2 * (rest - low) < ROOM * self._unit * (k - 1):
            return False
        return size <= high and size >= low and low <= rest <= size and size % self._unit == 0

    def _measured(self, first: RepeatPoint, last: RepeatPoint, ends: Ends) -> tuple[float, float]:
        """The proven excess of a stretch, and what no halving can remove of it."""
        return self._memory.of(
            (first.message, last.message, ends),
            lambda: self._measured_now(first, last, ends),
            holds=self._is_measured,
        )

    def _is_measured(self, known: tuple[float, float]) -> bool:
        """What sufficed for a looser tolerance need not do for this one."""
        return known[0] <= self._tolerance or known[1] > 0.0

    def _measured_now(
        self, first: RepeatPoint, last: RepeatPoint, ends: Ends
    ) -> tuple[float, float]:
        length = last.message - first.message
        excess = self._chord_excess(first, last, ends)
        if excess > self._tolerance and length <= _EACH_BYTE * min(self._unit, _MAX_EACH):
            sizes = np.arange(first.message, last.message, dtype=np.int64)
            latency = self._each_us(first, last, ends, sizes)
            bound = self._bound_us(first, last, sizes.astype(float))
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(
                    bound > 0.0, latency / bound - 1.0, np.where(latency > 0.0, 1e300, 0.0)
                )
            excess = max(0.0, float(ratio.max()))
        floor = self._floor(first, last) if excess > self._tolerance else 0.0
        if self._unit > 1:  # what rounding to units adds stays as well
            floor += _UNIT_SHARE * self._unit / ends[0]
        return excess + _SAFE, floor

    def _floor(self, first: RepeatPoint, last: RepeatPoint) -> float:
        """The gap of the best whole sizes at both ends: no halving removes it."""
        return max(self._excess_alone(point) for point in (first, last))

    def _excess_alone(self, point: RepeatPoint) -> float:
        if point.message not in self._excesses:  # every stretch that ends here asks for it
            bound = float(self._bound_us(point, point, np.array([float(point.message)]))[0])
            size = self._alone(point)
            excess = relative_excess(self._latency_us(point, size), bound, bound) if size else 0.0
            self._excesses[point.message] = excess
        return self._excesses[point.message]

    def _chord_excess(self, first: RepeatPoint, last: RepeatPoint, ends: tuple[int, int]) -> float:
        """Chord and rounding against the bound, by pieces on which all lines are straight."""
        k = -(-first.message // ends[0])
        rests = (first.message - (k - 1) * ends[0], last.message - (k - 1) * ends[1])
        if ends[0] != ends[1] and 2 * min(rests) < ROOM * self._unit * (k - 1):
            return 1e300  # a size rounded up may end the message sooner
        knots = self._knots(first, last)
        delay_us = self._problem.pipeline.delay_us
        share = (knots - first.message) / (last.message - first.message)
        latency = self._latency_us(first, ends[0]), self._latency_us(last, ends[1])
        chord = latency[0] * (1.0 - share) + latency[1] * share + self._rounding_us(k, ends)
        rows = [row + delay_us for row in rows_us(first, last, knots)]
        with np.errstate(all="ignore"):
            quotients = [np.where(row > 0.0, chord / row, np.inf) for row in rows]
        pieces = [np.maximum(one[:, 1:], one[:, :-1]) for one in quotients]
        worst = float(np.minimum.reduce(pieces).max())
        for start, cost in outside(first, last):
            plain = (start[:, None] + cost[:, None] * knots) * (1.0 - 1e-13) + delay_us
            with np.errstate(all="ignore"):
                above = np.where(plain > 0.0, chord / plain, np.inf)
            worst = max(worst, float(above.max(axis=1).min()))
        return max(0.0, worst - 1.0)

    def _rounding_us(self, k: int, ends: tuple[int, int]) -> float:
        """A size that is greater by 1.5 units, in the steepest of all paths."""
        if k == 1 or ends[0] == ends[1]:
            return 0.0
        return rounding_us(self._problem, k)

    def _knots(self, first: RepeatPoint, last: RepeatPoint) -> Floats:
        """Ends, and where the two lines of the counts that matter cross."""
        one, other = shared(first, last, first), shared(first, last, last)
        a, b = first.lower_us[one], first.slope[one]
        c, d = last.lower_us[other], last.slope[other]
        near = np.argsort(np.maximum(a / max(1e-300, a.min()), c / max(1e-300, c.min())))[:24]
        with np.errstate(divide="ignore", invalid="ignore"):
            at = first.message + (a - (c - d * (last.message - first.message))) / (d - b)
        at = at[near]
        inside = at[(at > first.message) & (at < last.message)]
        out: Floats = np.unique(np.concatenate([[first.message, last.message], inside]))
        return out

    def _bound_us(self, first: RepeatPoint, last: RepeatPoint, sizes: Floats) -> Floats:
        """Lower bound over every repeated size at these messages, delay included."""
        knots = self._knots(first, last) if first is not last else sizes[:1]
        ends = _bounds_between(first, last, np.append(knots, knots[-1]))
        at = np.clip(np.searchsorted(knots, sizes, side="right") - 1, 0, len(knots) - 1)
        length = np.diff(np.append(knots, knots[-1] + 1.0))
        share = (sizes - knots[at]) / length[at]
        with np.errstate(invalid="ignore"):  # where a count has no line nothing is proven
            own = (ends[0, at] * (1.0 - share) + ends[1, at] * share) * (1.0 - 1e-13)
        out: Floats = own + self._problem.pipeline.delay_us
        return out

    def _each_us(
        self, first: RepeatPoint, last: RepeatPoint, ends: tuple[int, int], sizes: Ints
    ) -> Floats:
        """Latency of what a reader takes for each message size of the stretch."""
        length = last.message - first.message
        share = -((-(sizes - first.message) << FRACTION_BITS) // length)
        grown = -(-((ends[1] - ends[0]) // self._unit * share) >> FRACTION_BITS)
        size = ends[0] + self._unit * grown
        k = -(-sizes // size)
        out = read_us(self._problem, first.message, length, ends)
        out += self._problem.pipeline.delay_us
        return out if self._host is None else self._host.longer_us(out, k, sizes)

    def _latency_us(self, point: RepeatPoint, size: int) -> float:
        return self._us(point.message, size)

    def _us(self, message: int, size: int) -> float:
        """The latency, or what a host does meanwhile where that takes longer."""
        q = (message - 1) // size
        cut = (size,) * q + (message - q * size,)
        found = latency_us(self._problem.pipeline, cut)
        if self._host is None:
            return found
        return float(self._host.longer_us(np.array(found), len(cut), message))

    def _alone(self, point: RepeatPoint) -> int:
        """The best whole size at one message size."""
        order = np.argsort(point.upper_us, kind="stable")[:6]
        sizes = [
            size
            for i in order
            for size in self._around(point, point.first + int(i))
            if self._admitted(point, size)
        ]
        if not sizes:
            return _searched(point.problem)
        return min(sizes, key=lambda size: (self._latency_us(point, size), -size))

    def _around(self, point: RepeatPoint, k: int) -> list[int]:
        if k == 1:
            return [point.message]
        real, unit = float(point.size[k - point.first]), self._unit
        floor = int(real // unit) * unit
        minimum = up(up(point.message, k) // k, unit)
        return sorted({size for size in (floor, floor + unit, minimum) if size > 0})

    def _admitted(self, point: RepeatPoint, size: int) -> bool:
        q = (point.message - 1) // size
        return point.problem.admits((size,) * q + (point.message - q * size,))

    def _add(self, point: RepeatPoint, size: int, excess: float | None = None) -> None:
        latency = self._latency_us(point, size) if size else 0.0
        if not size:  # the limits admit cuts, and none of them repeats one size
            excess = 0.0
        if excess is None:
            bound = self._bound_us(point, point, np.array([float(point.message)]))
            excess = relative_excess(latency, float(bound[0]), float(bound[0])) + _SAFE
        self._entries.append(TableRepeat(point.message, size, latency, excess))


def _bounds_between(first: RepeatPoint, last: RepeatPoint, knots: Floats) -> Floats:
    """(2, pieces) bounds at both ends of the pieces between knots, whose chord bounds all between.

    Each count is bounded by one of its lines alone, the one that is higher at its lower end: the
    least of straight lines is concave, so that no message of the piece is below the chord.
    """
    families = [np.stack(rows_us(first, last, knots))]
    families += [
        (start[:, None, None] + cost[:, None, None] * knots) * (1.0 - 1e-13)
        for start, cost in outside(first, last)
    ]
    minimum = np.full((2, len(knots) - 1), np.inf)
    for lines in families:  # (lines, counts, knots)
        ends = np.stack([lines[..., :-1], lines[..., 1:]])
        best = ends.min(axis=0).argmax(axis=0)[None, None]
        chosen = np.take_along_axis(ends, best, axis=1)[:, 0]
        minimum = np.minimum(minimum, chosen.min(axis=1, initial=np.inf))
    return minimum


def _searched(problem: Problem) -> int:
    """The best admitted size by the search over all of them; 0 where there is none."""
    best = Best()
    try:
        search(problem, best, Deadline.after(_FAR_S))
    except StrategyDeclined:
        return 0
    return best.size
