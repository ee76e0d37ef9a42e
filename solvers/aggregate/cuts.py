"""Equal fragments for an aggregate: the best number of them, in real sizes and in whole bytes.

Source    Wang98 sec. 3 and 5.3; theory.md sec. 2 and 7.
Notation  S, b: total and bottleneck, with lines (c, C) and (g, G), µs and µs/byte; k fragments;
          B: message; T(k) = S(B/k) + (k-1) b(B/k).
Cost      a few candidates for k on each interval without a change of range, one evaluation each.
Exact     over k, for equal real sizes: on such an interval, and on one side of S = b, T is
          c - g + B G + k g + (B/k) (C - G), or k g + B G; each is convex in k or monotone.
Traps     g = 0, C <= G, equal values of T that differ by rounding alone (the fewest are meant). In
          whole bytes sizes differ by a unit, and no order of them is known to be better: the bound
          on the latency is the same for all, runs of equal sizes aside.

The best repeated size for an aggregate: floor(B/s) fragments of s, then the remainder.

Source    theory.md sec. 2; docs/theory.md, "From outside".
Notation  q: full fragments; s = a z: their size, a the alignment; r = B - q s < s: the remainder;
          S, b: total and bottleneck; D: drops between r and s; B: message.
Cost      O(number of ranges) evaluations for each admitted q that its bound does not leave out.
Exact     over every admitted s in whole bytes, of the latency that the evaluator says. For one q,
          where s and r change neither their ranges nor their side of S = b, the latency
          S(s) + (q-1) b(s) + min(b(r) + D, S(r)) is the less of two lines: it is least at an end.
Traps     r = 0 is a point of its own. An end belongs to one side: the last z with s <= end, the
          last with r > end, and the next one of each are tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import ceil, floor, isfinite, sqrt

import numpy as np
from numpy.typing import NDArray

from domain.aggregate import Aggregate
from domain.errors import StrategyDeclined
from domain.problem import AggregateProblem
from solvers.aggregate.costs import Costs, bottleneck_problem, lower_bounds_us
from solvers.contract import Candidate, Deadline
from solvers.heuristics.constant import repeated_cut
from solvers.heuristics.fixed import BalancedCuts
from solvers.heuristics.repeat import Best

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NEIGHBOURS = 24  # counts on each side of the best that are tried in whole bytes
_TIE = 1e-13


def fixed_cut(problem: AggregateProblem) -> Candidate:
    """Return the best equal cut in whole bytes. Raises StrategyDeclined where the limits admit
    none.
    """
    cuts = _near_the_best(problem)
    if not len(cuts.k):
        raise StrategyDeclined(
            "no equal sizes satisfy the limits: with every count some size would leave "
            "min_fragment_bytes or max_fragment_bytes",
            field="strategy",
        )
    latency = _latency_us(cuts, Costs(problem.aggregate))
    cut = _sizes(cuts, int(np.argmax(latency <= latency.min() * (1.0 + _TIE))))
    return Candidate(cut, (problem.message_bytes / len(cut),) * len(cut))


def best_count(problem: AggregateProblem) -> int:
    """Return the k whose equal real fragments take the least time; the fewest of equals."""
    k = np.unique(np.fromiter(_candidate_counts(problem), dtype=np.int64))
    latency = Costs(problem.aggregate).equal_us(problem.message_bytes, k)
    return int(k[int(np.argmax(latency <= latency.min() * (1.0 + _TIE)))])


def _near_the_best(problem: AggregateProblem) -> BalancedCuts:
    """Whole-byte cuts of counts near the best, the nearest first; of all if none is admitted."""
    counts, best = problem.count_range(), best_count(problem)
    minimum, maximum = (
        max(counts.minimum, best - NEIGHBOURS),
        min(counts.maximum, best + NEIGHBOURS),
    )
    behind_one = bottleneck_problem(problem)
    cuts = BalancedCuts.of(behind_one, np.arange(minimum, maximum + 1, dtype=np.int64))
    if len(cuts.k):
        return cuts.take(np.argsort(np.abs(cuts.k - best), kind="stable"))
    every = np.arange(counts.minimum, counts.maximum + 1, dtype=np.int64)
    cuts = BalancedCuts.of(behind_one, every)
    latency = Costs(problem.aggregate).equal_us(problem.message_bytes, cuts.k)
    return cuts.take(np.argsort(latency, kind="stable")[: 2 * NEIGHBOURS])


def _latency_us(cuts: BalancedCuts, costs: Costs) -> Floats:
    """What the evaluator says of these cuts, without delay: `lower_us` is what all queue behind
    b.
    """
    unit, ended = cuts.problem.limits.alignment_bytes, cuts.rest > 0
    sizes = np.stack([cuts.small + unit, cuts.small, cuts.small + cuts.rest]).astype(float)
    counts = np.stack([cuts.large_count, cuts.k - cuts.large_count - ended, ended])
    S, b = costs.times_us(sizes)
    maximum = np.where(counts > 0, sizes, 0.0).max(axis=0)
    drops = costs.drops_us(np.where(counts > 0, sizes, np.inf).min(axis=0), maximum)
    ahead = np.where(sizes == maximum, S - b, 0.0).max(axis=0) + drops
    one_by_one = np.where(counts > 0, S - b, 0.0).sum(axis=0)
    latency: Floats = cuts.lower_us + np.where(drops > 0.0, np.minimum(ahead, one_by_one), ahead)
    return latency


def _sizes(cuts: BalancedCuts, index: int) -> tuple[int, ...]:
    """The sizes of one count: the large ones first, the last one with what is left."""
    unit, k = cuts.problem.limits.alignment_bytes, int(cuts.k[index])
    small, large, rest = (int(x[index]) for x in (cuts.small, cuts.large_count, cuts.rest))
    plain = k - large - (rest > 0)
    return (small + unit,) * large + (small,) * plain + (small + rest,) * (rest > 0)


def _candidate_counts(problem: AggregateProblem) -> Iterator[int]:
    """Every k at which T can have its least value over the admitted counts."""
    counts, total = problem.count_range(), problem.message_bytes
    starts = {-(-total // end) for end in problem.aggregate.range_ends}  # sizes <= end from here on
    inner = sorted(k for k in starts if counts.minimum < k <= counts.maximum)
    for low, after in pairwise([counts.minimum, *inner, counts.maximum + 1]):
        yield from (low, after - 1)
        for k in _closed_form_counts(problem, total / low):
            yield min(max(low, floor(k)), after - 1)
            yield min(max(low, ceil(k)), after - 1)


def _closed_form_counts(problem: AggregateProblem, size: float) -> Iterator[float]:
    """Where T's derivative is 0, and where S = b, with the lines at this size."""
    aggregate, total = problem.aggregate, float(problem.message_bytes)
    S, b = aggregate.total.range_at(size), aggregate.bottleneck.range_at(size)
    more = (S.ns_per_byte - b.ns_per_byte) / 1000.0  # C - G
    if more > 0.0 and b.overhead_us > 0.0:
        yield sqrt(total * more) / sqrt(b.overhead_us)
    apart = b.overhead_us - S.overhead_us  # g - c
    if more * apart > 0.0 and isfinite(total * more / apart):
        yield total * more / apart


