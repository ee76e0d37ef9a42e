"""Samples to one estimated line, in µs and bytes, by any of the methods.

Notation  a = Wang's g in µs; b in µs per byte, 1/1000 of Wang's G in ns per byte.
Cost      O(N) an iteration.
Traps     sizes span up to 15 decades and times may be denormal: everything is computed in shares
          of the greatest size and the greatest time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from domain.fit import FitMethod
from fitting.intervals import Known, quantile, uncertainty
from fitting.line import Floats, Line
from fitting.ordinary import OrdinaryLine, fit_line
from fitting.robust import robust_line
from fitting.samples import Ints, SortedSamples
from fitting.weighted import relative_scale, weighted_line


@dataclass(frozen=True, slots=True)
class Estimate:
    """a (µs) and b (µs per byte), their standard errors and half widths of 95 % intervals.

    `scale` is the relative noise of one sample; `weights` (N,) are Tukey's, 0 for an outlier;
    `clipped` is "a" or "b" where that one came out negative. `free` are a and b before that, with
    their covariance (2, 2), known from so many `degrees_of_freedom`.
    """

    a: float
    b: float
    errors: tuple[float, float]
    half: tuple[float, float]
    correlation: float
    scale: float
    weights: Floats
    free: tuple[float, float]
    free_covariance: Floats
    degrees_of_freedom: float
    clipped: str | None = None

    def times_us(self, x: Floats) -> Floats:
        """Return fitted times."""
        out: Floats = self.a + self.b * x
        return out

    def covariance(self) -> Floats:
        """Return that of a and b, (2, 2)."""
        a, b = self.errors
        return np.array([[a * a, self.correlation * a * b], [self.correlation * a * b, b * b]])

    def moved_to(self, a: float, b: float) -> Estimate:
        """Return the estimate with these two; the free ones move by as much."""
        free = (self.free[0] + a - self.a, self.free[1] + b - self.b)
        return replace(self, a=a, b=b, free=free)

    def with_level(self, deviation: float) -> Estimate:
        """Return the estimate with wider errors: of all times together by so much, relatively."""
        if deviation <= 0.0:
            return self
        level = deviation * np.array([self.a, self.b])
        V = self.covariance() + np.outer(level, level)
        half = np.hypot(self.half, quantile(self.degrees_of_freedom) * level)
        return replace(
            self,
            errors=(float(V[0, 0] ** 0.5), float(V[1, 1] ** 0.5)),
            half=(float(half[0]), float(half[1])),
            correlation=_correlation(V),
            free_covariance=self.free_covariance + np.outer(level, level),
        )


@dataclass(frozen=True, slots=True)
class Between:
    """What all samples of a size share: its relative covariance over the cells of a range (m, m),
    from how many sizes beyond the parameters it is known, and the entries of the range where each
    cell begins (m,).
    """

    common: Floats
    freedom: int
    start: Ints


@dataclass(frozen=True, slots=True)
class FittedLine:
    """A line in shares of the greatest size and time, with the scale and the weight of every
    sample, (N,); or an ordinary fit, which has errors of its own.
    """

    line: Line
    scale: Floats
    weights: Floats
    x_unit: float
    y_unit: float
    ordinary: OrdinaryLine | None = None

    def times_us(self, x: Floats) -> Floats:
        """Return fitted times."""
        line, b = self.line, self.line.b / self.x_unit
        out: Floats = (line.a + b * x) * self.y_unit
        return out


def fitted_line(
    samples: SortedSamples, method: FitMethod, *, resolution_us: float = 0.0
) -> FittedLine:
    """Fit samples of two sizes or more, three or more in all.

    `resolution_us` is the clock's step: no interval claims more than it can show.
    """
    y_unit, x_unit, ones = float(samples.y.max()), float(samples.x.max()), np.ones(len(samples.x))
    if y_unit <= 0.0:
        return FittedLine(Line(0.0, 0.0), ones, ones, x_unit, 0.0)
    if method is FitMethod.ORDINARY:
        found = fit_line(samples.x, samples.y, samples.c)
        line = Line(found.a, found.b, found.clipped)
        return FittedLine(line, ones, ones, 1.0, 1.0, found)
    x, y = samples.x / x_unit, samples.y / y_unit
    if method is FitMethod.ROBUST:
        line, scale, weights = robust_line(samples, x, y, None, resolution_us / y_unit)
        return FittedLine(line, scale, weights, x_unit, y_unit)
    line = weighted_line(x, y, samples.c)
    return FittedLine(line, ones * relative_scale(x, y, samples.c, line), ones, x_unit, y_unit)


def estimate_of(
    samples: SortedSamples, fitted: FittedLine, *, resolution_us: float, between: Between
) -> Estimate:
    """Return the line with its errors. `between` is of all ranges of the stage together: how alike
    sizes are is a matter of the measurement, not of a range.
    """
    if fitted.ordinary is not None:
        return _ordinary(samples, fitted.ordinary)
    line, x_unit, y_unit = fitted.line, fitted.x_unit, fitted.y_unit
    if y_unit <= 0.0:
        none = (0.0, 0.0)
        return Estimate(
            a=0.0,
            b=0.0,
            errors=none,
            half=none,
            correlation=0.0,
            scale=0.0,
            weights=fitted.weights,
            free=none,
            free_covariance=np.zeros((2, 2)),
            degrees_of_freedom=float(max(1, between.freedom)),
        )
    x, y = samples.x / x_unit, samples.y / y_unit
    known = Known(
        tick=resolution_us / y_unit,
        common=between.common,
        freedom=between.freedom,
        start=between.start,
    )
    found = uncertainty(samples, x, y, (line, fitted.scale, fitted.weights), known=known)
    units = np.array([y_unit, y_unit / x_unit])
    return Estimate(
        a=line.a * y_unit,
        b=line.b * y_unit / x_unit,
        errors=(found.errors[0] * y_unit, found.errors[1] * y_unit / x_unit),
        half=(found.half[0] * y_unit, found.half[1] * y_unit / x_unit),
        correlation=_correlation(found.covariance),
        scale=float(np.median(fitted.scale)),
        weights=fitted.weights,
        free=(found.free[0] * y_unit, found.free[1] * y_unit / x_unit),
        free_covariance=found.free_covariance * np.outer(units, units),
        degrees_of_freedom=found.degrees_of_freedom,
        clipped=line.clipped,
    )


def _ordinary(samples: SortedSamples, found: OrdinaryLine) -> Estimate:
    line = Line(found.a, found.b)
    return Estimate(
        a=found.a,
        b=found.b,
        errors=(found.a_error, found.b_error),
        half=(found.a_half, found.b_half),
        correlation=found.correlation,
        scale=relative_scale(samples.x, samples.y, samples.c, line),
        weights=np.ones(len(samples.x)),
        free=found.free,
        free_covariance=np.array(found.free_covariance),
        degrees_of_freedom=max(1.0, float(samples.c.sum()) - 2.0),
        clipped=found.clipped,
    )


def _correlation(covariance: Floats) -> float:
    both = float(np.sqrt(np.prod(np.maximum(np.diag(covariance), 0.0))))
    return float(np.clip(covariance[0, 1] / both, -1.0, 1.0)) if both > 0.0 else 0.0
