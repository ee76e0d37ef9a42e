"""What POST /fit answers, the `fit` of an optimisation, and the plot of a fit as data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import BeforeValidator, Field

from app.questions.fits import FittedTrace, SavedFit
from app.questions.question import GivenFit
from app.schemas.base import (
    Bytes,
    NoticeOut,
    Output,
    ProfileRevisionOut,
    Whole,
    notices_out,
    same_named,
    whole,
)
from app.schemas.overlap import OverlapOut
from domain.fit import AggregateFit, FitMethod, StageFit, TraceFit, Verdict
from domain.fit_plot import FitPlot, PlotRole, SignaturePlot, StagePlot
from domain.loggp import Estimate, LogGPFit, LogGPParameters
from domain.measurement import TraceKind
from domain.pipeline import MAX_MESSAGE_BYTES, MAX_STAGES
from models.records import FitRecord, FitRequest

Count = Annotated[int, Field(ge=0), BeforeValidator(whole)]
NotNegative = Annotated[float, Field(ge=0.0)]
MeasuredBytes = Annotated[
    int, Field(ge=0, le=MAX_MESSAGE_BYTES, description="whole bytes"), BeforeValidator(whole)
]
MAX_ESTIMATED = 1e30  # the square of every cost that a stage may have, and room
# Of estimates that may come out negative, and of their variances.
Estimated = Annotated[float, Field(ge=-MAX_ESTIMATED, le=MAX_ESTIMATED)]


@dataclass(frozen=True)
class PlotPointsOut(Output):
    """Samples by column, ascending by size and then by time.

    `relative_residual` is (time - fitted) / fitted, null where the fitted time is 0.
    """

    message_bytes: tuple[Whole, ...]
    time_us: tuple[float, ...]
    relative_residual: tuple[float | None, ...]
    is_outlier: tuple[bool, ...]
    is_used: tuple[bool, ...]


@dataclass(frozen=True)
class CurvePieceOut(Output):
    """The line of one fit range, sampled by column, with the 95 % band of the mean time."""

    message_bytes: tuple[float, ...]
    time_us: tuple[float, ...]
    low_us: tuple[float, ...]
    high_us: tuple[float, ...]
    up_to_bytes: Whole | None


@dataclass(frozen=True)
class StagePlotOut(Output):
    """One stage: at most 2000 of its `num_samples`, or medians where `shows_medians`."""

    name: str
    role: PlotRole
    num_samples: Whole
    shows_medians: bool
    points: PlotPointsOut
    pieces: tuple[CurvePieceOut, ...]

    @classmethod
    def of(cls, stage: StagePlot) -> StagePlotOut:
        """Return the plot of a stage as it is sent."""
        return cls(
            stage.name,
            stage.role,
            stage.num_samples,
            stage.shows_medians,
            same_named(PlotPointsOut, stage.points),
            tuple(same_named(CurvePieceOut, piece) for piece in stage.pieces),
        )


@dataclass(frozen=True)
class SignatureCurveOut(Output):
    """Mean cost of one of `bursts` messages, at so much computation between them."""

    computation_us: float
    bursts: tuple[Whole, ...]
    cost_us: tuple[float, ...]


@dataclass(frozen=True)
class SignaturePlotOut(Output):
    """The signature of an end point at one message size."""

    message_bytes: Whole
    curves: tuple[SignatureCurveOut, ...]

    @classmethod
    def of(cls, signature: SignaturePlot) -> SignaturePlotOut:
        """Return a signature as it is sent."""
        curves = tuple(same_named(SignatureCurveOut, curve) for curve in signature.curves)
        return cls(signature.message_bytes, curves)


@dataclass(frozen=True)
class FitPlotOut(Output):
    """All that a plot of a fit shows; what was estimated is in the fit itself."""

    stages: tuple[StagePlotOut, ...]
    signatures: tuple[SignaturePlotOut, ...]

    @classmethod
    def of(cls, plot: FitPlot) -> FitPlotOut:
        """Return the plot of a fit as it is sent."""
        return cls(
            tuple(map(StagePlotOut.of, plot.stages)),
            tuple(map(SignaturePlotOut.of, plot.signatures)),
        )


@dataclass(frozen=True)
class LineFitOut(Output):
    """A fitted line over one range of fragment sizes; intervals are 95 %, [low, high].

    `free_overhead_us` and `free_ns_per_byte` are the estimates before one that came out negative
    was set to 0; `covariance` is [variance of the former in µs², covariance in µs·ns per byte,
    variance of the latter in (ns per byte)²], deviations between sizes included (not by the method
    `ordinary`), known from so many `degrees_of_freedom`; all null in fits that earlier versions
    stored.
    """

    up_to_bytes: Bytes | None
    from_bytes: MeasuredBytes
    to_bytes: MeasuredBytes
    overhead_us: NotNegative
    ns_per_byte: NotNegative
    overhead_us_interval: tuple[NotNegative, NotNegative]
    ns_per_byte_interval: tuple[NotNegative, NotNegative]
    overhead_std_error_us: NotNegative
    ns_per_byte_std_error: NotNegative
    correlation: float
    overhead_verdict: Verdict
    ns_per_byte_verdict: Verdict
    num_samples: Count
    clipped: tuple[str, ...]
    up_to_bytes_interval: tuple[Count, Count] | None = None
    free_overhead_us: Estimated | None = None
    free_ns_per_byte: Estimated | None = None
    covariance: tuple[Estimated, Estimated, Estimated] | None = None
    degrees_of_freedom: NotNegative | None = None


@dataclass(frozen=True)
class SizeFitOut(Output):
    """How well the fit holds at one measured size.

    `mean_us` is the mean of the times, each clipped at 4 medians; the errors are standard errors of
    the median and of that mean. All three are null in fits that earlier versions stored.
    """

    message_bytes: MeasuredBytes
    num_samples: Count
    median_us: NotNegative
    fitted_us: NotNegative
    relative_residual: float
    relative_spread: NotNegative
    outliers: Count
    mean_us: NotNegative | None = None
    median_error_us: NotNegative | None = None
    mean_error_us: NotNegative | None = None


@dataclass(frozen=True)
class WholeMessagesOut(Output):
    """Whole messages of one size that were timed in one piece: their median, and the model's."""

    message_bytes: Bytes
    num_samples: Count
    measured_us: NotNegative
    modelled_us: NotNegative


