"""The best repeated size for an aggregate: floor(B/s) fragments of s, then the remainder.

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

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from domain.aggregate import Aggregate
from domain.errors import StrategyDeclined
from domain.problem import AggregateProblem
from solvers.aggregate.bound import lower_bounds_us
from solvers.aggregate.costs import Costs
from solvers.contract import Candidate, Deadline
from solvers.heuristics.constant import repeated_cut
from solvers.heuristics.repeat_search import Best

Ints = NDArray[np.int64]

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
