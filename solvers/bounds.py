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

from domain.pipeline import Line, Stage
from domain.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SAFETY = 1.0 - 1e-14  # a few roundings of sums of at most 130 terms


def closed_form_us(problem: Problem, counts: Ints) -> Floats:
    """Proven lower bound (µs, delay included) on every cut into k fragments, for each k asked."""
    least, greatest = problem.least_fragment_bytes, problem.greatest_fragment_bytes
    minorants = [_Minorant.of(stage, least, greatest) for stage in problem.pipeline.stages]
    size = float(problem.message_bytes)
    ends = np.maximum(float(least), size - (counts - 1.0) * greatest)
    at_end = np.stack([phi.least_from(ends) for phi in minorants])
    inner = np.stack([counts * phi(size / counts) for phi in minorants])
    around = at_end.sum(axis=0) - at_end
    best: Floats = (around + inner).max(axis=0)
    return best * _SAFETY + problem.pipeline.delay_us


class _Minorant:
    """A convex function as the maximum of lines; vectorised. Slopes ascend."""

    __slots__ = ("_greatest", "_overheads", "_slopes", "_valley")

    def __init__(self, lines: tuple[Line, ...], least: float, greatest: float) -> None:
        self._overheads = np.array([line.overhead_us for line in lines])
        self._slopes = np.array([line.ns_per_byte for line in lines]) / 1000.0
        self._greatest = greatest
        self._valley = self._lowest_point(least, greatest)

    @classmethod
    def of(cls, stage: Stage, least: float, greatest: float) -> _Minorant:
        line = stage.line_over(least, greatest)
        lines = (line,) if line else stage.minorant_over(least, greatest)
        return cls(lines, least, greatest)

    def __call__(self, x: Floats) -> Floats:
        best = self._overheads[0] + self._slopes[0] * x
        for overhead, slope in zip(self._overheads[1:], self._slopes[1:], strict=True):
            best = np.maximum(best, overhead + slope * x)
        values: Floats = best
        return values

    def least_from(self, lead: Floats) -> Floats:
        """The least value over [lead, greatest]: at lead, or at the valley beyond it."""
        return self(np.clip(lead, min(self._valley, self._greatest), None))

    def _lowest_point(self, least: float, greatest: float) -> float:
        rising = np.flatnonzero(self._slopes >= 0.0)
        if not len(rising):
            return greatest
        first = int(rising[0])
        if first == 0:
            return least
        drop = self._overheads[first - 1] - self._overheads[first]
        return float(drop / (self._slopes[first] - self._slopes[first - 1]))
