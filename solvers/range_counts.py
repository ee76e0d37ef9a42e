"""The counts of fragments that a bound in closed form does not exclude over a span of sizes.

Source    theory sec. 1; solvers/bounds.py has the same for one message size.
Notation  k fragments; phi_j: greatest convex minorant of stage j over [m, M]; B in [b1, b2].
Cost      O(n) NumPy passes over the counts up to the last that could win.
Exact     T >= sum_{j != b} min phi_j + k phi_b(B/k) (Jensen), and k phi_b(B/k) is convex in B, so
          its tangent at any size bounds it at every other; in k it is a perspective, hence convex:
          once it rises above what is asked it stays there.
Traps     the tangent of a steep piece may start far below zero; only the tangent at B/k itself is
          used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.problem import Problem
from solvers.range_bound import Span

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FIRST_COUNTS = 32
_GROWTH = 8
_MOST_COUNTS = 24  # that are bounded by nodes
_MOST_FRAGMENTS = 40
_SAFETY = 1.0 - 1e-12


@dataclass(frozen=True, slots=True)
class OpenCounts:
    """The counts left to other bounds, and their worst quotient where there are none."""

    open: list[int]
    ratio: float

    @property
    def are_many(self) -> bool:
        """Whether bounding each by itself would take too long."""
        return len(self.open) > _MOST_COUNTS or max(self.open, default=0) > _MOST_FRAGMENTS


def counts_below(problem: Problem, span: Span) -> OpenCounts:
    """The admitted counts that the closed form does not exclude over this span."""
    limits = problem.limits
    least = -(-span.first // (limits.max_fragment_bytes or span.first))
    most = span.last // min(limits.min_fragment_bytes, span.last)
    most = max(1, min(most, limits.max_fragments or most, problem.fragment_cap))
    lines, open_, worst = _Lines.of(problem, span), [], 0.0
    low = max(1, least)
    one, other = span.targets()
    while low <= most:
        high = min(most, max(_FIRST_COUNTS, _GROWTH * low))
        k = np.arange(low, high + 1, dtype=np.int64)
        reached, rising, ratio = lines.reached(k, one, other)
        open_ += [int(count) for count in k[~reached]]
        worst = max(worst, float(ratio[~reached].max(initial=0.0)))
        if reached[-1] and rising:
            break
        low = high + 1
    return OpenCounts(open_, worst)


@dataclass(frozen=True, slots=True)
class _Lines:
    """Minorants over the sizes of a span."""

    hulls: tuple[Floats, ...]
    least_us: Floats
    span: Span
    sizes: tuple[float, float]

    @classmethod
    def of(cls, problem: Problem, span: Span) -> _Lines:
        limits = problem.limits
        least = float(min(limits.min_fragment_bytes, span.first))
        greatest = float(min(span.last, limits.max_fragment_bytes or span.last))
        stages = problem.pipeline.stages
        hulls = tuple(np.array(stage.minorant_points(least, greatest)) for stage in stages)
        return cls(hulls, np.array([hull[:, 1].min() for hull in hulls]), span, (least, greatest))

    def reached(self, k: Ints, one: float, other: float) -> tuple[NDArray[np.bool_], bool, Floats]:
        """Whether each count's bound reaches both targets, whether the last rises; quotients."""
        middle, around = 0.5 * (self.span.first + self.span.last), self.least_us.sum()
        reached, rising = np.zeros(len(k), dtype=bool), False
        ratio = np.full(len(k), np.inf)
        for hull, own in zip(self.hulls, self.least_us, strict=True):
            size = np.clip(middle / k, *self.sizes)
            phi, slope = _tangent(hull, size)
            value = around - own + k * phi
            low = (value + slope * (self.span.first - k * size)) * _SAFETY
            high = (value + slope * (self.span.last - k * size)) * _SAFETY
            here = (low >= one) & (high >= other)
            reached |= here
            ratio = np.minimum(ratio, self.span.ratio(low, high))
            rising |= bool(here[-1] and len(k) > 1 and low[-1] >= low[-2] and high[-1] >= high[-2])
        return reached, rising, ratio


def _tangent(hull: Floats, size: Floats) -> tuple[Floats, Floats]:
    """Value and a slope of the minorant at these sizes."""
    if len(hull) == 1:
        return np.full(size.shape, hull[0, 1]), np.zeros(size.shape)
    at, cost = hull[:, 0], hull[:, 1]
    right = np.clip(np.searchsorted(at, size, side="left"), 1, len(at) - 1)
    slopes = np.diff(cost) / np.diff(at)
    share = (size - at[right - 1]) / (at[right] - at[right - 1])
    return cost[right - 1] * (1.0 - share) + cost[right] * share, slopes[right - 1]
