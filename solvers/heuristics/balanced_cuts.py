"""Equal fragments in whole bytes: sizes that differ by at most one alignment unit, in some order.

Source    theory.md sec. 2.
Notation  k fragments; a: alignment; f: the small size, f + a the large one, c how many are large;
          rest: what the last fragment carries beyond f where it is not a unit; t: stage times.
Cost      O(n) NumPy passes over the counts asked for; O(k n) for each order of a cut.
Exact     the bound is below every order of the sizes; which order is best is only tried.
Traps     where the rest is not a unit the last fragment is neither small nor large, so that one
          place less is left; f may be 0 where every fragment before the last is large.

The bound: a path that stays in stage b pays t_b for every fragment, in whatever order they come,
and in each other stage at least the cost of the cheapest of the sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.problem import Problem
from solvers.kernels import latencies_us, stage_times_us

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BalancedCuts:
    """The sizes of the most equal cut for each count that the limits admit; arrays over counts.

    `lower_us` bounds the latency, delay included, of every order of these sizes.
    """

    problem: Problem
    k: Ints
    small: Ints
    large_count: Ints
    rest: Ints
    lower_us: Floats

    @classmethod
    def of(cls, problem: Problem, k: Ints) -> BalancedCuts:
        """Return those of these counts that the limits admit."""
        total, unit = problem.message_bytes, problem.limits.alignment_bytes
        small = total // (k * unit) * unit
        large, rest = np.divmod(total - k * small, unit)
        some_small = large < np.where(rest > 0, k - 1, k)
        minimum = np.where(some_small, small, small + rest)
        maximum = np.where(large > 0, small + unit, small + rest)
        fits = (minimum >= problem.smallest_fragment_bytes) & (
            maximum <= problem.largest_fragment_bytes
        )
        k, small, large, rest = k[fits], small[fits], large[fits], rest[fits]
        return cls(problem, k, small, large, rest, _lower_us(problem, k, small, large, rest))

    def take(self, index: Ints) -> BalancedCuts:
        """Return the cuts of these positions, in this order."""
        return BalancedCuts(
            self.problem,
            self.k[index],
            self.small[index],
            self.large_count[index],
            self.rest[index],
            self.lower_us[index],
        )

    def order(self, *, near: int) -> Iterator[int]:
        """Yield positions in the order in which to try them: the nearest count, then by bound."""
        if not len(self.k):
            return
        first = int(np.argmin(np.abs(self.k - near)))
        yield first
        yield from (int(i) for i in np.argsort(self.lower_us, kind="stable") if i != first)

    def cells(self, index: int) -> int:
        """Return how many matrix cells the orders of this count cost."""
        return int(self.k[index]) * len(self.problem.pipeline)

    def best_order(self, index: int) -> tuple[float, Ints]:
        """Return the best of several orders of this count's sizes, with its latency."""
        unit, rest = self.problem.limits.alignment_bytes, int(self.rest[index])
        k = int(self.k[index])
        places = k - 1 if rest else k
        sizes = np.full((1, k), self.small[index], dtype=np.int64)
        sizes[0, -1] += rest
        patterns = _patterns(places, int(self.large_count[index]))
        sizes = np.repeat(sizes, len(patterns), axis=0)
        sizes[:, :places] += patterns * unit
        latency = latencies_us(self.problem.pipeline, sizes.astype(float))
        best = int(np.argmin(latency))
        return float(latency[best]), sizes[best]


def _lower_us(problem: Problem, k: Ints, small: Ints, large: Ints, rest: Ints) -> Floats:
    unit, pipeline = problem.limits.alignment_bytes, problem.pipeline
    has_rest = rest > 0
    kinds = (
        (small, np.where(has_rest, k - 1, k) - large),
        (small + unit, large),
        (small + rest, has_rest.astype(np.int64)),
    )
    every = np.zeros((len(k), len(pipeline)))
    cheapest = np.full((len(k), len(pipeline)), np.inf)
    for size, count in kinds:
        t = stage_times_us(pipeline, size.astype(float))
        every += t * count[:, None]
        cheapest = np.where(count[:, None] > 0, np.minimum(cheapest, t), cheapest)
    bound: Floats = cheapest.sum(axis=1) + (every - cheapest).max(axis=1, initial=0.0)
    return bound + pipeline.delay_us


def _patterns(places: int, large: int) -> Ints:
    """0/1 rows with `large` ones: spread evenly in three ways, and all first, last and amid."""
    step = np.arange(places + 1, dtype=np.int64)
    first = (step[:-1] < large).astype(np.int64)
    if large in (0, places):
        return first[None, :]
    floor = np.diff(step * large // places)
    nearest = np.diff((step * large + places // 2) // places)
    amid = np.roll(first, (places - large) // 2)
    return np.stack([floor, nearest, floor[::-1], first, first[::-1], amid])
