"""What a plot of a fit shows, in data coordinates: bytes, µs, and residuals relative to the fit.

Drawing is somebody else's business: a page takes these as JSON, the command line as SVG.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from domain.fit import StageFit


class PlotRole(StrEnum):
    """What the times of a plot are.

    stage       a stage's own time, or all that is known from outside
    total       the latency of unpipelined messages: all stages together
    bottleneck  the time between arrivals of back-to-back messages: the slowest stage
    """

    STAGE = "stage"
    TOTAL = "total"
    BOTTLENECK = "bottleneck"


@dataclass(frozen=True, slots=True)
class PlotPoints:
    """Samples by column, ascending by size and then by time.

    `relative_residual` is (time - fitted) / fitted, None where the fitted time is 0. An outlier was
    weighted down to next to nothing. What is not used lies outside the sizes fitted to.
    """

    message_bytes: tuple[int, ...]
    time_us: tuple[float, ...]
    relative_residual: tuple[float | None, ...]
    is_outlier: tuple[bool, ...]
    is_used: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.message_bytes)


@dataclass(frozen=True, slots=True)
class CurvePiece:
    """The fitted line of one range, sampled by column, sizes ascending.

    It reaches from the range's least to its greatest size, as far as messages were measured, both
    included. `low_us` and `high_us` are the 95 % confidence band of the mean time. `up_to_bytes` is
    where the range ends, None for the last one.
    """

    message_bytes: tuple[float, ...]
    time_us: tuple[float, ...]
    low_us: tuple[float, ...]
    high_us: tuple[float, ...]
    up_to_bytes: int | None


@dataclass(frozen=True, slots=True)
class StagePlot:
    """Samples of one fitted stage, and its line or lines.

    `points` are at most a few thousand of `num_samples`. Where they are not single samples but the
    medians of sizes, because nothing else is at hand, `shows_medians` says so.
    """

    fit: StageFit
    role: PlotRole
    points: PlotPoints
    pieces: tuple[CurvePiece, ...]
    num_samples: int
    shows_medians: bool = False

    @property
    def name(self) -> str:
        """The stage's name."""
        return self.fit.name


@dataclass(frozen=True, slots=True)
class SignatureCurve:
    """Mean cost (µs) of one of `bursts` messages, at so much computation between them."""

    computation_us: float
    bursts: tuple[int, ...]
    cost_us: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SignaturePlot:
    """The signature of an end point at one message size (Culler96 sec. 3), by computation."""

    message_bytes: int
    curves: tuple[SignatureCurve, ...]


@dataclass(frozen=True, slots=True)
class FitPlot:
    """All that a plot of a fit shows: stages, or total and bottleneck, and signatures."""

    stages: tuple[StagePlot, ...]
    signatures: tuple[SignaturePlot, ...] = ()
