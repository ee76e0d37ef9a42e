"""The best repeated size for a machine: floor(B/s) fragments of s, then the remainder.

Source    theory.md sec. 2; docs/theory.md, "Machines".
Notation  q: full fragments; s = a z: their size, a the alignment; r = B - q s < s: the remainder;
          B: message; p pieces: (q, interval of z, lags).
Cost      a few rounds over the pieces that bounds leave, of paths that take no time to find; then
          some evaluations of a cut for each piece whose paths could win, the best ones first.
Exact     over every admitted s in whole bytes, of the latency that the evaluator says, but for
          rounding.
Traps     r = 0 is one fragment less, and no limit of r -> 0. For one q the latency is convex in s
          only while neither s nor r changes its range, and no window of bytes holds one fragment
          fewer, and at given lags of the processors; the least of several lags is not convex.

On a piece the latency is a longest path of linear costs: the lines of any two paths meet below the
least value in it. Short paths' lines say which pieces could win. There the longest path's line at
the point where two meet takes the place of one of them, in turn with the middle of what is left, so
that each interval halves, until no size on it could be better than the best known one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from contract.limits import MAX_LAG
from domain.errors import StrategyDeclined
from domain.problem import MachineProblem
from solvers.contract import Candidate, Deadline
from solvers.heuristics.constant import repeated_cut
from solvers.heuristics.repeat_search import Best
from solvers.machine.bound import count_bounds_us
from solvers.machine.costs import Costs
from solvers.machine.counts import counts_below, sample_counts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
_Ask: TypeAlias = Callable[[Ints, Ints, int, Ints], tuple[Floats, Floats]]

SAMPLES = 8  # values of q that are searched first; they decide which others are worth it
CHUNK = 2**10  # values of q that are searched together
_ROUNDS = 6  # of short paths
_SAME = 1e-9  # by which bounds have to rise in such a round
_ROUNDING = 1e-12  # of a path's length
_SAME_US = (
    1e-13  # of the latency: what is gained less is no gain, and other lags often take as long
)
_AT_ONCE = 16  # pieces that are evaluated together, at most


def repeat_cut(problem: MachineProblem, deadline: Deadline) -> Candidate:
    """Return the cut of the best repeated size. Raises StrategyDeclined where none is admitted."""
    known = problem.derived(_Known)
    if known.size is not None:
        return Candidate(repeated_cut(problem, known.size))
    search = _Search(problem)
    cut_off = search.run(deadline)
    if not search.best.q:
        raise StrategyDeclined(
            "no repeated size satisfies the limits: with every one of them the remainder is "
            "smaller than min_fragment_bytes or the fragments are too many",
            field="strategy",
        )
    if not cut_off:
        known.size = search.best.size
    return Candidate(repeated_cut(problem, search.best.size), cut_off=cut_off)


def best_size(problem: MachineProblem, known: Sequence[int], deadline: Deadline) -> int | None:
    """Return the best repeated size; None where none is admitted. Admitted sizes that are `known`
    to be near it are tried first.
    """
    search = _Search(problem)
    search.offer(known)
    search.run(deadline)
    return search.best.size or None


def size_within(
    problem: MachineProblem,
    limit_us: float,
    counts: Ints,
    known: Sequence[int],
    deadline: Deadline,
) -> int | None:
    """Return a repeated size that takes no longer than a limit, the delay included, in one of these
    numbers of fragments; None where none does, or where none was found in time.

    Admitted sizes that are `known` are tried first.
    """
    limit_us = float(np.nextafter(limit_us - problem.machine.delay_us, np.inf))
    search = _Search(problem, Best(limit_us), takes_first=True)
    search.offer(known)
    if not search.is_done:
        search.run(deadline, counts)
    return search.best.size or None


class _Known:
    """The best repeated size of a problem, once a search for it was not ended early: an answer, its
    baselines and an audit ask for it in turn.
    """

    __slots__ = ("size",)

    def __init__(self, problem: MachineProblem) -> None:
        self.size: int | None = None


class _Search:
    """Looks for the least latency over every admitted size, or for any below that of `best`."""

    def __init__(
        self, problem: MachineProblem, best: Best | None = None, *, takes_first: bool = False
    ) -> None:
        self.best = best or Best()
        self._takes_first = takes_first
        self._problem, self._costs = problem, Costs(problem.machine)
        self._total, self._unit = problem.message_bytes, problem.limits.alignment_bytes
        self._minimum, self._maximum = problem.aligned_sizes()
        self._marks = np.array(problem.machine.range_ends, dtype=np.int64)
        processors = len(problem.machine.network.processors)
        lags = list(product(range(MAX_LAG + 1), repeat=processors))
        self._lags = np.array(lags, dtype=np.int64).reshape(len(lags), processors)

    @property
    def is_done(self) -> bool:
        """Whether a size was found, and any will do."""
        return self._takes_first and self.best.q > 0

    def offer(self, sizes: Sequence[int]) -> None:
        """Let these sizes take part; the limits have to admit them."""
        size = np.array(sizes, dtype=np.int64)
        q = self._total // size
        self.best.offer(self._costs.repeated_us(q, size, self._total - q * size), q, size)

    def run(self, deadline: Deadline, k: Ints | None = None) -> bool:
        """Search sizes that make one of these counts, or any; whether the deadline ended that
        early.
        """
        delay_us = self._problem.machine.delay_us
        if k is None:
            near, _ = sample_counts(self._problem)
            self._search(self._pieced(near)[:SAMPLES], deadline)
            k, below_us = counts_below(self._problem, self.best.latency_us + delay_us)
        else:
            below_us = count_bounds_us(self._problem, k)
            order = np.argsort(below_us, kind="stable")
            k, below_us = k[order], below_us[order]
            self._offer_first(k[:SAMPLES])
        self._offer_divisors(k, below_us - delay_us)
        for start in range(0, len(k), CHUNK):
            if deadline.passed and (self.best.q or self._takes_first):
                return True
            some = slice(start, start + CHUNK)
            could_win = below_us[some] - delay_us < self.best.latency_us
            if self.is_done or not could_win.any():
                return False
            if self._search(self._pieced(k[some][could_win]), deadline):
                return True
        return False

    def _pieced(self, k: Ints) -> Ints:
        """The q of these counts that have a remainder and an admitted size."""
        q = k[k > 1] - 1
        low, high = self._interval(q)
        return q[low <= high]

    def _interval(self, q: Ints) -> tuple[Ints, Ints]:
        """Least and greatest z with floor(B/s) = q, an admitted size and an admitted remainder of
        at least a byte.
        """
        min_rest = max(1, self._problem.smallest_fragment_bytes)
        low = np.maximum((self._total // (q + 1)) // self._unit + 1, self._minimum // self._unit)
        high = np.minimum((self._total - min_rest) // q, self._maximum) // self._unit
        return low, high

    def _offer_first(self, k: Ints) -> None:
        """Let the least size of each of these counts take part: often it is good enough."""
        q = self._pieced(k)
        low, _ = self._interval(q)
        if len(q):
            self.offer((low * self._unit).tolist())

    def _offer_divisors(self, q: Ints, below_us: Floats) -> None:
        """Sizes that leave no remainder, the whole message among them; bounds ascend."""
        divides = self._total % q == 0
        q, below_us = q[divides], below_us[divides]
        size = self._total // q
        fits = (size % self._unit == 0) & (size >= self._minimum) & (size <= self._maximum)
        is_whole = (q == 1) & (self._total <= self._problem.largest_fragment_bytes)
        rows = np.flatnonzero(fits | is_whole)
        for row in rows.tolist():
            if self.is_done or below_us[row] >= self.best.latency_us:
                return
            one = slice(row, row + 1)
            found_us = self._costs.repeated_us(q[one], size[one], np.zeros(1, np.int64))
            self.best.offer(found_us, q[one], size[one])

    def _search(self, q: Ints, deadline: Deadline) -> bool:
        """Search every piece of these q, those first whose paths are the shortest; whether the
        deadline ended that early. One is searched however late it is.
        """
        pieces, ends = self._all_pieces(q)
        if not len(pieces.q):
            return False
        floor_us = self._shorten(pieces, ends)
        rows = np.argsort(floor_us, kind="stable")
        start, some = 0, 1
        while start < len(rows) and not self.is_done:
            if not self._could_win(floor_us[rows[start]]):
                return False
            if start and deadline.passed:
                return True
            self._narrow(pieces.of(rows[start : start + some]), ends.of(rows[start : start + some]))
            start, some = start + some, min(2 * some, _AT_ONCE)
        return False

    def _all_pieces(self, q: Ints) -> tuple[_Pieces, _Lines]:
        """Intervals on which the latency at given lags is convex, and lines below it at both
        ends.
        """
        low, high = self._interval(q)
        machine = self._problem.machine
        if len(self._marks) or any(window.bytes is not None for window in machine.windows):
            found = [
                piece
                for ends in zip(q.tolist(), low.tolist(), high.tolist(), strict=True)
                for piece in self._pieces(*ends)
            ]
            q, low, high = np.array(found, dtype=np.int64).reshape(-1, 3).T
        lags = np.repeat(self._lags, len(q), axis=0)
        times = len(self._lags)
        pieces = _Pieces(np.tile(q, times), np.tile(low, times), np.tile(high, times), lags)
        at_low = self._line(self._costs.repeated_paths, pieces, pieces.low)
        at_high = self._line(self._costs.repeated_paths, pieces, pieces.high)
        rows = np.flatnonzero(np.isfinite(at_low.us) & np.isfinite(at_high.us))
        return pieces.of(rows), _Lines(at_low.of(rows), at_high.of(rows))

    def _pieces(self, q: int, low: int, high: int) -> Iterator[tuple[int, int, int]]:
        """(q, least z, greatest z) of the parts on which ranges and places are the same."""
        unit, total = self._unit, self._total
        lasts = {high}
        for mark in self._marks.tolist():
            lasts.add(mark // unit)  # the last z with s <= mark
            lasts.add((total - mark - 1) // (q * unit))  # the last z with r > mark
        for window in self._problem.machine.windows:
            if window.bytes is not None:
                # The last z with which it holds so many, up to all that there are.
                minimum = max(1, window.bytes // (high * unit))
                most = min(q + 1, window.bytes // (low * unit))
                lasts.update(window.bytes // held // unit for held in range(minimum, most + 1))
        first = low
        for last in sorted(one for one in lasts if low <= one <= high):
            yield q, first, last
            first = last + 1

    def _shorten(self, pieces: _Pieces, ends: _Lines) -> Floats:
        """Raise the lines by those of short paths; return bounds on the pieces, in µs."""
        met, floor_us = ends.minimum(pieces.low, pieces.high)
        rows = np.arange(len(met))
        for _ in range(_ROUNDS):
            rows = rows[floor_us[rows] < self.best.latency_us]
            if not len(rows):
                break
            some = pieces.of(rows)
            here = self._line(self._costs.repeated_paths, some, met[rows])
            ends.put(rows, here)
            met[rows], raised_us = ends.of(rows).minimum(some.low, some.high)
            has_changed = raised_us > floor_us[rows] * (1.0 + _SAME)
            floor_us[rows] = np.maximum(raised_us, floor_us[rows])
            rows = rows[has_changed]
        return floor_us

    def _could_win(self, bound_us: Floats) -> Flags:
        """Whether pieces with these bounds could have a better size, or one below the limit."""
        if self._takes_first:
            return bound_us * (1.0 - _ROUNDING) < self.best.latency_us
        return np.less(bound_us, self.best.latency_us * (1.0 - _SAME_US))

    def _narrow(self, pieces: _Pieces, ends: _Lines) -> None:
        """Search convex pieces, given lines below the latency."""
        low, high = pieces.low.copy(), pieces.high.copy()
        halve = False
        while len(low) and not self.is_done:
            met, bound_us = ends.minimum(low, high)
            rows = np.flatnonzero((low <= high) & self._could_win(bound_us))
            pieces, ends, low, high = pieces.of(rows), ends.of(rows), low[rows], high[rows]
            at = (low + high) // 2 if halve else met[rows]
            here = self._line(self._costs.repeated_slopes, pieces, at)
            self.best.offer(here.us, pieces.q, at * self._unit)
            ends.put(np.arange(len(at)), here)
            rises = here.slope > 0.0
            low, high = np.where(rises, low, at + 1), np.where(rises, at - 1, high)
            halve = not halve

    def _line(self, ask: _Ask, pieces: _Pieces, z: Ints) -> _Line:
        """A line below the latency of each piece, from this z."""
        us, slope = ask(pieces.q, z * self._unit, self._total, pieces.lags)
        return _Line(us, slope * self._unit, z)


@dataclass(frozen=True, slots=True)
class _Pieces:
    """q, an interval of z and lags, (p,), (p,), (p,) and (p, processors)."""

    q: Ints
    low: Ints
    high: Ints
    lags: Ints

    def of(self, rows: Ints) -> _Pieces:
        """Return some of them."""
        return _Pieces(self.q[rows], self.low[rows], self.high[rows], self.lags[rows])


@dataclass(frozen=True, slots=True)
class _Line:
    """A line for each piece: µs at z, and the slope."""

    us: Floats
    slope: Floats
    z: Ints

    def of(self, rows: Ints) -> _Line:
        """Return those of some pieces."""
        return _Line(self.us[rows], self.slope[rows], self.z[rows])

    def at(self, z: Floats) -> Floats:
        """Return their values, µs."""
        values: Floats = self.us + self.slope * (z - self.z)
        return values

    def put(self, rows: Ints, new: _Line) -> None:
        """Take others in place of some."""
        self.us[rows], self.slope[rows], self.z[rows] = new.us, new.slope, new.z


@dataclass(frozen=True, slots=True)
class _Lines:
    """Two lines below the latency on each piece; the first one falls, where one does."""

    falling: _Line
    rising: _Line

    def of(self, rows: Ints) -> _Lines:
        """Return those of some pieces."""
        return _Lines(self.falling.of(rows), self.rising.of(rows))

    def put(self, rows: Ints, new: _Line) -> None:
        """Take new lines of some pieces, each in place of the one that goes its way."""
        rises = new.slope > 0.0
        self.rising.put(rows[rises], new.of(np.flatnonzero(rises)))
        self.falling.put(rows[~rises], new.of(np.flatnonzero(~rises)))

    def minimum(self, low: Ints, high: Ints) -> tuple[Ints, Floats]:
        """Return where between low and high the greater line is least, rounded down, and its value
        there in µs, which bounds the latency on that interval.
        """
        one, other = self.falling, self.rising
        turn = other.slope - one.slope
        gap = one.at(low.astype(float)) - other.at(low.astype(float))
        with np.errstate(divide="ignore", invalid="ignore"):
            cross = np.where(turn != 0.0, low + gap / turn, low)
        points = np.stack([low, high, np.clip(cross, low, np.maximum(low, high))])
        values = np.maximum(one.at(points), other.at(points))
        place = np.argmin(values, axis=0)
        every = np.arange(len(low))
        return points[place, every].astype(np.int64), values[place, every]
