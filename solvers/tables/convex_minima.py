"""The least value of many convex functions at once, and a line below each.

Source    own derivation: two supporting lines, one from each end, meet at or below the least value.
Notation  s: where each function is asked, from low to high; f: its value, d: its slope in s, r: its
          slope in the parameter B, s kept.
Cost      at most 60 rounds of one evaluation of all that are still open.
Exact     the line below holds for every B where the functions are convex in (s, B) together.
Traps     an end may move with B: there the line is taken along that end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Value: TypeAlias = Callable[[Floats], tuple[Floats, Floats, Floats]]

_ROUNDS = 60


class Between(NamedTuple):
    """Where to look, (P,) each: the ends of s, and how they move with B."""

    low: Floats
    high: Floats
    low_move: Floats
    high_move: Floats


class Minimum(NamedTuple):
    """Of each function, (P,) each: the best s, its value, a value below all, its slope in B."""

    size: Floats
    best: Floats
    lower: Floats
    slope: Floats


def min_between(value: Value, ends: Between) -> Minimum:
    """Return the least of each function between its ends; `value` gives f, d and r, (P,) each, at
    s.
    """
    low, high, low_move, high_move = ends
    f0, d0, r0 = value(low)
    f1, d1, r1 = value(high)
    s0, s1 = low.copy(), high.copy()
    best, size = np.minimum(f0, f1), np.where(f0 <= f1, low, high)
    open_ = (d0 < 0.0) & (d1 > 0.0) & (s1 > s0)
    for _ in range(_ROUNDS):
        if not open_.any():
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            s = s0 + np.where(open_, (f0 - f1 + d1 * (s1 - s0)) / (d1 - d0), 0.0)
            meet = f0 + d0 * (s - s0)
        s = np.where(open_, np.clip(s, s0, s1), s0)
        f, d, r = value(s)
        better = open_ & (f < best)
        best, size = np.where(better, f, best), np.where(better, s, size)
        done = f <= meet * (1.0 + 1e-13)
        left, right = open_ & ~done & (d < 0.0), open_ & ~done & (d >= 0.0)
        s0, f0, d0, r0 = (np.where(left, x, y) for x, y in ((s, s0), (f, f0), (d, d0), (r, r0)))
        s1, f1, d1, r1 = (np.where(right, x, y) for x, y in ((s, s1), (f, f1), (d, d1), (r, r1)))
        open_ = left | right
    inner = (d0 < 0.0) & (d1 > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(inner, d1 / (d1 - d0), 0.0)
        mixed = share * (f0 - d0 * s0) + (1.0 - share) * (f1 - d1 * s1)
        slope = share * r0 + (1.0 - share) * r1
    rises = ~inner & (d0 >= 0.0)
    lower = np.where(inner, mixed, np.where(rises, f0, f1))
    slope = np.where(
        inner, slope, np.where(rises, r0 + d0 * low_move, r1 + np.minimum(d1, 0.0) * high_move)
    )
    return Minimum(size, best, np.minimum(lower, best) * (1.0 - 1e-12), slope)
