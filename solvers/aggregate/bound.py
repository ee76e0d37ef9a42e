"""A bound below every cut of every pipeline with a given total and bottleneck.

Source    docs/theory.md, "From outside", with the assumptions and the proof.
Notation  S, b: total and bottleneck, µs; phi: the greatest convex minorant of b on [m, M], the
          admitted sizes; m_k = max(m, B - (k-1) M): the least size among k; R(x): the least S - b
          from x on; D: drops of S or b on [x, M]; B: message.
Cost      O(log of the number of ranges) for each k asked for.
Exact     a bound, never an optimum; equal to the latency of one fragment, of equal fragments where
          S - b is constant or phi = b and B/k = m, and never above what the evaluator says of any
          cut.
Traps     k phi(B/k) needs one stage that is slowest at all sizes, or stages that are lines (then b
          is convex and phi = b). S - b and S are not monotone in a noisy fit, and behind the end of
          a range the limit may be the least value, so their minima from x on are taken.

T >= R(m_k) - D(m_k) + k phi(B/k): the path that stays in the slowest stage; the other stages count
at the first or the last fragment. T >= min_{x >= B/k} S(x): the path of the greatest fragment.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from domain.aggregate import Aggregate
from domain.problem import AggregateProblem
from solvers.aggregate.costs import Costs, bottleneck_problem
from solvers.bounds import closed_form_us

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SAFETY = 1.0 - 1e-13
_MIN_US = 1e-322  # a few roundings, for each fragment, of times too small to be normal numbers
_STRAIGHT = 1e-9  # relative difference of two times that is rounding alone


def lower_bounds_us(problem: AggregateProblem, k: Ints) -> Floats:
    """Return the proven lower bound (µs, delay included) on every cut into k fragments, for each k
    asked.

    Where the question allows refragmentation it covers nested cuts too, whose slowest stage takes
    k fragments.
    """
    aggregate, total = problem.aggregate, float(problem.message_bytes)
    minimum, maximum = float(problem.smallest_fragment_bytes), float(problem.largest_fragment_bytes)
    first, single = np.full(len(k), minimum), np.zeros(len(k))
    if not problem.allow_refragmentation:
        first = np.maximum(minimum, total - (k - 1.0) * maximum)
        single = _MinFrom(aggregate, minimum, maximum, _totals)(total / k)
    others = _MinFrom(aggregate, minimum, maximum, _others)(first)
    others = others - Costs(aggregate, after_bytes=0).drops_us(first, np.full(len(k), maximum))
    queue = np.maximum(0.0, others) + closed_form_us(bottleneck_problem(problem), k)
    bound: Floats = np.maximum(queue, single) * _SAFETY - _MIN_US * (k + 1.0)
    return np.maximum(0.0, bound) + aggregate.delay_us


def lower_bound_us(problem: AggregateProblem) -> float:
    """Return the bound over every admitted number of fragments."""
    counts = problem.count_range()
    every = np.arange(counts.minimum, counts.maximum + 1, dtype=np.int64)
    return float(lower_bounds_us(problem, every).min())


def is_convex(problem: AggregateProblem) -> bool:
    """Return whether the bottleneck's time is convex in whole bytes, as that of several lines is.

    From one whole byte to the next, across the end of a range, it then rises by no less than
    before and by no more than behind it.
    """
    minimum, maximum = problem.smallest_fragment_bytes, problem.largest_fragment_bytes
    b = problem.aggregate.bottleneck
    for before, behind in pairwise(b.ranges):
        end = before.up_to_bytes or 0
        if not minimum <= end < maximum:
            continue
        rise = b.time_us(end + 1) - b.time_us(end)
        slack = _STRAIGHT * b.time_us(end + 1)
        falls_short = end > minimum and rise < before.ns_per_byte / 1000.0 - slack
        overshoots = end + 1 < maximum and rise > behind.ns_per_byte / 1000.0 + slack
        if falls_short or overshoots:
            return False
    return True


Part = Callable[[Floats, Floats], Floats]


def _others(S: Floats, b: Floats) -> Floats:
    return np.maximum(0.0, S - b)


def _totals(S: Floats, b: Floats) -> Floats:
    return np.maximum(S, b)


class _MinFrom:
    """x -> the least value on [x, greatest] of S - b or of S.

    Between two ends of ranges both are lines and the value is least at one side: at x, at the end,
    or at a side of a later piece, as the limit from inside it.
    """

    def __init__(self, aggregate: Aggregate, minimum: float, maximum: float, part: Part) -> None:
        self._stages, self._part = (aggregate.total, aggregate.bottleneck), part
        inner = [float(end) for end in aggregate.range_ends if minimum <= end < maximum]
        edges = [minimum, *inner, maximum]
        sides = [self._sides(low, high) for low, high in pairwise(edges)]
        self._ends = np.array(edges[1:])
        self._last = np.array([last for _, last in sides])
        later = np.minimum.accumulate([min(side) for side in sides[::-1]])[::-1]
        self._later = np.append(later[1:], np.inf)
        self._costs = Costs(aggregate)

    def _sides(self, low: float, high: float) -> tuple[float, float]:
        lines = [stage.range_at(low + (high - low) / 2).line for stage in self._stages]
        S, b = (np.array([line.time_us(low), line.time_us(high)]) for line in lines)
        first, last = self._part(S, b)
        return float(first), float(last)

    def __call__(self, x: Floats) -> Floats:
        piece = np.minimum(np.searchsorted(self._ends, x, side="left"), len(self._ends) - 1)
        here = self._part(*self._costs.times_us(x))
        minimum: Floats = np.minimum(here, np.minimum(self._last[piece], self._later[piece]))
        return minimum
