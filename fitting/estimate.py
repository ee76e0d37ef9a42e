"""Samples to one estimated line, in µs and bytes, by any of the methods.

Notation  a = Wang's g in µs; b in µs per byte, 1/1000 of Wang's G in ns per byte.
Cost      O(N) an iteration.
Traps     sizes span up to 15 decades and times may be denormal: everything is computed in shares
          of the greatest size and the greatest time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from domain.fit import FitMethod
from fitting.intervals import uncertainty
from fitting.line import Floats, Line
from fitting.ordinary import fit_line
from fitting.robust import robust_line
from fitting.samples import SortedSamples
from fitting.weighted import relative_scale, weighted_line


@dataclass(frozen=True, slots=True)
class Estimate:
    """a (µs) and b (µs per byte), their standard errors and half widths of 95 % intervals.

    `scale` is the relative noise of one sample; `weights` (N,) are Tukey's, 0 for an outlier;
    `clipped` is "a" or "b" where that one came out negative.
    """

    a: float
    b: float
    errors: tuple[float, float]
    half: tuple[float, float]
    correlation: float
    scale: float
    weights: Floats
    clipped: str | None = None

    def times_us(self, x: Floats) -> Floats:
        """Fitted times."""
        out: Floats = self.a + self.b * x
        return out


def estimate_line(
    samples: SortedSamples, method: FitMethod, *, resolution_us: float = 0.0, freedom: int = 0
) -> Estimate:
    """Fit samples of two sizes or more, three or more in all.

    `resolution_us` is the clock's step: no interval claims more than it can show. `freedom` is how
    many sizes there are beyond the parameters, in all ranges of the stage together.
    """
    y_unit, weights = float(samples.y.max()), np.ones(len(samples.x))
    if y_unit <= 0.0:
        return Estimate(0.0, 0.0, (0.0, 0.0), (0.0, 0.0), 0.0, 0.0, weights)
    if method is FitMethod.ORDINARY:
        return _ordinary(samples)
    x_unit = float(samples.x.max())
    x, y, tick = samples.x / x_unit, samples.y / y_unit, resolution_us / y_unit
    fitted = _fitted(samples, x, y, method, tick)
    covariance, errors, half = uncertainty(samples, x, y, fitted, tick=tick, freedom=freedom)
    line, scale, weights = fitted
    return Estimate(
        a=line.a * y_unit,
        b=line.b * y_unit / x_unit,
        errors=(errors[0] * y_unit, errors[1] * y_unit / x_unit),
        half=(half[0] * y_unit, half[1] * y_unit / x_unit),
        correlation=_correlation(covariance),
        scale=float(np.median(scale)),
        weights=weights,
        clipped=line.clipped,
    )


def _fitted(
    samples: SortedSamples, x: Floats, y: Floats, method: FitMethod, tick: float
) -> tuple[Line, Floats, Floats]:
    if method is FitMethod.ROBUST:
        return robust_line(samples, x, y, None, tick)
    line, ones = weighted_line(x, y, samples.c), np.ones(len(x))
    return line, ones * relative_scale(x, y, samples.c, line), ones


def _ordinary(samples: SortedSamples) -> Estimate:
    found = fit_line(samples.x, samples.y, samples.c)
    line = Line(found.a, found.b)
    return Estimate(
        a=found.a,
        b=found.b,
        errors=(found.a_error, found.b_error),
        half=(found.a_half, found.b_half),
        correlation=found.correlation,
        scale=relative_scale(samples.x, samples.y, samples.c, line),
        weights=np.ones(len(samples.x)),
        clipped=found.clipped,
    )


def _correlation(covariance: Floats) -> float:
    both = float(np.sqrt(covariance[0, 0] * covariance[1, 1]))
    return float(np.clip(covariance[0, 1] / both, -1.0, 1.0)) if both > 0.0 else 0.0
