"""The best repeated size for a machine: floor(B/s) fragments of s, then the remainder.

Source    theory.md sec. 2; docs/theory.md, "Machines".
Notation  q: full fragments; s = a z: their size, a the alignment; r = B - q s < s: the remainder;
          B: message; p pieces: (q, interval of z).
Cost      a few rounds over the pieces that bounds leave, one evaluation of a cut each.
Exact     over every admitted s in whole bytes, of the latency that the evaluator says.
Traps     r = 0 is one fragment less, and no limit of r -> 0. For one q the latency is convex in s
          only while neither s nor r changes its range, and no window of bytes holds one fragment
          fewer, and at given lags of the processors; the least of several lags is not convex.

On a piece the latency is a longest path of linear costs: the lines through both ends of an
interval meet below the least value in it. A piece whose meeting point is no better than the best
known size is done; the others are cut there, in turn with the middle, so that each interval halves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from contract.limits import MAX_LAG
from domain.errors import StrategyDeclined
from domain.machine import Lags
from domain.problem import MachineProblem
from solvers.contract import Candidate, Deadline
from solvers.heuristics.constant import repeated_cut
from solvers.heuristics.repeat_search import Best
from solvers.machine.bound import bounds_us, count_bounds_us
from solvers.machine.costs import Costs

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SAMPLES = 32  # values of q that are searched first; they decide which others are worth it
CHUNK_PIECES = 2**10  # that are searched together


def repeat_cut(problem: MachineProblem, deadline: Deadline) -> Candidate:
    """Return the cut of the best repeated size. Raises StrategyDeclined where none is admitted."""
    search = _Search(problem)
    cut_off = search.run(deadline)
    if not search.best.q:
        raise StrategyDeclined(
            "no repeated size satisfies the limits: with every one of them the remainder is "
            "smaller than min_fragment_bytes or the fragments are too many",
            field="strategy",
        )
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
    if not search.is_done():
        search.run(deadline, counts)
    return search.best.size or None


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
        self._lags: list[Lags] = list(product(range(MAX_LAG + 1), repeat=processors))

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
        if k is None:
            counts = self._problem.count_range()
            k = np.arange(counts.minimum, counts.maximum + 1, dtype=np.int64)
            of_counts_us = bounds_us(self._problem)
        else:
            of_counts_us = count_bounds_us(self._problem, k)
        self._offer_divisors(k)
        below_us = of_counts_us[k > 1] - self._problem.machine.delay_us
        q, below_us = self._of_better(k[k > 1] - 1, below_us)
        low, high = self._interval(q)
        q, below_us = q[low <= high], below_us[low <= high]
        if self.is_done() or not len(q):
            return False
        sample = np.unique(np.geomspace(1, len(q), SAMPLES).astype(np.int64)) - 1
        self._search(q[sample])
        q, _ = self._of_better(np.delete(q, sample), np.delete(below_us, sample))
        if self.is_done() or not len(q):
            return False
        # A part of a cut takes no longer than the whole: q fragments of the least size for q.
        least = self._interval(q)[0] * self._unit
        part_us = self._costs.equal_us(least.astype(float), q)
        q = q[part_us < self.best.latency_us][np.argsort(part_us[part_us < self.best.latency_us])]
        for start in range(0, len(q), SAMPLES):
            if self.is_done():
                return False
            if deadline.passed and (self.best.q or self._takes_first):
                return True
            self._search(q[start : start + SAMPLES])
        return False

    def _of_better(self, q: Ints, below_us: Floats) -> tuple[Ints, Floats]:
        """Those that could be better than the best, with their bounds."""
        could_win = below_us < self.best.latency_us
        return q[could_win], below_us[could_win]

    def _interval(self, q: Ints) -> tuple[Ints, Ints]:
        """Least and greatest z with floor(B/s) = q, an admitted size and an admitted remainder of
        at least a byte.
        """
        least_rest = max(1, self._problem.smallest_fragment_bytes)
        low = np.maximum((self._total // (q + 1)) // self._unit + 1, self._minimum // self._unit)
        high = np.minimum((self._total - least_rest) // q, self._maximum) // self._unit
        return low, high

    def _offer_divisors(self, q: Ints) -> None:
        """Sizes that leave no remainder, the whole message among them."""
        q = q[self._total % q == 0]
        size = self._total // q
        fits = (size % self._unit == 0) & (size >= self._minimum) & (size <= self._maximum)
        is_whole = (q == 1) & (self._total <= self._problem.largest_fragment_bytes)
        q, size = q[fits | is_whole], size[fits | is_whole]
        self.best.offer(self._costs.repeated_us(q, size, np.zeros_like(q)), q, size)

    def _search(self, q: Ints) -> None:
        """Search every piece of these q."""
        pieces = np.array([piece for one in q.tolist() for piece in self._pieces(one)])
        if not len(pieces):
            return
        for lags in self._lags:
            for start in range(0, len(pieces), CHUNK_PIECES):
                self._narrow(pieces[start : start + CHUNK_PIECES].T, lags)

    def _pieces(self, q: int) -> Iterator[tuple[int, int, int]]:
        """(q, least z, greatest z) of intervals on which the latency is convex."""
        unit, total = self._unit, self._total
        low, high = (int(ends[0]) for ends in self._interval(np.array([q])))
        lasts = {high}
        for mark in self._marks.tolist():
            lasts.add(mark // unit)  # the last z with s <= mark
            lasts.add((total - mark - 1) // (q * unit))  # the last z with r > mark
        for window in self._problem.machine.windows:
            if window.bytes is not None:
                # The last z with which it holds so many, up to all that there are.
                least = max(1, window.bytes // (high * unit))
                most = min(q + 1, window.bytes // (low * unit))
                lasts.update(window.bytes // held // unit for held in range(least, most + 1))
        first = low
        for last in sorted(one for one in lasts if low <= one <= high):
            yield q, first, last
            first = last + 1

    def _narrow(self, pieces: Ints, lags: Lags) -> None:
        """Search convex pieces, (3, pieces), at these lags."""
        q, low, high = pieces
        low_us, low_slope = self._at(q, low, lags)
        high_us, high_slope = self._at(q, high, lags)
        halve = False
        while len(q) and not self.is_done():
            met, bound_us = _meeting(low, low_us, low_slope, high, high_us, high_slope)
            is_open = (high - low > 1) & (bound_us < self.best.latency_us)
            q, low, high = q[is_open], low[is_open], high[is_open]
            low_us, low_slope = low_us[is_open], low_slope[is_open]
            high_us, high_slope = high_us[is_open], high_slope[is_open]
            at = (low + high) // 2 if halve else met[is_open]
            at = np.clip(at, low + 1, high - 1)
            at_us, at_slope = self._at(q, at, lags)
            rises = at_slope > 0.0
            high, low = np.where(rises, at, high), np.where(rises, low, at)
            high_us, low_us = np.where(rises, at_us, high_us), np.where(rises, low_us, at_us)
            high_slope = np.where(rises, at_slope, high_slope)
            low_slope = np.where(rises, low_slope, at_slope)
            halve = not halve

    def _at(self, q: Ints, z: Ints, lags: Lags) -> tuple[Floats, Floats]:
        """The latency and its derivative by z; offers the size."""
        size = z * self._unit
        latency_us, slope = self._costs.repeated_slopes(q, size, self._total, lags)
        self.best.offer(latency_us, q, size)
        return latency_us, slope * self._unit


def _meeting(
    low: Ints, low_us: Floats, low_slope: Floats, high: Ints, high_us: Floats, high_slope: Floats
) -> tuple[Ints, Floats]:
    """Where the lines through both ends meet, rounded down, and a bound on the interval in µs.

    Lines that do not fall from the left, or not rise to the right, bound it by that end.
    """
    turn = high_slope - low_slope
    is_inside = (low_slope < 0.0) & (high_slope > 0.0) & (turn > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        beyond = (high_slope * (high - low) - (high_us - low_us)) / turn
    beyond = np.where(is_inside, np.clip(beyond, 0.0, high - low), 0.0)
    at_end_us = np.where(low_slope >= 0.0, low_us, high_us)
    bound_us: Floats = np.where(is_inside, low_us + low_slope * beyond, at_end_us)
    bound_us = np.where(np.isfinite(low_us) & np.isfinite(high_us), bound_us, np.inf)
    return low + beyond.astype(np.int64), bound_us
