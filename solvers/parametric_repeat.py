"""The best repeated size for every message size of a range, certified at every byte.

Source    theory sec. 2 (`repeat`); own derivation for the bound in the message size.
Notation  B: message; s: the repeated size; k fragments: q = k-1 of size s and a remainder
          r = B - q s <= s; g, G: (n,) µs and µs/byte; a: alignment; b, c: stages.
Cost      O(n) NumPy passes over the counts that can win, a dozen rounds for each message size.
Exact     among repeated sizes, in real sizes; whole units are rounded up, and what that costs is
          in the certificate.
Traps     a size that falls short of B/k by one byte costs a further fragment: readers round up,
          and the remainder of a k > 1 must leave room for that.

Derivation. The q full fragments leave stage c at sum_{j<=c} t_j(s) + (q-1) max_{b<=c} t_b(s), and
the remainder crosses the stages from there: T = max_{b<=c} of lines in (s, B), so T is convex in
both together. For one B the least value over s lies where a falling and a rising line meet; the
mean of the two that does not depend on s is a lower bound for every other B as well. At an end of
the interval of s the one line there, taken along that end, is such a bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from domain.errors import TimeLimitReached
from domain.plan_table import FRACTION_BITS, TableRepeat
from domain.problem import Problem
from domain.schedule import latency_us
from domain.solution import relative_excess
from solvers.contract import Deadline
from solvers.kernels import PipelineArrays
from solvers.parametric_points import between, up

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ROUNDS = 60
_MOST_COUNTS = 4_096
_WORTHWHILE = 1e-4  # relative gain that further fragments must bring
_EACH_BYTE = 4_096  # message sizes of a stretch that are evaluated one by one
_FIRST_RATIO = 2.0
_FLOOR_SLACK = 1.05
_MOST_POINTS = 8_000  # message sizes that are tried; then the gaps reached are stated
_UNIT_SHARE = 0.5  # of a unit's share of the size, where units are greater than a byte
_SAFE = 1e-12
_ROOM = 3  # units that the remainder leaves for each full fragment, in halves


@dataclass(frozen=True, slots=True)
class RepeatPoint:
    """One message size: for the counts from `first` on the best real s, its latency, a line below.

    Without delay. `lower` + `slope` (B - message) is below the latency of every repeated size with
    that count. `above` and `below` are (start, cost), (n,) each: the greatest of the lines
    start + cost B is below the latency of every greater count, and of every smaller one.
    """

    problem: Problem
    first: int
    size: Floats
    upper_us: Floats
    lower_us: Floats
    slope: Floats
    above: tuple[Floats, Floats] | None
    below: tuple[Floats, Floats] | None

    @property
    def message(self) -> int:
        """The message size, bytes."""
        return self.problem.message_bytes

    def lines_us(self, sizes: Floats) -> Floats:
        """(counts, sizes) lower bounds."""
        moved = self.slope[:, None] * (sizes - self.message)
        out: Floats = self.lower_us[:, None] + moved
        return out - 1e-12 * (np.abs(self.lower_us)[:, None] + np.abs(moved))


def repeat_point(problem: Problem) -> RepeatPoint:
    """The best repeated size of every count that can win at this message size."""
    counts = problem.count_range()
    arrays = PipelineArrays.of(problem.pipeline)
    g, G = arrays.g, arrays.G
    B, m = float(problem.message_bytes), float(problem.least_fragment_bytes)
    around = g.sum() - g + m * (G.sum() - G)
    known, near = _best_of_sample(problem, g, G)
    # T >= sum_{j != b} (g_j + m G_j) + k g_b + B G_b never falls with k.
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.where(g > 0.0, (1.01 * known - around - B * G) / g, np.inf).min()
    last = int(min(counts.greatest, max(most, near, counts.least) + 2))
    last = min(last, max(near, counts.least) + _MOST_COUNTS // 2)
    start = max(counts.least, last - _MOST_COUNTS)
    found = _minimised(problem, g, G, np.arange(start, last + 1, dtype=np.int64))
    above = None if last >= counts.greatest else (around + (last + 1) * g, G)
    below = None if start <= counts.least else (around + counts.least * g, G)
    return RepeatPoint(problem, start, *found, above, below)


def _best_of_sample(problem: Problem, g: Floats, G: Floats) -> tuple[float, int]:
    """Latency of the best of some sixty counts, and the fewest fragments that come near it."""
    counts = problem.count_range()
    k = np.unique(np.geomspace(counts.least, counts.greatest, 64).astype(np.int64))
    latency = _minimised(problem, g, G, k)[1]
    known = float(latency.min())
    return known, int(k[int(np.argmax(latency <= known * (1.0 + _WORTHWHILE)))])


def _interval(problem: Problem, k: Ints) -> tuple[Floats, Floats, Floats, Floats]:
    """Real s for each count: least and greatest, and how these move with B."""
    B, m = float(problem.message_bytes), float(problem.least_fragment_bytes)
    least, greatest = (float(size) for size in problem.aligned_sizes())
    q = np.maximum(k - 1, 1).astype(float)
    low, high = B / k, np.where(k > 1, (B - m) / q, B)
    low_move, high_move = 1.0 / k, np.where(k > 1, 1.0 / q, 1.0)
    low_move = np.where(least > low, 0.0, low_move)
    high_move = np.where((greatest < high) & (k > 1), 0.0, high_move)
    low = np.maximum(low, np.where(k > 1, least, 0.0))
    high = np.where(k > 1, np.minimum(high, greatest), high)
    return low, np.maximum(low, high), low_move, high_move


def _minimised(
    problem: Problem, g: Floats, G: Floats, k: Ints
) -> tuple[Floats, Floats, Floats, Floats]:
    """Best s, its latency, and the lower line (value here, slope in B) for each count."""
    B = float(problem.message_bytes)
    low, high, low_move, high_move = _interval(problem, k)
    f0, d0, r0 = _value(g, G, B, k, low)
    f1, d1, r1 = _value(g, G, B, k, high)
    s0, s1 = low.copy(), high.copy()
    best, size = np.minimum(f0, f1), np.where(f0 <= f1, low, high)
    open_ = (d0 < 0.0) & (d1 > 0.0) & (s1 > s0)
    for _ in range(_ROUNDS):
        if not open_.any():
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            s = s0 + np.where(open_, (f0 - f1 + d1 * (s1 - s0)) / (d1 - d0), 0.0)
            meet = f0 + d0 * (s - s0)
        s = np.where(open_, np.clip(s, s0, s1), s0)
        f, d, r = _value(g, G, B, k, s)
        better = open_ & (f < best)
        best, size = np.where(better, f, best), np.where(better, s, size)
        done = f <= meet * (1.0 + 1e-13)
        left, right = open_ & ~done & (d < 0.0), open_ & ~done & (d >= 0.0)
        s0, f0, d0, r0 = (np.where(left, x, y) for x, y in ((s, s0), (f, f0), (d, d0), (r, r0)))
        s1, f1, d1, r1 = (np.where(right, x, y) for x, y in ((s, s1), (f, f1), (d, d1), (r, r1)))
        open_ = left | right
    inner = (d0 < 0.0) & (d1 > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(inner, d1 / (d1 - d0), 0.0)
        mixed = share * (f0 - d0 * s0) + (1.0 - share) * (f1 - d1 * s1)
        slope = share * r0 + (1.0 - share) * r1
    rises = ~inner & (d0 >= 0.0)
    lower = np.where(inner, mixed, np.where(rises, f0, f1))
    slope = np.where(
        inner, slope, np.where(rises, r0 + d0 * low_move, r1 + np.minimum(d1, 0.0) * high_move)
    )
    lower = np.minimum(lower, best) * (1.0 - 1e-12)
    return size, best, lower, slope


def _value(g: Floats, G: Floats, B: float, k: Ints, s: Floats) -> tuple[Floats, Floats, Floats]:
    """Latency at s for each count, its slope in s (B fixed) and in B (s fixed)."""
    q = (k - 1).astype(float)
    alone = k == 1
    r = np.where(alone, B, B - q * s)
    rest_g, rest_G = np.cumsum(g[::-1])[::-1], np.cumsum(G[::-1])[::-1]
    top = np.full(len(k), -np.inf)
    top_slope, top_move = np.zeros(len(k)), np.zeros(len(k))
    longest, longest_G = np.full(len(k), -np.inf), np.zeros(len(k))
    sum_g = sum_G = 0.0
    for c in range(len(g)):
        t = g[c] + G[c] * s
        take = t > longest
        longest, longest_G = np.where(take, t, longest), np.where(take, G[c], longest_G)
        sum_g, sum_G = sum_g + g[c], sum_G + G[c]
        value = sum_g + sum_G * s + (q - 1.0) * longest + rest_g[c] + rest_G[c] * r
        higher = value > top
        slope = sum_G + (q - 1.0) * longest_G - q * rest_G[c]
        top = np.where(higher, value, top)
        top_slope = np.where(higher, slope, top_slope)
        top_move = np.where(higher, rest_G[c], top_move)
    single = g.sum() + G.sum() * B
    top = np.where(alone, single, top)
    return top, np.where(alone, 0.0, top_slope), np.where(alone, G.sum(), top_move)


# ---- stretches ----------------------------------------------------------------------------------


class RepeatCompiler:
    """Compiles the repeated sizes of one table, from the least message size upwards."""

    def __init__(
        self, problem: Problem, *, least_bytes: int, greatest_bytes: int, tolerance: float
    ) -> None:
        self._problem, self._tolerance = problem, tolerance
        self._least, self._greatest = least_bytes, greatest_bytes
        self._unit = problem.limits.alignment_bytes
        self._entries: list[TableRepeat] = []
        self._points = 0

    def run(self, deadline: Deadline) -> list[TableRepeat]:
        """The entries, ascending. Raises Infeasible and TimeLimitReached."""
        ahead = [self._point(size) for size in self._first_sizes()][::-1]
        here, pending = ahead.pop(), None
        while ahead:
            if deadline.passed:
                raise TimeLimitReached("the plan table was not compiled within its time limit")
            last = ahead[-1]
            alone = last.message - here.message == 1
            ends = None if alone else self._chosen(here, last, pending)
            if ends is None and not alone:
                ahead.append(self._point(between(here.message, last.message)))
            elif ends is None or (pending is not None and ends[0] != pending):
                self._add(here, self._alone(here) if pending is None else pending)
                here, pending = ahead.pop() if alone else self._point(here.message + 1), None
            else:
                excess, floor = self._measured(here, last, ends)
                tried = self._points > _MOST_POINTS and excess < 1e299
                if tried or excess <= max(self._tolerance, _FLOOR_SLACK * floor):
                    self._add(here, ends[0], excess)
                    here, pending = ahead.pop(), ends[1]
                else:
                    ahead.append(self._point(between(here.message, last.message)))
        self._add(here, self._alone(here) if pending is None else pending)
        return self._entries

    def _point(self, size: int) -> RepeatPoint:
        self._points += 1
        return repeat_point(replace(self._problem, message_bytes=size))

    def _first_sizes(self) -> list[int]:
        sizes = [self._least]
        while sizes[-1] < self._greatest:
            sizes.append(min(self._greatest, max(sizes[-1] + 1, int(sizes[-1] * _FIRST_RATIO))))
        return sizes

    def _chosen(
        self, first: RepeatPoint, last: RepeatPoint, pending: int | None
    ) -> tuple[int, int] | None:
        """Whole sizes at both ends for the count that is best over both; None where none fits."""
        low = max(first.first, last.first)
        high = min(first.first + len(first.size), last.first + len(last.size)) - 1
        if high < low:
            return None
        k = np.arange(low, high + 1)
        excess = np.maximum(
            first.upper_us[k - first.first] / max(1e-300, float(first.upper_us.min())),
            last.upper_us[k - last.first] / max(1e-300, float(last.upper_us.min())),
        )
        near = (
            excess > excess.min() + 0.5 * self._tolerance
        )  # fewer fragments where it hardly matters
        for count in k[np.lexsort((np.where(near, excess, 0.0), near))[:4]]:
            keeps = pending is not None and -(-first.message // pending) == count
            one = pending if keeps else self._whole(first, int(count))
            other = self._whole(last, int(count))
            if one is not None and other is not None and (count == 1 or one <= other):
                if not self._fits(first, one, int(count)):
                    continue
                return one, other
            same = pending if keeps else self._constant(first, last, int(count))
            if same is not None and self._holds(first, last, same, int(count)):
                return same, same
        return None

    def _constant(self, first: RepeatPoint, last: RepeatPoint, k: int) -> int | None:
        """One size for the whole stretch, near the best at its end; None where none is admitted."""
        if k == 1:
            return None
        real = float(last.size[k - last.first])
        least = up(up(last.message, k) // k, self._unit)
        greatest = (first.message - max(1, self._problem.limits.min_fragment_bytes)) // (k - 1)
        size = min(max(least, int(real) // self._unit * self._unit), greatest)
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
        room = point.message - point.problem.least_fragment_bytes - _ROOM * unit * (k - 1) // 2 - 1
        size = min(size, room // (k - 1) // unit * unit)
        least = up(up(point.message, k) // k, unit)
        size = max(size, least)
        return size if self._fits(point, size, k) else None

    def _fits(self, point: RepeatPoint, size: int, k: int) -> bool:
        """Whether the whole fragments and the remainder keep the limits with this count."""
        limits, rest = self._problem.limits, point.message - (k - 1) * size
        if k == 1:
            return point.problem.admits((point.message,))
        low, high = limits.min_fragment_bytes, limits.max_fragment_bytes or point.message
        if k > 1 and low > 1 and 2 * (rest - low) < _ROOM * self._unit * (k - 1):
            return False
        return size <= high and size >= low and low <= rest <= size and size % self._unit == 0

    def _measured(
        self, first: RepeatPoint, last: RepeatPoint, ends: tuple[int, int]
    ) -> tuple[float, float]:
        length = last.message - first.message
        excess = self._chord_excess(first, last, ends)
        if excess > self._tolerance and length <= _EACH_BYTE:
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
        bound = float(self._bound_us(point, point, np.array([float(point.message)]))[0])
        size = self._alone(point)
        return relative_excess(self._latency_us(point, size), bound, bound) if size else 0.0

    def _chord_excess(self, first: RepeatPoint, last: RepeatPoint, ends: tuple[int, int]) -> float:
        """Chord and rounding against the bound, by pieces on which all lines are straight."""
        k = -(-first.message // ends[0])
        rests = (first.message - (k - 1) * ends[0], last.message - (k - 1) * ends[1])
        if ends[0] != ends[1] and 2 * min(rests) < _ROOM * self._unit * (k - 1):
            return 1e300  # a size rounded up may end the message sooner
        knots = self._knots(first, last)
        delay_us = self._problem.pipeline.delay_us
        share = (knots - first.message) / (last.message - first.message)
        latency = self._latency_us(first, ends[0]), self._latency_us(last, ends[1])
        chord = latency[0] * (1.0 - share) + latency[1] * share + self._rounding_us(k, ends)
        rows = [row + delay_us for row in _rows(first, last, knots)]
        with np.errstate(divide="ignore", invalid="ignore"):
            quotients = [np.where(row > 0.0, chord / row, np.inf) for row in rows]
        pieces = [np.maximum(one[:, 1:], one[:, :-1]) for one in quotients]
        worst = float(np.minimum(*pieces).max())
        for start, cost in _outside(first, last):
            plain = (start[:, None] + cost[:, None] * knots) * (1.0 - 1e-13) + delay_us
            with np.errstate(divide="ignore", invalid="ignore"):
                above = np.where(plain > 0.0, chord / plain, np.inf)
            worst = max(worst, float(above.max(axis=1).min()))
        return max(0.0, worst - 1.0)

    def _rounding_us(self, k: int, ends: tuple[int, int]) -> float:
        """A size that is greater by 1.5 units, in the steepest of all paths."""
        if k == 1 or ends[0] == ends[1]:
            return 0.0
        arrays = PipelineArrays.of(self._problem.pipeline)
        G, q = arrays.G, k - 1
        before, after = np.cumsum(G), np.cumsum(G[::-1])[::-1]
        steepest = (before + (q - 1) * np.maximum.accumulate(G) - q * after).max()
        return 0.5 * _ROOM * self._unit * max(0.0, float(steepest))

    def _knots(self, first: RepeatPoint, last: RepeatPoint) -> Floats:
        """Ends, and where the two lines of the counts that matter cross."""
        one, other = _shared(first, last, first), _shared(first, last, last)
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
        own = np.maximum(*_rows(first, last, sizes)).min(axis=0)
        for start, cost in _outside(first, last):
            plain = (start[:, None] + cost[:, None] * sizes).max(axis=0) * (1.0 - 1e-13)
            own = np.minimum(own, plain)
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
        arrays = PipelineArrays.of(self._problem.pipeline)
        k = -(-sizes // size)
        out = np.empty(len(sizes))
        for count in np.unique(k):
            at = k == count
            value, _, _ = _value_of(arrays.g, arrays.G, sizes[at], int(count), size[at])
            out[at] = value
        return out + self._problem.pipeline.delay_us

    def _latency_us(self, point: RepeatPoint, size: int) -> float:
        q = (point.message - 1) // size
        cut = (size,) * q + (point.message - q * size,)
        return latency_us(self._problem.pipeline, cut)

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
            return 0
        return min(sizes, key=lambda size: (self._latency_us(point, size), -size))

    def _around(self, point: RepeatPoint, k: int) -> list[int]:
        if k == 1:
            return [point.message]
        real, unit = float(point.size[k - point.first]), self._unit
        floor = int(real // unit) * unit
        least = up(up(point.message, k) // k, unit)
        return sorted({size for size in (floor, floor + unit, least) if size > 0})

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


def _value_of(
    g: Floats, G: Floats, B: Ints, count: int, size: Ints
) -> tuple[Floats, Floats, Floats]:
    return _value(g, G, B.astype(float), np.full(len(B), count), size.astype(float))  # type: ignore[arg-type]


def _shared(first: RepeatPoint, last: RepeatPoint, point: RepeatPoint) -> slice:
    """The part of a point's counts that both points have."""
    low = max(first.first, last.first)
    high = min(first.first + len(first.size), last.first + len(last.size))
    return slice(low - point.first, max(low, high) - point.first)