@dataclass(frozen=True)
class StageFitOut(Output):
    """One stage's fit. What is said of a line is null where there are several `ranges`."""

    name: str
    method: FitMethod
    overhead_us: float | None
    ns_per_byte: float | None
    overhead_us_interval: tuple[float, float] | None
    ns_per_byte_interval: tuple[float, float] | None
    ranges: tuple[LineFitOut, ...]
    num_samples: Count
    outliers: Count
    outlier_influence: NotNegative
    relative_residual_std: NotNegative
    residual_std_us: NotNegative
    r_squared: float
    sizes: tuple[SizeFitOut, ...]
    size_deviation: NotNegative | None = None
    misfit: NotNegative | None = None
    common_error: NotNegative = 0.0

    @classmethod
    def of(cls, stage: StageFit) -> StageFitOut:
        """Return a stage's fit as it is sent."""
        line = stage.lines[0] if len(stage.lines) == 1 else None
        return cls(
            name=stage.name,
            method=stage.method,
            overhead_us=line.overhead_us if line else None,
            ns_per_byte=line.ns_per_byte if line else None,
            overhead_us_interval=line.overhead_us_interval if line else None,
            ns_per_byte_interval=line.ns_per_byte_interval if line else None,
            ranges=tuple(same_named(LineFitOut, line) for line in stage.lines),
            num_samples=stage.num_samples,
            outliers=stage.outliers,
            outlier_influence=stage.outlier_influence,
            relative_residual_std=stage.relative_residual_std,
            residual_std_us=stage.residual_std_us,
            r_squared=stage.r_squared,
            sizes=tuple(same_named(SizeFitOut, size) for size in stage.sizes),
            size_deviation=stage.size_deviation,
            misfit=stage.misfit,
            common_error=stage.common_error,
        )


@dataclass(frozen=True)
class FittedPipelineOut(Output):
    """The fitted stages, in order, and the constant delay."""

    stages: Annotated[tuple[StageFitOut, ...], Field(max_length=MAX_STAGES)]
    delay_us: NotNegative

    @classmethod
    def of(cls, fit: TraceFit) -> FittedPipelineOut:
        """Return the stages of a fit as they are sent."""
        return cls(tuple(map(StageFitOut.of, fit.stages)), fit.delay_us)


@dataclass(frozen=True)
class AggregateFitOut(Output):
    """All stages together and the slowest of them; the sums are null where there are ranges."""

    sum_overhead_us: float | None
    sum_ns_per_byte: float | None
    sum_overhead_us_interval: tuple[float, float] | None
    sum_ns_per_byte_interval: tuple[float, float] | None
    total: StageFitOut
    bottleneck: StageFitOut
    total_is_uncut: bool = False

    @classmethod
    def of(cls, fit: AggregateFit) -> AggregateFitOut:
        """Return what was fitted from outside as it is sent."""
        total = StageFitOut.of(fit.total)
        return cls(
            total.overhead_us,
            total.ns_per_byte,
            total.overhead_us_interval,
            total.ns_per_byte_interval,
            total,
            StageFitOut.of(fit.bottleneck),
            fit.total_is_uncut,
        )


@dataclass(frozen=True)
class EstimateOut(Output):
    """A value with its 95 % interval, [low, high]."""

    value: float
    interval: tuple[float, float]

    @classmethod
    def of(cls, estimate: Estimate | None) -> EstimateOut | None:
        """Return an estimate as it is sent, None where there is none."""
        return cls(estimate.value, estimate.interval) if estimate else None


