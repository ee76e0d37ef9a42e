"""One line by ordinary least squares, neither parameter below 0.

Source: textbook simple regression. With x centred, b = Sxy / Sxx and a = mean(y) - b mean(x);
    s^2 = RSS / (N - p); var b = s^2 / Sxx; var a = s^2 (1/N + mean(x)^2 / Sxx).
Notation: x sizes in bytes, y times in µs, c how many samples an entry stands for, (N,) each;
    a = Wang's g in µs; b in µs per byte, 1/1000 of Wang's G in ns per byte; p parameters estimated
    (2, or 1 where one was clipped).
Cost: O(N).
Exact: it minimises the squared residuals over a, b >= 0. With y >= 0 at most one of the two
    unconstrained estimates is negative, and the optimum then lies on that edge, where the other
    one has a closed form: b = Sum xy / Sum x^2 for a = 0, a = mean(y) for b = 0.
Traps: without centring, Sum x^2 - N mean(x)^2 cancels for sizes far from 0. Intervals
    beside a clipped estimate are as wide as the free estimate's errors allow: the free interval
    itself may lie below 0 as a whole, which is misfit and not certainty; and if the clipped
    parameter is more than 0 after all, the other one is that much less.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fitting.intervals import quantile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Estimates this far below 0, relative to the data, are rounding and not evidence of anything.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class OrdinaryLine:
    """a (µs) and b (µs per byte), standard errors and half widths; `clipped` names one of them.

    `free` are both before clipping, `free_covariance` ((2, 2), by rows) theirs.
    """

    a: float
    b: float
    a_error: float
    b_error: float
    a_half: float
    b_half: float
    correlation: float
    free: tuple[float, float]
    free_covariance: tuple[tuple[float, float], tuple[float, float]]
    clipped: str | None = None


def fit_line(
    x: NDArray[np.float64], y: NDArray[np.float64], c: NDArray[np.float64]
) -> OrdinaryLine:
    """Return the line through these samples of two distinct sizes or more; the caller checks.

    Two samples, a pair at an end of the sizes, show no scatter: their errors are 0.
    """
    free = _free_line(x, y, c)
    scale = float(y.max())
    if free.a < -_ROUNDING * scale:
        return _through_origin(x, y, c, free)
    if free.b * float(x.max()) < -_ROUNDING * scale:
        return _flat(y, c, free)
    return free


def _free_line(
    x: NDArray[np.float64], y: NDArray[np.float64], c: NDArray[np.float64]
) -> OrdinaryLine:
    count = float(c.sum())
    mean_x, mean_y = float(c @ x) / count, float(c @ y) / count
    dx, dy = x - mean_x, y - mean_y
    sxx = float(c @ dx**2)
    b = float(c @ (dx * dy)) / sxx
    a = mean_y - b * mean_x
    freedom = max(1.0, count - 2.0)
    std = (float(c @ (dy - b * dx) ** 2) / freedom) ** 0.5
    a_error = std * (1.0 / count + mean_x * mean_x / sxx) ** 0.5
    b_error = std / sxx**0.5
    correlation = -mean_x / (sxx / count + mean_x * mean_x) ** 0.5
    both = correlation * a_error * b_error
    half = quantile(freedom)
    return OrdinaryLine(
        a=_not_below_rounding(a, float(y.max())),
        b=_not_below_rounding(b, float(y.max()) / float(x.max())),
        a_error=a_error,
        b_error=b_error,
        a_half=half * a_error,
        b_half=half * b_error,
        correlation=correlation,
        free=(a, b),
        free_covariance=((a_error**2, both), (both, b_error**2)),
    )


def _through_origin(
    x: NDArray[np.float64], y: NDArray[np.float64], c: NDArray[np.float64], free: OrdinaryLine
) -> OrdinaryLine:
    """a = 0: the least squares line through the origin."""
    count, sum_xx = float(c.sum()), float(c @ x**2)
    b = float(c @ (x * y)) / sum_xx
    error = (float(c @ (y - b * x) ** 2) / (count - 1)) ** 0.5 / sum_xx**0.5
    half = max(quantile(count - 1) * error, free.b_half)
    error = max(error, free.b_error)
    return replace(free, a=0.0, b=b, b_error=error, b_half=half, correlation=0.0, clipped="a")


def _flat(y: NDArray[np.float64], c: NDArray[np.float64], free: OrdinaryLine) -> OrdinaryLine:
    """b = 0: the mean."""
    count = float(c.sum())
    a = float(c @ y) / count
    error = (float(c @ (y - a) ** 2) / (count - 1)) ** 0.5 / count**0.5
    half = max(quantile(count - 1) * error, free.a_half)
    error = max(error, free.a_error)
    return replace(free, a=a, b=0.0, a_error=error, a_half=half, correlation=0.0, clipped="b")


def _not_below_rounding(value: float, scale: float) -> float:
    return 0.0 if -_ROUNDING * scale <= value < 0.0 else value
