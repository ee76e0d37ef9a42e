"""A ramp, one repeated size, and a ramp down, for a machine: five numbers in place of a list.

Source    docs/theory.md, "Machines".
Notation  k fragments: s/r^p .. s/r, then s repeated, then s/r' .. s/r'^p'; B: message; s follows
          from the sum of all sizes, each within the least and the greatest one.
Cost      one to two thousand evaluations of a cut, fewer for many fragments: EVALUATED_CELLS.
Exact     no: the best of the shapes tried. Near the optimum where a part in the middle keeps its
          pace; tests and benchmarks say how near.
Traps     a window of bytes holds as many as of the greatest size, so that s decides for all.
          Behind lanes the latency is neither convex nor unimodal in k: steps of several counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import inf

import numpy as np
from numpy.typing import NDArray

from domain.errors import StrategyDeclined
from domain.problem import MachineProblem
from solvers.assemble import rank_of
from solvers.contract import Candidate, Deadline
from solvers.machine.costs import Costs
from solvers.machine.fixed import best_count
from solvers.rounding import nearest_cut

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EVALUATED_CELLS = 20_000_000  # fragments times nodes that the search may evaluate
_STEPS = (0, 1, 2, 3)  # of a ramp, at first
_RATIOS = (1.5, 2.0, 3.0)
_MIN_RATIO = 1.01
_FINER = (0.8, 0.9, 0.97, 1.03, 1.1, 1.25)  # by which a ratio is changed
_STARTS = (1.0, 0.7, 0.5, 1.4)  # of the best count of equal sizes: unequal ones want others
_PART = 10  # of the fragments, in the greatest step of their number
_GAIN = 1.0 - 1e-12  # what a shape must win


@dataclass(frozen=True, slots=True)
class Shape:
    """k fragments, `up` of them before the repeated ones and `down` behind, and both ratios."""

    k: int
    up: int = 0
    up_ratio: float = 2.0
    down: int = 0
    down_ratio: float = 2.0

    @property
    def is_possible(self) -> bool:
        """Whether at least one fragment is left to be repeated."""
        return min(self.up, self.down) >= 0 and self.up + self.down < self.k

    def normal(self) -> Shape:
        """Return the same shape with the ratio of an empty ramp as it is by default."""
        return Shape(
            self.k,
            self.up,
            self.up_ratio if self.up else 2.0,
            self.down,
            self.down_ratio if self.down else 2.0,
        )

    def weights(self) -> Floats:
        """Return the sizes as shares of the repeated one, (k,)."""
        weights = np.ones(self.k)
        weights[: self.up] = self.up_ratio ** -np.arange(self.up, 0.0, -1.0)
        weights[self.k - self.down :] = self.down_ratio ** -np.arange(1.0, self.down + 1.0)
        return weights


def ramp_repeat_cut(problem: MachineProblem, deadline: Deadline) -> Candidate:
    """Return the cut of the best shape found. Raises StrategyDeclined where none is admitted."""
    search = _Search(problem, deadline)
    search.run(best_count(problem))
    shape = search.best
    found = [(shape, cut) for cut in _whole_cuts(problem, shape)]
    if not found:
        raise StrategyDeclined(
            f"no ramp with {shape.k} fragments satisfies the limits in whole bytes",
            field="strategy",
        )
    costs = Costs(problem.machine)
    _, cut = min(found, key=lambda one: rank_of(costs.cut_us(one[1]), one[1]))
    real = tuple(sizes_of(problem, shape).tolist())
    return Candidate(cut, real, cut_off=search.was_cut_off)


def sizes_of(problem: MachineProblem, shape: Shape) -> Floats:
    """Return the real sizes of this shape in bytes, (k,), that sum to the message.

    Each is within the least and the greatest size: the repeated one grows until the sum is right.
    """
    weights, total = shape.weights(), float(problem.message_bytes)
    minimum, most = problem.smallest_fragment_bytes, problem.largest_fragment_bytes
    sizes: Floats = weights * (total / weights.sum())
    if sizes.min() >= minimum and sizes.max() <= most:
        return sizes
    # The sum rises with s, linearly between the sizes at which a fragment meets a limit.
    turns = np.unique(np.concatenate([minimum / weights, most / weights]))
    sums = np.clip(turns[:, None] * np.unique(weights), minimum, most)
    _, of_weight = np.unique(weights, return_counts=True)
    repeated = np.interp(total, sums @ of_weight, turns)
    clipped: Floats = np.clip(weights * repeated, minimum, most)
    return clipped


class _Search:
    """Changes one number of the shape after the other while that helps, from several counts."""

    def __init__(self, problem: MachineProblem, deadline: Deadline) -> None:
        self.best, self.was_cut_off = Shape(1), False
        self._problem, self._deadline = problem, deadline
        self._costs, self._counts = Costs(problem.machine), problem.count_range()
        self._latency_us, self._left = inf, EVALUATED_CELLS
        self._known: dict[Shape, float] = {}

    def run(self, k: int) -> None:
        """Search near this number of fragments, and near parts and multiples of it."""
        for near in dict.fromkeys(self._clipped(round(k * part)) for part in _STARTS):
            shape = Shape(near)
            for other in (shape, *_grid(near)):
                shape = self._better(shape, other)
            before = None
            while shape != before:
                before = shape
                for change in _CHANGES:
                    for other in change(shape):
                        shape = self._better(shape, other)

    def _clipped(self, k: int) -> int:
        return min(max(k, self._counts.minimum), self._counts.maximum)

    def _better(self, known: Shape, other: Shape) -> Shape:
        """The one that takes less by more than rounding, of equals the known one."""
        return other if self._price_us(other) < self._price_us(known) * _GAIN else known

    def _price_us(self, shape: Shape) -> float:
        """What a shape takes; infinitely long where it is not possible, or work or time is up."""
        shape = shape.normal()
        if shape in self._known:
            return self._known[shape]
        cells = shape.k * len(self._problem.machine.network)
        self.was_cut_off = self.was_cut_off or self._deadline.passed
        is_admitted = self._counts.minimum <= shape.k <= self._counts.maximum
        is_over = self._known and (self._left < cells or self.was_cut_off)
        if is_over or not (shape.is_possible and is_admitted):
            return inf
        self._left -= cells
        latency_us = self._costs.cut_us(sizes_of(self._problem, shape).tolist())
        self._known[shape] = latency_us
        if latency_us < self._latency_us * _GAIN:
            self.best, self._latency_us = shape, latency_us
        return latency_us


def _grid(k: int) -> Iterator[Shape]:
    for up, down, up_ratio, down_ratio in product(_STEPS, _STEPS, _RATIOS, _RATIOS):
        for count in (k, k + (up + down + 1) // 2):
            yield Shape(count, up, up_ratio, down, down_ratio)


def _other_counts(shape: Shape) -> Iterator[Shape]:
    part = max(1, shape.k // _PART)
    for by in (-part, -2, -1, 1, 2, part):
        yield replace(shape, k=shape.k + by)


def _other_steps(shape: Shape) -> Iterator[Shape]:
    for by in (-1, 1):
        for more in (0, by):
            yield replace(shape, k=shape.k + more, up=shape.up + by)
            yield replace(shape, k=shape.k + more, down=shape.down + by)


def _other_ratios(shape: Shape) -> Iterator[Shape]:
    for by in _FINER:
        yield replace(shape, up_ratio=max(_MIN_RATIO, shape.up_ratio * by))
        yield replace(shape, down_ratio=max(_MIN_RATIO, shape.down_ratio * by))


_CHANGES = (_other_counts, _other_steps, _other_ratios)


def _whole_cuts(problem: MachineProblem, shape: Shape) -> Iterator[tuple[int, ...]]:
    """Whole-byte cuts of this shape that the limits admit.

    First the repeated size is one multiple of the alignment, and the last fragment carries what is
    left; then sizes may differ by a unit, so that what is left is spread over all.
    """
    real, unit = sizes_of(problem, shape), problem.limits.alignment_bytes
    minimum, most = problem.aligned_sizes()
    for rounded in (np.floor, np.rint):
        sizes = np.clip(rounded(real / unit).astype(np.int64) * unit, minimum, max(minimum, most))
        last = problem.message_bytes - int(sizes[:-1].sum())
        cut = (*sizes[:-1].tolist(), last)
        if last > 0 and problem.admits(cut):
            yield cut
    nearest = nearest_cut(problem, real)
    if nearest is not None:
        yield tuple(nearest.tolist())
