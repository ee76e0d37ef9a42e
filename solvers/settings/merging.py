"""Merging the steps of a list of size steps: which neighbours one size can serve.

Source    docs/theory.md, "The regret of a setting".
Notation  V: (a, b) the sum that the objective is made of, of size a on octave b.
Cost      O(steps^2) lookups in V.
Exact     greedy, and says no more: each merger costs less than the threshold over its messages.
Traps     with the total time, an octave counts by its time, with the mean by its share; with the
          worst, each octave keeps its own worst regret to the threshold: the greatest of all alone
          would leave the others no care.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

from domain.regret import Objective
from solvers.settings.costs import WorkloadCosts

Floats = NDArray[np.float64]

TIE = 1e-12
_FINITE = 1e300  # stands for the regret of what can be done in no time: two of them are equal


@dataclass(frozen=True, slots=True)
class _Step:
    """Octaves first to last, inclusive, served by one of the sizes."""

    first: int
    last: int
    size: int  # its index


def merged(
    octaves: Sequence[WorkloadCosts], sizes: Sequence[int], *, merge_regret: float, max_steps: int
) -> tuple[tuple[int, int], ...]:
    """Return (index of its first octave, size) of each step, ascending."""
    table = _Values.of(octaves, sizes)
    steps = [_Step(i, i, i) for i in range(len(sizes))]
    while len(steps) > 1:
        pairs = [table.merger(low, high) for low, high in pairwise(steps)]
        at = min(range(len(pairs)), key=lambda i: pairs[i][0])
        cost, step = pairs[at]
        if cost > merge_regret and len(steps) <= max_steps:
            break
        steps[at : at + 2] = [step]
    return tuple((step.first, sizes[step.size]) for step in steps)


@dataclass(frozen=True, slots=True)
class _Values:
    """V, what the sums of each octave are a share of, and the sizes."""

    V: Floats
    wholes: Floats
    sizes: tuple[int, ...]
    is_worst: bool

    @classmethod
    def of(cls, octaves: Sequence[WorkloadCosts], sizes: Sequence[int]) -> _Values:
        s = np.array(sizes, dtype=np.int64)
        V = np.minimum(np.stack([octave.sums(s) for octave in octaves], axis=1), _FINITE)
        wholes = np.array([octave.whole for octave in octaves])
        return cls(V, wholes, tuple(sizes), octaves[0].objective is Objective.WORST)

    def merger(self, low: _Step, high: _Step) -> tuple[float, _Step]:
        """What one size for both costs beyond the two, at its cheapest, and the step."""
        found = [_Step(low.first, high.last, size) for size in (low.size, high.size)]
        costs = [self._beyond(step, low, high) for step in found]
        equals = [i for i, cost in enumerate(costs) if cost <= min(costs) + TIE]
        at = max(equals, key=lambda i: self.sizes[found[i].size])
        return costs[at], found[at]

    def _beyond(self, step: _Step, low: _Step, high: _Step) -> float:
        """By how much the regret of the step's messages grows: of all of them, or some octave's."""
        apart = np.concatenate([self._of(low), self._of(high)])
        grown = self._of(step) - apart
        if self.is_worst:
            return float(grown.max())
        whole = float(self.wholes[step.first : step.last + 1].sum())
        beyond = float(grown.sum())
        if whole > 0.0:
            return beyond / whole
        return 0.0 if beyond <= 0.0 else inf  # of what can be done in no time

    def _of(self, step: _Step) -> Floats:
        """V of the step's size on each of its octaves."""
        on: Floats = self.V[step.size, step.first : step.last + 1]
        return on
