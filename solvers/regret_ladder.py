"""Merging the steps of a ladder: which neighbours one size can serve.

Source    docs/theory.md, "The regret of a setting".
Notation  V: (a, b) what the objective says of size a on octave b.
Cost      O(steps^2) look-ups in V.
Exact     greedy, and says no more: each merger costs less than the threshold over its messages.
Traps     with the mean, an octave counts by its share; with the worst, each octave keeps its own
          worst regret to the threshold: the greatest of all alone would leave the others no care.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from domain.regret import Objective
from solvers.regret_costs import Floats, MixCosts

TIE = 1e-12
_FINITE = 1e300  # stands for the regret of what can be done in no time: two of them are equal


@dataclass(frozen=True, slots=True)
class _Step:
    """Octaves first to last, inclusive, served by one of the sizes."""

    first: int
    last: int
    size: int  # its index


def merged(
    octaves: Sequence[MixCosts], sizes: Sequence[int], *, merge_regret: float, most_steps: int
) -> tuple[tuple[int, int], ...]:
    """(index of its first octave, size) of each step, ascending."""
    table = _Values.of(octaves, sizes)
    steps = [_Step(i, i, i) for i in range(len(sizes))]
    while len(steps) > 1:
        pairs = [table.merger(low, high) for low, high in pairwise(steps)]
        at = min(range(len(pairs)), key=lambda i: pairs[i][0])
        cost, step = pairs[at]
        if cost > merge_regret and len(steps) <= most_steps:
            break
        steps[at : at + 2] = [step]
    return tuple((step.first, sizes[step.size]) for step in steps)


@dataclass(frozen=True, slots=True)
class _Values:
    """V, the shares of the octaves, and the sizes."""

    V: Floats
    shares: Floats
    sizes: tuple[int, ...]
    is_worst: bool

    @classmethod
    def of(cls, octaves: Sequence[MixCosts], sizes: Sequence[int]) -> _Values:
        s = np.array(sizes, dtype=np.int64)
        V = np.minimum(np.stack([octave.values(s) for octave in octaves], axis=1), _FINITE)
        shares = np.array([octave.w.sum() for octave in octaves])
        return cls(V, shares, tuple(sizes), octaves[0].objective is Objective.WORST)

    def merger(self, low: _Step, high: _Step) -> tuple[float, _Step]:
        """What one size for both costs beyond the two, at its cheapest, and the step."""
        found = [_Step(low.first, high.last, size) for size in (low.size, high.size)]
        costs = [self._beyond(step, low, high) for step in found]
        equals = [i for i, cost in enumerate(costs) if cost <= min(costs) + TIE]
        at = max(equals, key=lambda i: self.sizes[found[i].size])
        return costs[at], found[at]

    def _beyond(self, step: _Step, low: _Step, high: _Step) -> float:
        """By how much the regret of the step's messages grows: their mean, or some octave's."""
        apart = np.concatenate([self._of(low), self._of(high)])
        grown = self._of(step) - apart
        if self.is_worst:
            return float(grown.max())
        shares = self.shares[step.first : step.last + 1]
        return float((grown * shares).sum() / shares.sum())

    def _of(self, step: _Step) -> Floats:
        """V of the step's size on each of its octaves."""
        on: Floats = self.V[step.size, step.first : step.last + 1]
        return on