SAMPLES = 64  # values of q that are searched first; they decide which others are worth it
CHUNK_CELLS = 2**18  # values of q * candidates that are evaluated together


def repeat_cut(problem: AggregateProblem, deadline: Deadline) -> Candidate:
    """Return the cut of the best repeated size. Raises StrategyDeclined where none is admitted."""
    best = Best()
    cut_off = _Search(problem, best).run(deadline)
    if not best.q:
        raise StrategyDeclined(
            "no repeated size satisfies the limits: with every one of them the remainder is "
            "smaller than min_fragment_bytes or the fragments are too many",
            field="strategy",
        )
    return Candidate(repeated_cut(problem, best.size), cut_off=cut_off)


class _Search:
    """Evaluates, for each q, the sizes at which the latency can be least."""

    def __init__(self, problem: AggregateProblem, best: Best) -> None:
        self._problem, self._best = problem, best
        self._costs = Costs(problem.aggregate)
        self._total, self._unit = problem.message_bytes, problem.limits.alignment_bytes
        self._min_rest = problem.smallest_fragment_bytes
        self._minimum, self._maximum = problem.aligned_sizes()
        self._marks = _marks(problem)

    def run(self, deadline: Deadline) -> bool:
        """Whether the deadline ended the search early."""
        counts = self._problem.count_range()
        self._offer_divisors(np.arange(counts.minimum, counts.maximum + 1, dtype=np.int64))
        q = np.arange(max(1, counts.minimum - 1), counts.maximum, dtype=np.int64)
        low, high = self._interval(q)
        q = q[low <= high]
        if not len(q):
            return False
        sample = np.unique(np.geomspace(1, len(q), SAMPLES).astype(np.int64)) - 1
        self._offer(q[sample])
        q = np.delete(q, sample)
        delay_us = self._problem.aggregate.delay_us
        q = q[lower_bounds_us(self._problem, q + 1) - delay_us < self._best.latency_us]
        return self._offer_all(q, deadline)

    def _offer_all(self, q: Ints, deadline: Deadline) -> bool:
        length = max(1, CHUNK_CELLS // (2 + 4 * len(self._marks)))
        for start in range(0, len(q), length):
            if deadline.passed and self._best.q:
                return True
            self._offer(q[start : start + length])
        return False

    def _interval(self, q: Ints) -> tuple[Ints, Ints]:
        """Least and greatest z with floor(B/s) = q, an admitted size and an admitted remainder."""
        low = np.maximum((self._total // (q + 1)) // self._unit + 1, self._minimum // self._unit)
        high = np.minimum((self._total - self._min_rest) // q, self._maximum) // self._unit
        return low, high

    def _offer(self, q: Ints) -> None:
        low, high = self._interval(q)
        column, unit = q[:, None], self._unit
        at_size = np.broadcast_to(self._marks // unit, (len(q), len(self._marks)))
        at_rest = (self._total - self._marks - 1) // (column * unit)  # r is larger up to here
        inner = np.hstack([at_size, at_rest])
        z = np.hstack([low[:, None], high[:, None], inner, inner + 1])
        z = np.clip(z, low[:, None], high[:, None])
        size = (z * unit).ravel()
        every = np.repeat(q, z.shape[1])
        latency = self._costs.repeated_us(every, size, self._total - every * size)
        self._best.offer(latency, every, size)

    def _offer_divisors(self, q: Ints) -> None:
        """Sizes that leave no remainder, the whole message among them."""
        q = q[self._total % q == 0]
        size = self._total // q
        fits = (size % self._unit == 0) & (size >= self._minimum) & (size <= self._maximum)
        q, size = q[fits | (q == 1)], size[fits | (q == 1)]
        self._best.offer(self._costs.repeated_us(q, size, np.zeros_like(q)), q, size)


def _marks(problem: AggregateProblem) -> Ints:
    """Sizes, rounded down, at which S or b bends or jumps."""
    aggregate = problem.aggregate
    low, high = float(problem.smallest_fragment_bytes), float(problem.largest_fragment_bytes)
    inner = [float(end) for end in aggregate.range_ends if low <= end < high]
    marks = {int(end) for end in inner}
    for start, end in pairwise([low, *inner, high]):
        marks |= _crossing(aggregate, start, end)
    return np.array(sorted(marks), dtype=np.int64)


def _crossing(aggregate: Aggregate, start: float, end: float) -> set[int]:
    """Where S = b between two neighbouring ends of ranges."""
    inside = start + (end - start) / 2
    S, b = (stage.range_at(inside) for stage in (aggregate.total, aggregate.bottleneck))
    apart, steeper = b.overhead_us - S.overhead_us, (S.ns_per_byte - b.ns_per_byte) / 1000.0
    if not steeper or not start < apart / steeper < end:
        return set()
    return {int(apart / steeper)}
