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
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import ceil, floor, isfinite, sqrt

import numpy as np
from numpy.typing import NDArray

from domain.errors import StrategyDeclined
from domain.problem import AggregateProblem
from solvers.aggregate.costs import Costs, bottleneck_problem
from solvers.contract import Candidate
from solvers.heuristics.balanced_cuts import BalancedCuts

Floats = NDArray[np.float64]

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