@dataclass(frozen=True)
class LogGPParametersOut(Output):
    """The parameters at one message size; null where the measurements do not give one."""

    message_bytes: Whole
    send_overhead_us: EstimateOut | None
    receive_overhead_us: EstimateOut | None
    message_gap_us: EstimateOut | None
    wire_latency_us: EstimateOut | None
    round_trip_us: EstimateOut | None

    @classmethod
    def of(cls, parameters: LogGPParameters) -> LogGPParametersOut:
        """Return the parameters of one message size as they are sent."""
        return cls(
            parameters.message_bytes,
            EstimateOut.of(parameters.send_overhead_us),
            EstimateOut.of(parameters.receive_overhead_us),
            EstimateOut.of(parameters.message_gap_us),
            EstimateOut.of(parameters.wire_latency_us),
            EstimateOut.of(parameters.round_trip_us),
        )


@dataclass(frozen=True)
class LogGPFitOut(Output):
    """LogP parameters by message size, and what the pipeline that follows assumes."""

    sizes: tuple[LogGPParametersOut, ...]
    byte_gap_ns: EstimateOut | None
    assumptions: tuple[str, ...]

    @classmethod
    def of(cls, fit: LogGPFit) -> LogGPFitOut:
        """Return the parameters of a fit as they are sent."""
        sizes = tuple(map(LogGPParametersOut.of, fit.sizes))
        return cls(sizes, EstimateOut.of(fit.byte_gap_ns), fit.assumptions)


@dataclass(frozen=True)
class ExcludedSampleOut(Output):
    """A sample that was left out by hand."""

    stage: str
    message_bytes: Whole
    time_us: float


@dataclass(frozen=True)
class FitOut(Output):
    """A fit: what was understood, the stages, and what to beware of.

    `aggregate` is for traces that do not tell the stages apart, `loggp` for signatures of an end
    point; each is null elsewhere. `trace_digests` are the SHA-256 of the files, in their
    order. `excluded` are the samples that were to be left out by hand. `profile` is what the fit
    was saved as with this request; `plot` is what a plot of it shows, where that was asked for.
    `timed_whole` are whole messages that were timed beside the stages. `overlap` is what is known
    of the stages' overlap, null where they are a pipeline. Requests take this document as `fit`.
    """

    kind: TraceKind
    method: FitMethod
    understood: dict[str, str]
    pipeline: FittedPipelineOut
    aggregate: AggregateFitOut | None
    loggp: LogGPFitOut | None
    warnings: tuple[NoticeOut, ...]
    excluded: tuple[ExcludedSampleOut, ...]
    trace_digests: tuple[str, ...]
    fit_id: str | None
    profile: ProfileRevisionOut | None
    plot: FitPlotOut | None = None
    timed_whole: tuple[WholeMessagesOut, ...] = ()
    overlap: OverlapOut | None = None

    @classmethod
    def of(cls, fitted: FittedTrace, saved: SavedFit | None) -> FitOut:
        """Return a fit that was just made; first what it contradicts, where it was stored."""
        fit = fitted.fit
        if saved is not None and saved.contradiction is not None:
            fit = replace(fit, notices=(saved.contradiction.notice(), *fit.notices))
        return cls._of(
            fit,
            excluded=excluded_out(fitted.request),
            trace_digests=fitted.trace_digests,
            fit_id=saved.fit_id if saved else None,
            profile=(
                ProfileRevisionOut(saved.profile.name, saved.profile.current.number)
                if saved
                else None
            ),
            plot=FitPlotOut.of(fitted.plot) if fitted.plot else None,
        )

    @classmethod
    def of_stored(cls, record: FitRecord) -> FitOut:
        """Return a stored fit."""
        request = record.request or FitRequest()
        return cls.of_given(GivenFit(record.fit, record.trace_digests, request, record.id))

    @classmethod
    def of_given(cls, given: GivenFit) -> FitOut:
        """Return a fit that was made before."""
        return cls._of(
            given.fit,
            excluded=excluded_out(given.request),
            trace_digests=given.trace_digests,
            fit_id=given.fit_id,
            profile=None,
            plot=None,
        )

    @classmethod
    def _of(
        cls,
        fit: TraceFit,
        *,
        excluded: tuple[ExcludedSampleOut, ...],
        trace_digests: tuple[str, ...],
        fit_id: str | None,
        profile: ProfileRevisionOut | None,
        plot: FitPlotOut | None,
    ) -> FitOut:
        return cls(
            kind=fit.kind,
            method=fit.method,
            understood=dict(fit.understood),
            pipeline=FittedPipelineOut.of(fit),
            aggregate=AggregateFitOut.of(fit.aggregate) if fit.aggregate else None,
            loggp=LogGPFitOut.of(fit.loggp) if fit.loggp else None,
            warnings=notices_out(fit.notices),
            excluded=excluded,
            trace_digests=trace_digests,
            fit_id=fit_id,
            profile=profile,
            plot=plot,
            timed_whole=tuple(same_named(WholeMessagesOut, one) for one in fit.timed_whole),
            overlap=OverlapOut.of(fit.overlap),
        )


def excluded_out(request: FitRequest) -> tuple[ExcludedSampleOut, ...]:
    """Return what was left out by hand."""
    return tuple(same_named(ExcludedSampleOut, one) for one in request.options.excluded)
