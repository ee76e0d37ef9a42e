"""What the service answers about measurements: fits, their plots, what to measure next.

Intervals are 95 %, (low, high). Times in µs, sizes in whole bytes, per-byte costs in ns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sluice_client.shapes import ExcludedSample


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a user must see: a stable code and a sentence.

    `stage` names the one stage that it is about, if it is about one; `values` are the figures
    behind the sentence by name.
    """

    code: str
    detail: str
    stage: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProfileRevision:
    """A revision of a profile, by name and number."""

    name: str
    revision: int


@dataclass(frozen=True, slots=True)
class FittedLine:
    """A fitted line over one range of fragment sizes."""

    up_to_bytes: int | None
    from_bytes: int
    to_bytes: int
    overhead_us: float
    ns_per_byte: float
    overhead_us_interval: tuple[float, float]
    ns_per_byte_interval: tuple[float, float]
    overhead_std_error_us: float
    ns_per_byte_std_error: float
    correlation: float
    overhead_verdict: str
    ns_per_byte_verdict: str
    num_samples: int
    clipped: tuple[str, ...]
    up_to_bytes_interval: tuple[int, int] | None = None
    free_overhead_us: float | None = None
    free_ns_per_byte: float | None = None
    covariance: tuple[float, float, float] | None = None
    degrees_of_freedom: float | None = None


@dataclass(frozen=True, slots=True)
class FittedSize:
    """How well a fit holds at one measured size.

    `mean_us` is the mean of the times, each clipped at 4 medians; the errors are standard errors of
    the median and of that mean. All three are None in fits that earlier versions stored.
    """

    message_bytes: int
    num_samples: int
    median_us: float
    fitted_us: float
    relative_residual: float
    relative_spread: float
    outliers: int
    mean_us: float | None = None
    median_error_us: float | None = None
    mean_error_us: float | None = None


@dataclass(frozen=True, slots=True)
class FittedStage:
    """One stage's fit. What is said of a line is None where there are several `ranges`."""

    name: str
    method: str
    overhead_us: float | None
    ns_per_byte: float | None
    overhead_us_interval: tuple[float, float] | None
    ns_per_byte_interval: tuple[float, float] | None
    ranges: tuple[FittedLine, ...]
    num_samples: int
    outliers: int
    outlier_influence: float
    relative_residual_std: float
    residual_std_us: float
    r_squared: float
    sizes: tuple[FittedSize, ...]
    size_deviation: float | None = None
    misfit: float | None = None
    common_error: float = 0.0


@dataclass(frozen=True, slots=True)
class WholeMessages:
    """Whole messages of one size that were timed in one piece: their median, and the model's."""

    message_bytes: int
    num_samples: int
    measured_us: float
    modelled_us: float


@dataclass(frozen=True, slots=True)
class FittedPipeline:
    """The fitted stages, in order, and the constant delay."""

    stages: tuple[FittedStage, ...]
    delay_us: float


@dataclass(frozen=True, slots=True)
class FittedAggregate:
    """All stages together and the slowest of them; the sums are None where there are ranges."""

    sum_overhead_us: float | None
    sum_ns_per_byte: float | None
    sum_overhead_us_interval: tuple[float, float] | None
    sum_ns_per_byte_interval: tuple[float, float] | None
    total: FittedStage
    bottleneck: FittedStage
    total_is_uncut: bool = False


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval."""

    value: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class LogGPParameters:
    """The parameters at one message size; None where the measurements do not give one."""

    message_bytes: int
    send_overhead_us: Estimate | None
    receive_overhead_us: Estimate | None
    message_gap_us: Estimate | None
    wire_latency_us: Estimate | None
    round_trip_us: Estimate | None


@dataclass(frozen=True, slots=True)
class LogGPFit:
    """LogP parameters by message size, and what the pipeline that follows assumes."""

    sizes: tuple[LogGPParameters, ...]
    byte_gap_ns: Estimate | None
    assumptions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlotPoints:
    """Samples by column; a residual is None where the fitted time is 0."""

    message_bytes: tuple[int, ...]
    time_us: tuple[float, ...]
    relative_residual: tuple[float | None, ...]
    is_outlier: tuple[bool, ...]
    is_used: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class CurvePiece:
    """The line of one fit range, sampled by column, with the band of the mean time."""

    message_bytes: tuple[float, ...]
    time_us: tuple[float, ...]
    low_us: tuple[float, ...]
    high_us: tuple[float, ...]
    up_to_bytes: int | None


@dataclass(frozen=True, slots=True)
class StagePlot:
    """One stage's samples, or their medians where `shows_medians`, and its lines."""

    name: str
    role: str
    num_samples: int
    shows_medians: bool
    points: PlotPoints
    pieces: tuple[CurvePiece, ...]


