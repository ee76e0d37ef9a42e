"""Closed-form lower bounds, for every number of fragments at once.

Source    theory sec. 1: T >= sum_{j<b} t_j(x_0) + k g_b + B G_b + sum_{j>b} t_j(x_{k-1}); it
          generalises Wang98 (5).
Notation  n stages, k fragments; phi_j: the greatest convex minorant of stage j's cost over the
          admitted sizes; m, M: least and greatest size; B: message.
Cost      O(n^2) NumPy passes over the ks asked for.
Exact     a bound, never an optimum. For stages with ranges k phi_b(B/k) takes the place of
          k g_b + B G_b (Jensen), and the ends take the least phi_j over the sizes they can have.
Traps     a minorant may fall with the size, so the least value over [lead, M] is not at lead.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from domain.pipeline import Stage
from domain.problem import Problem
from solvers.kernels import active
from solvers.kernels.native_whole import whole_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SAFETY = 1.0 - 1e-13  # a few roundings of sums of at most 130 terms
_LESS, _MORE = 1.0 - 4e-16, 1.0 + 4e-16


def closed_form_us(
    problem: Problem,
    counts: Ints,
    *,
    max_fragment_bytes: float | None = None,
) -> Floats:
    """Return the proven lower bound (µs, delay included) on every cut into k fragments, for each k
    asked.

    With `max_fragment_bytes`, on those cuts alone that have no greater fragment. C and NumPy give
    the same bits.
    """
    minimum, maximum = float(problem.smallest_fragment_bytes), float(problem.largest_fragment_bytes)
    narrowed = max_fragment_bytes is not None and max_fragment_bytes != maximum
    if active.NATIVE is not None and not narrowed:
        whole = whole_of(problem)
        if whole is not None:
            return active.NATIVE.whole.bounds_us(whole, counts)
    maximum = maximum if max_fragment_bytes is None else max_fragment_bytes
    minorants = [_Minorant.of(stage, minimum, maximum) for stage in problem.pipeline.stages]
    size = float(problem.message_bytes)
    ends = np.maximum(minimum, size - (counts - 1.0) * maximum)
    at_end = np.stack([phi.min_from(ends) for phi in minorants])
    inner = np.stack([counts * phi(size / counts) for phi in minorants])
    around = at_end.sum(axis=0) - at_end
    best: Floats = (around + inner).max(axis=0)
    return best * _SAFETY + problem.pipeline.delay_us


class _Minorant:
    """A convex function through vertices (bytes, µs), straight between them; vectorised."""

    __slots__ = ("_at", "_cost", "_valley")

    def __init__(self, points: tuple[tuple[float, float], ...]) -> None:
        self._at = np.array([size for size, _ in points])
        self._cost = np.array([cost for _, cost in points])
        self._valley = float(self._at[int(np.argmin(self._cost))])

    @classmethod
    def of(cls, stage: Stage, minimum: float, maximum: float) -> _Minorant:
        return cls(stage.minorant_points(minimum, maximum))

    def __call__(self, x: Floats) -> Floats:
        """Values at sizes that carry a rounding error: the lower of those just beside them."""
        value = self._between(x)
        if len(self._at) == 1 or (len(self._at) == 2 and self._cost[0] <= self._cost[1]):
            return value
        return np.minimum(value, np.minimum(self._between(x * _LESS), self._between(x * _MORE)))

    def min_from(self, lead: Floats) -> Floats:
        """The least value over [lead, greatest]: at lead, or at the valley beyond it."""
        return self._between(np.maximum(lead, self._valley))

    def _between(self, x: Floats) -> Floats:
        """Means of two vertices: sums of terms that are not negative, so nothing cancels."""
        if len(self._at) == 1:
            return np.full(x.shape, self._cost[0])
        x = np.clip(x, self._at[0], self._at[-1])
        right: Ints | int = 1
        if len(self._at) > 2:
            right = np.clip(np.searchsorted(self._at, x, side="left"), 1, len(self._at) - 1)
        start, end = self._at[right - 1], self._at[right]
        share = (x - start) / (end - start)
        rest = (end - x) / (end - start)
        values: Floats = self._cost[right - 1] * rest + self._cost[right] * share
        return values
