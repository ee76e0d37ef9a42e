"""What every way to fit one line shares: the line, and its least squares under constraints.

Notation  x sizes as shares of the greatest, y times as shares of the greatest, w weights, (N,);
          a = Wang's g; b the cost of the greatest size; f = a + b x.
Cost      O(N).
Exact     `solve` minimises sum w (y - f)^2 over a, b >= 0: with y >= 0 at most one of the free
          estimates is negative, and the optimum then lies on that edge, where the gradient of the
          clipped one points outwards and the other one has a closed form.
Traps     weights of relative residuals grow like 1/f^2: over 15 decades of sizes only sums around
          the weighted mean keep their digits. f is never taken to be less than TINY.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TINY = 1e-18  # of the greatest time
MIN_SCALE = 1e-9  # relative noise below this is rounding
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Line:
    """f = a + b x; `clipped` is "a" or "b" where that one came out negative."""

    a: float
    b: float
    clipped: str | None = None

    def at(self, x: Floats) -> Floats:
        """Return fitted times, at least TINY."""
        out: Floats = np.maximum(self.a + self.b * x, TINY)
        return out


def solve(x: Floats, y: Floats, w: Floats) -> Line:
    """Return min sum w (y - a - b x)^2 over a, b >= 0."""
    w = w / float(w.max())  # they may be as large as 1/TINY^2
    total = float(w.sum())
    mean_x, mean_y = float(w @ x) / total, float(w @ y) / total
    dx = x - mean_x
    sxx = float(w @ dx**2)
    b = float(w @ (dx * (y - mean_y))) / sxx if sxx > 0.0 else 0.0
    a = mean_y - b * mean_x
    if a < 0.0:
        rounding = a >= -_ROUNDING * mean_y
        return Line(0.0, float(w @ (x * y)) / float(w @ x**2), None if rounding else "a")
    if b < 0.0:
        return Line(mean_y, 0.0, None if b * float(x[-1]) >= -_ROUNDING * mean_y else "b")
    return Line(a, b)


def first_line(x: Floats, y: Floats, c: Floats) -> Line:
    """Return where iterations start: weights 1/y^2, bounded for times next to 0."""
    return solve(x, y, c / np.maximum(y, 1e-3 * float(np.median(y)) + TINY) ** 2)


def is_settled(line: Line, f: Floats, x: Floats, within: float) -> bool:
    """Return whether no fitted time moved by more than this share of itself."""
    return bool(np.max(np.abs(line.at(x) - f) / f) < within)