@dataclass(frozen=True, slots=True)
class SignatureCurve:
    """Mean cost of one of `bursts` messages, at so much computation between them."""

    computation_us: float
    bursts: tuple[int, ...]
    cost_us: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SignaturePlot:
    """The signature of an end point at one message size."""

    message_bytes: int
    curves: tuple[SignatureCurve, ...]


@dataclass(frozen=True, slots=True)
class FitPlot:
    """All that a plot of a fit shows."""

    stages: tuple[StagePlot, ...]
    signatures: tuple[SignaturePlot, ...]


@dataclass(frozen=True, slots=True)
class TracedWindow:
    """At most so many fragments between the start of a stage and the end of another."""

    first: str
    last: str
    fragments: int
    return_us: float


@dataclass(frozen=True, slots=True)
class SharedProcessors:
    """Stages that compute on so many processors."""

    stages: tuple[str, ...]
    processors: float


@dataclass(frozen=True, slots=True)
class PlaceFlag:
    """The first `fragments` of a message take `ratio` times what later ones do."""

    stage: str
    ratio: float
    fragments: int
    more: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a structure was found by; shares are of 1."""

    messages: int
    fragments: int
    overlap: float
    late: float
    left: float
    replay_error: float


@dataclass(frozen=True, slots=True)
class Structure:
    """What begins of the stages show: `kind`, in words as `sentence`, and its numbers."""

    kind: str
    sentence: str
    stages: tuple[str, ...]
    evidence: Evidence
    lanes: tuple[int, ...]
    windows: tuple[TracedWindow, ...]
    turns: tuple[tuple[str, ...], ...]
    shared: SharedProcessors | None
    return_us: float
    places: tuple[PlaceFlag, ...]
    handing_over_us: tuple[float, ...]
    queue_us: tuple[float, ...]
    has_busy_time: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Overlap:
    """What is known of the overlap of a fit's stages; `structure` is what begins show."""

    structure: Structure | None
    is_bare: bool
    several_at_once: bool | None


@dataclass(frozen=True, slots=True)
class Fit:
    """A fit: what was understood, the stages, and what to beware of."""

    kind: str
    method: str
    understood: Mapping[str, str]
    pipeline: FittedPipeline
    aggregate: FittedAggregate | None
    loggp: LogGPFit | None
    warnings: tuple[Notice, ...]
    trace_digests: tuple[str, ...]
    fit_id: str | None
    profile: ProfileRevision | None
    plot: FitPlot | None
    excluded: tuple[ExcludedSample, ...] = ()
    timed_whole: tuple[WholeMessages, ...] = ()
    overlap: Overlap | None = None


@dataclass(frozen=True, slots=True)
class NextMeasurement:
    """One size to measure, how often, and why."""

    message_bytes: int
    what: str
    repetitions: int
    why: str


@dataclass(frozen=True, slots=True)
class Transition:
    """Where one bottleneck takes over from another; `at_bytes` is None at a protocol switch."""

    between_bytes: tuple[int, int]
    at_bytes: int | None


@dataclass(frozen=True, slots=True)
class KnownBottleneck:
    """A line that inter-arrival times lie on."""

    from_bytes: int
    to_bytes: int
    overhead_us: float
    ns_per_byte: float


@dataclass(frozen=True, slots=True)
class MeasurementPlan:
    """What to measure next; `decided` where nothing is, with the reason."""

    decided: bool
    reason: str
    measure: tuple[NextMeasurement, ...]
    transitions: tuple[Transition, ...]
    bottlenecks: tuple[KnownBottleneck, ...]
