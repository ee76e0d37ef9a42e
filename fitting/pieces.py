"""One fit range as it is being fitted: its samples, its line, what they support.

Notation  a = Wang's g in µs; b in µs per byte, 1/1000 of Wang's G in ns per byte.
Traps     an estimate next to 0 whose interval ends next to 0 is known well: what counts is the
          share of a fitted time that it may be, where that share is largest.

Samples to one estimated line, in µs and bytes, by any of the methods.

Notation  a = Wang's g in µs; b in µs per byte, 1/1000 of Wang's G in ns per byte.
Cost      O(N) an iteration.
Traps     sizes span up to 15 decades and times may be denormal: everything is computed in shares
          of the greatest size and the greatest time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from domain.fit import FitMethod, LineFit, Verdict
from domain.units import format_bytes
from fitting.intervals import uncertainty
from fitting.line import TINY, Floats, Line, relative_scale, weighted_line
from fitting.ordinary import fit_line
from fitting.robust import robust_line
from fitting.samples import SortedSamples


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
        """Return fitted times."""
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


_FIELDS = {None: (), "a": ("overhead_us",), "b": ("ns_per_byte",)}
_NEGLIGIBLE = 0.02  # of a fitted time


@dataclass(frozen=True, slots=True)
class Piece:
    """Cells first..last of the stage's centres; `up_to_bytes` is None for the last piece."""

    samples: SortedSamples
    estimate: Estimate
    cells: slice
    up_to_bytes: int | None
    num_samples: int

    @property
    def from_bytes(self) -> int:
        """The least measured size."""
        return int(self.samples.sizes[0])

    @property
    def to_bytes(self) -> int:
        """The greatest measured size."""
        return int(self.samples.sizes[-1])

    @property
    def words(self) -> str:
        """Its sizes, for a sentence."""
        return f"{format_bytes(self.from_bytes)} to {format_bytes(self.to_bytes)}"

    def at(self, x: Floats) -> Floats:
        """Return fitted times in µs, never 0 nor next to nothing beside the greatest time."""
        minimum = max(float(self.samples.y.max()) * TINY, 5e-324)
        out: Floats = np.maximum(self.estimate.times_us(x), minimum)
        return out

    def intervals(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return 95 % intervals of a and of b."""
        found, (a_half, b_half) = self.estimate, self.estimate.half
        return (
            (max(0.0, found.a - a_half), found.a + a_half),
            (max(0.0, found.b - b_half), found.b + b_half),
        )

    def verdicts(self) -> tuple[Verdict, Verdict]:
        """Return what the intervals alone say about a and b."""
        a, b = self.intervals()
        minimum, maximum = self.at(np.array([float(self.from_bytes), float(self.to_bytes)]))
        return (
            _verdict(self.estimate.a, a, a[1] / float(minimum)),
            _verdict(self.estimate.b, b, b[1] * self.to_bytes / float(maximum)),
        )

    def to_line(self, verdicts: tuple[Verdict, Verdict]) -> LineFit:
        """Return the domain's line, in ns per byte."""
        found, (a, b) = self.estimate, self.intervals()
        return LineFit(
            overhead_us=found.a,
            ns_per_byte=found.b * 1000.0,
            overhead_std_error_us=found.errors[0],
            ns_per_byte_std_error=found.errors[1] * 1000.0,
            correlation=found.correlation,
            overhead_us_interval=a,
            ns_per_byte_interval=(b[0] * 1000.0, b[1] * 1000.0),
            overhead_verdict=verdicts[0],
            ns_per_byte_verdict=verdicts[1],
            from_bytes=self.from_bytes,
            to_bytes=self.to_bytes,
            up_to_bytes=self.up_to_bytes,
            num_samples=self.num_samples,
            clipped=_FIELDS[found.clipped],
        )


def _verdict(value: float, interval: tuple[float, float], share: float) -> Verdict:
    low, high = interval
    if share <= _NEGLIGIBLE or high <= 0.0:
        return Verdict.SUPPORTED
    if low <= 0.0:
        return Verdict.UNSUPPORTED
    return Verdict.SUPPORTED if high - low <= value else Verdict.WEAK
