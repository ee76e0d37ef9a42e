"""One line by ordinary least squares, neither parameter below 0.

Source: textbook simple regression. With x centred, b = Sxy / Sxx and a = mean(y) - b mean(x);
    s^2 = RSS / (N - p); var b = s^2 / Sxx; var a = s^2 (1/N + mean(x)^2 / Sxx).
Notation: x fragment sizes in bytes, y times in µs, (N,) each; a = Wang's g in µs; b in µs per byte,
    1/1000 of Wang's G in ns per byte; p parameters estimated (2, or 1 where one was clipped).
Cost: O(N).
Exact: it minimises the squared residuals over a, b >= 0. With y >= 0 at most one of the two
    unconstrained estimates is negative, and the optimum then lies on that edge, where the other
    one has a closed form: b = Sum xy / Sum x^2 for a = 0, a = mean(y) for b = 0.
Traps: without centring, Sum x^2 - N mean(x)^2 cancels for sizes far from 0. The error of a
    parameter beside a clipped one is conditional on the clipped one being exactly 0. The interval
    of a clipped one starts at 0 and is as wide as the free estimate's error allows: the free
    interval itself may lie below 0 as a whole, which is misfit and not certainty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtrit

if TYPE_CHECKING:
    from numpy.typing import NDArray

CONFIDENCE = 0.95
# Estimates this far below 0, relative to the data, are rounding and not evidence of anything.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class LineFit:
    """a (µs) and b (µs per byte) with standard errors and 95 % intervals; `clipped` names one."""

    a: float
    b: float
    a_error: float
    b_error: float
    a_interval: tuple[float, float]
    b_interval: tuple[float, float]
    residual_std: float
    r_squared: float
    clipped: str | None


def fit_line(x: NDArray[np.float64], y: NDArray[np.float64]) -> LineFit:
    """The line through these samples. Needs N >= 3 and two distinct sizes; the caller checks."""
    free = _free_line(x, y)
    scale = float(np.max(y))
    if free.a < -_ROUNDING * scale:
        return _through_origin(x, y, free)
    if free.b * float(np.max(x)) < -_ROUNDING * scale:
        return _flat(y, free)
    return free


def _free_line(x: NDArray[np.float64], y: NDArray[np.float64]) -> LineFit:
    count, mean_x, mean_y = len(x), float(np.mean(x)), float(np.mean(y))
    dx, dy = x - mean_x, y - mean_y
    sxx = float(dx @ dx)
    b = float(dx @ dy) / sxx
    a = mean_y - b * mean_x
    rss = float(np.sum((dy - b * dx) ** 2))
    std = (rss / (count - 2)) ** 0.5
    a_error = std * (1.0 / count + mean_x * mean_x / sxx) ** 0.5
    b_error = std / sxx**0.5
    half = _quantile(count - 2)
    return LineFit(
        a=_not_below_rounding(a, float(np.max(y))),
        b=_not_below_rounding(b, float(np.max(y)) / float(np.max(x))),
        a_error=a_error,
        b_error=b_error,
        a_interval=(a - half * a_error, a + half * a_error),
        b_interval=(b - half * b_error, b + half * b_error),
        residual_std=std,
        r_squared=_share_explained(rss, y),
        clipped=None,
    )


def _through_origin(x: NDArray[np.float64], y: NDArray[np.float64], free: LineFit) -> LineFit:
    """a = 0: the least squares line through the origin."""
    sum_xx = float(x @ x)
    b = float(x @ y) / sum_xx
    rss = float(np.sum((y - b * x) ** 2))
    std = (rss / (len(x) - 1)) ** 0.5
    error = std / sum_xx**0.5
    half = _quantile(len(x) - 1) * error
    return LineFit(
        a=0.0,
        b=b,
        a_error=free.a_error,
        b_error=error,
        a_interval=(0.0, _quantile(len(x) - 2) * free.a_error),
        b_interval=(b - half, b + half),
        residual_std=std,
        r_squared=_share_explained(rss, y),
        clipped="a",
    )


def _flat(y: NDArray[np.float64], free: LineFit) -> LineFit:
    """b = 0: the mean."""
    a = float(np.mean(y))
    rss = float(np.sum((y - a) ** 2))
    std = (rss / (len(y) - 1)) ** 0.5
    error = std / len(y) ** 0.5
    half = _quantile(len(y) - 1) * error
    return LineFit(
        a=a,
        b=0.0,
        a_error=error,
        b_error=free.b_error,
        a_interval=(a - half, a + half),
        b_interval=(0.0, _quantile(len(y) - 2) * free.b_error),
        residual_std=std,
        r_squared=_share_explained(rss, y),
        clipped="b",
    )


def _not_below_rounding(value: float, scale: float) -> float:
    return 0.0 if -_ROUNDING * scale <= value < 0.0 else value


def _quantile(freedom: int) -> float:
    """Two-sided quantile of Student's t."""
    return float(stdtrit(freedom, 0.5 + CONFIDENCE / 2.0))


def _share_explained(rss: float, y: NDArray[np.float64]) -> float:
    """R^2, at least 0; 1 where the times do not vary and so nothing is left to explain."""
    total = float(np.sum((y - np.mean(y)) ** 2))
    if total <= (_ROUNDING * float(np.max(y))) ** 2 * len(y):
        return 1.0
    return max(0.0, 1.0 - rss / total)
