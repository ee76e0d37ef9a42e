"""Counts of fragments whose bound is below a limit, found without looking at each.

Source    docs/theory.md, "Machines"; bound.py.
Notation  k fragments; B: message; phi_j: the greatest convex function below the cost of node j;
          b: places of a window for the least size.
Cost      the bounds of some samples, and of the counts between those that could be below.
Exact     every count whose bound is no greater than the limit is among those returned.
Traps     the bounds are convex only between numbers of places, and where no phi falls: else they
          are computed for every count.

Between two numbers of places each bound is a sum of k phi(B/k) and, of windows that hold all
fragments, phi(B/k). The first is convex in k, the second where phi does not fall. So where both
neighbours of a count are above the limit, and neither is the least of the samples, it is too.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from domain.machine import places_of
from domain.problem import MachineProblem
from solvers.machine.bound import count_bounds_us
from solvers.machine.costs import Costs
from solvers.machine.fast_servers import fast_bounds_us

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SAMPLES = 48  # between two numbers of places
_PRICED = 8  # samples of the least bounds, whose equal sizes say which counts are far behind
_FAR = 1.1
_ROUNDING = 1e-12  # of bounds that are equal


def sample_counts(problem: MachineProblem) -> tuple[Ints, Floats]:
    """Return some admitted counts, those of the least bounds first, and their bounds in µs, the
    constant delay included.
    """
    k, below_us = problem.derived(_samples)
    order = np.argsort(below_us, kind="stable")
    return k[order], below_us[order]


def counts_below(problem: MachineProblem, limit_us: float) -> tuple[Ints, Floats]:
    """Return every admitted count whose bound is no greater than a limit, those of the least bounds
    first, and the bounds in µs; both with the constant delay.
    """
    k, below_us = problem.derived(_samples)
    asked = [np.empty(0, dtype=np.int64)]
    for first, last in _stretches(problem):
        rows = np.flatnonzero((first <= k) & (k <= last))
        is_low = below_us[rows] <= limit_us * (1.0 + _ROUNDING)
        is_low[int(np.argmin(below_us[rows]))] = True
        ends = np.stack([k[rows], k[rows]])
        ends[0, 1:][is_low[1:]] = k[rows][:-1][is_low[1:]]
        ends[1, :-1][is_low[:-1]] = k[rows][1:][is_low[:-1]]
        asked += [np.arange(low, high + 1) for low, high in ends[:, is_low].T.tolist()]
    found = np.unique(np.concatenate(asked)) if _rises(problem) else k
    found_us = count_bounds_us(problem, found)
    rows = np.argsort(found_us, kind="stable")
    rows = rows[found_us[rows] <= limit_us]
    return found[rows], found_us[rows]


def bounds_us(problem: MachineProblem) -> Floats:
    """Return a bound in µs for every admitted count, ascending, the constant delay included: the
    greater one of windows and processors, and of lanes as one fast server each. Of counts that are
    a tenth behind equal sizes no more is said.
    """
    return problem.derived(_bounds)


def lower_bound_us(problem: MachineProblem) -> float:
    """Return the bound over every admitted number of fragments."""
    return float(bounds_us(problem).min())


def _bounds(problem: MachineProblem) -> Floats:
    counts, delay_us = problem.count_range(), problem.machine.delay_us
    near = sample_counts(problem)[0][:_PRICED]
    equal_us = Costs(problem.machine).equal_us(problem.message_bytes / near, near)
    limit_us = float(equal_us.min() + delay_us) * _FAR
    k, below_us = counts_below(problem, limit_us)
    found = np.full(counts.maximum - counts.minimum + 1, limit_us)
    found[k - counts.minimum] = below_us
    of_lanes = fast_bounds_us(problem, near=int(k[0]), known_us=limit_us)
    greater: Floats = np.maximum(found, of_lanes)
    return greater


def _samples(problem: MachineProblem) -> tuple[Ints, Floats]:
    counts = problem.count_range()
    k = np.arange(counts.minimum, counts.maximum + 1, dtype=np.int64)
    if _rises(problem):
        k = np.concatenate([_spread(*ends) for ends in _stretches(problem)])
    return k, count_bounds_us(problem, k)


def _spread(first: int, last: int) -> Ints:
    """Some counts from the first to the last, both among them."""
    if last - first < _SAMPLES:
        return np.arange(first, last + 1, dtype=np.int64)
    spread = np.geomspace(first, last, _SAMPLES).astype(np.int64)
    return np.unique(np.concatenate([[first], spread, [last]]))


def _stretches(problem: MachineProblem) -> Iterator[tuple[int, int]]:
    """Yield intervals of counts on which the bounds are convex, none where some cost falls: the
    first count and the last one.
    """
    counts, minimum = problem.count_range(), problem.smallest_fragment_bytes
    if not _rises(problem):
        return
    windows = problem.machine.network.windows
    places = {places_of(one.fragments, one.bytes, minimum) for one in windows}
    inner = {b for b in places if counts.minimum < b <= counts.maximum}
    firsts = [counts.minimum, *sorted(inner)]
    lasts = [*(b - 1 for b in firsts[1:]), counts.maximum]
    yield from zip(firsts, lasts, strict=True)


def _rises(problem: MachineProblem) -> bool:
    """Whether no node's convex cost falls with the size."""
    return problem.derived(_rise)


def _rise(problem: MachineProblem) -> bool:
    minimum, most = problem.smallest_fragment_bytes, problem.largest_fragment_bytes
    for stage, rules in zip(problem.machine.stages, problem.machine.rules, strict=True):
        shared = rules.shared_ns_per_byte / 1000.0
        points = stage.minorant_points(minimum, most)
        own_us = [cost_us - shared * size for size, cost_us in points]
        if stage.ranges[1:] and any(np.diff(own_us) < 0.0):
            return False
    return True