def _outside(first: RepeatPoint, last: RepeatPoint) -> list[tuple[Floats, Floats]]:
    """What is known of counts that neither point has: of those above, and of those below."""
    ends = [point.first + len(point.size) for point in (first, last)]
    above = (first if ends[0] >= ends[1] else last).above
    # Fewer fragments are admitted at the smaller message, so its line holds for both.
    below = first.below if first.below is not None else last.below
    return [lines for lines in (above, below) if lines is not None]


def _rows(first: RepeatPoint, last: RepeatPoint, sizes: Floats) -> tuple[Floats, Floats]:
    """Lower bounds from both points for every count of either, (counts, sizes) each."""
    start = min(first.first, last.first)
    end = max(point.first + len(point.size) for point in (first, last))
    out = []
    for point in (first, last):
        rows = np.full((end - start, len(sizes)), -np.inf)
        at = point.first - start
        rows[at : at + len(point.size)] = point.lines_us(sizes)
        out.append(rows)
    return out[0], out[1]


def compile_repeats(
    problem: Problem,
    *,
    least_bytes: int,
    greatest_bytes: int,
    tolerance: float,
    deadline: Deadline,
) -> list[TableRepeat]:
    """The repeated sizes of a table, ascending. Raises Infeasible and TimeLimitReached."""
    compiler = RepeatCompiler(
        problem, least_bytes=least_bytes, greatest_bytes=greatest_bytes, tolerance=tolerance
    )
    return compiler.run(deadline)
