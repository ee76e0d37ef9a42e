"""One fit range as it is being fitted: its samples, its line, what they support.

Notation  a = Wang's g in µs; b in µs per byte, 1/1000 of Wang's G in ns per byte.
Traps     an estimate next to 0 whose interval ends next to 0 is known well: what counts is the
          share of a fitted time that it may be, where that share is largest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from domain.fit import LineFit, Verdict
from domain.units import format_bytes
from fitting.estimate import Estimate
from fitting.line import TINY, Floats
from fitting.samples import SortedSamples

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
    end_interval: tuple[int, int] | None = None

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
            up_to_bytes_interval=self.end_interval,
            free_overhead_us=found.free[0],
            free_ns_per_byte=found.free[1] * 1000.0,
            covariance=(
                float(found.free_covariance[0, 0]),
                float(found.free_covariance[0, 1]) * 1e3,
                float(found.free_covariance[1, 1]) * 1e6,
            ),
            degrees_of_freedom=found.degrees_of_freedom,
        )


def _verdict(value: float, interval: tuple[float, float], share: float) -> Verdict:
    low, high = interval
    if share <= _NEGLIGIBLE or high <= 0.0:
        return Verdict.SUPPORTED
    if low <= 0.0:
        return Verdict.UNSUPPORTED
    return Verdict.SUPPORTED if high - low <= value else Verdict.WEAK
