"""A fit as it is sent, and as requests take it: stages, how well they hold, what its plot shows."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from .declare import Input, Output, asked, output, rule, sent
from .fit_options import Excluded, FitOptionsIn, Method
from .limits import MAX_ESTIMATED, MAX_STAGES
from .measurements import MeasurementsIn
from .notices import NoticeOut
from .overlap import OverlapOut
from .profile import ProfileRevisionOut
from .rules import Bytes, Count, MeasuredBytes, NotNegative, ProfileName, Whole

Measured: TypeAlias = Literal["direct", "indirect", "end_to_end", "logp"]
Supported: TypeAlias = Literal["supported", "weak", "unsupported"]
Role: TypeAlias = Literal["stage", "total", "bottleneck"]
KINDS = (
    ("direct", "times of every stage"),
    ("indirect", "latencies and inter-arrival times"),
    ("end_to_end", "latencies of whole messages"),
    ("logp", "LogP signatures"),
)
KIND_HELP = "what was measured: direct, indirect, end_to_end, logp"
SAVE_AS_HELP = "store traces, fit and stages"
# Of estimates that may come out negative, and of their variances.
Estimated = Annotated[float, rule(ge=-MAX_ESTIMATED, le=MAX_ESTIMATED)]


class FitIn(Input):
    """One file or several, fitted together, and samples to leave out.

    How else to fit them is said in the query.
    """

    measurements: MeasurementsIn = asked("the file to fit, or several that are fitted together")
    excluded: Excluded = asked("samples that are left out by hand", default=())


class FitQueryIn(FitOptionsIn):
    """What else is asked of a fit, in its query: how to fit, what is stored, and what is drawn.

    There `group` has the steps of each group as `name:combine:step,step`, and `exclude` each sample
    as `bytes:µs:stage`.
    """

    kind: Measured | None = asked(
        "what was measured; absent: as the text of the file says",
        help=KIND_HELP,
        default=None,
        option="--kind",
        metavar="KIND",
        choices=KINDS,
    )
    message_bytes: Bytes | None = asked(
        "size of the message whose schedules the shape narrowed is for, bytes", default=None
    )
    save_as: ProfileName | None = asked(
        "the profile that traces, fit and stages are stored as",
        help=SAVE_AS_HELP,
        default=None,
        option="--save-as",
        metavar="PROFILE",
    )
    plot: bool = asked("whether the answer has what a plot of the fit shows", default=False)


@output
class PlotPointsOut(Output):
    """Samples by column, ascending by size and then by time.

    `relative_residual` is (time - fitted) / fitted, null where the fitted time is 0.
    """

    message_bytes: tuple[Whole, ...] = sent("sizes of the messages, bytes, ascending")
    time_us: tuple[float, ...] = sent("the times that were measured, µs")
    relative_residual: tuple[float | None, ...] = sent(
        "(time - fitted) / fitted of each; null where the fitted time is 0"
    )
    is_outlier: tuple[bool, ...] = sent("whether each is an outlier")
    is_used: tuple[bool, ...] = sent("whether each was used by the fit")


@output
class CurvePieceOut(Output):
    """The line of one fit range, sampled by column, with the 95 % band of the mean time."""

    message_bytes: tuple[float, ...] = sent("sizes at which the line is drawn, bytes")
    time_us: tuple[float, ...] = sent("the fitted time at each, µs")
    low_us: tuple[float, ...] = sent("lower end of the 95 % band of the mean time, µs")
    high_us: tuple[float, ...] = sent("upper end of that band, µs")
    up_to_bytes: Whole | None = sent(
        "the greatest size that the line covers, bytes; null: without end"
    )


@output
class StagePlotOut(Output):
    """One stage: at most 2000 of its `num_samples`, or medians where `shows_medians`."""

    name: str = sent("what the stage is called")
    role: Role = sent("stage, total of all stages, or bottleneck of them")
    num_samples: Whole = sent("how many samples the stage has")
    shows_medians: bool = sent(
        "whether the points are medians of each size, since there are too many samples"
    )
    points: PlotPointsOut = sent("the points of the plot")
    pieces: tuple[CurvePieceOut, ...] = sent("the fitted lines")


@output
class SignatureCurveOut(Output):
    """Mean cost of one of `bursts` messages, at so much computation between them."""

    computation_us: float = sent("computation between two messages, µs")
    bursts: tuple[Whole, ...] = sent("numbers of messages sent in a row")
    cost_us: tuple[float, ...] = sent("mean cost of one message of each burst, µs")


@output
class SignaturePlotOut(Output):
    """The signature of an end point at one message size."""

    message_bytes: Whole = sent("size of the messages, bytes")
    curves: tuple[SignatureCurveOut, ...] = sent("a curve for each computation between messages")


@output
class FitPlotOut(Output):
    """All that a plot of a fit shows; what was estimated is in the fit itself."""

    stages: tuple[StagePlotOut, ...] = sent("what is drawn of each stage")
    signatures: tuple[SignaturePlotOut, ...] = sent("signatures of an end point, by message size")


@output
class LineFitOut(Output):
    """A fitted line over one range of fragment sizes; intervals are 95 %, [low, high].

    `free_overhead_us` and `free_ns_per_byte` are the estimates before one that came out negative
    was set to 0; `covariance` is [variance of the former in µs², covariance in µs·ns per byte,
    variance of the latter in (ns per byte)²], deviations between sizes included (not by the method
    `ordinary`), known from so many `degrees_of_freedom`; all null in fits that earlier versions
    stored.
    """

    up_to_bytes: Bytes | None = sent(
        "the greatest fragment that the line covers, bytes, inclusive; null: without end"
    )
    from_bytes: MeasuredBytes = sent("the smallest size that was measured there, bytes")
    to_bytes: MeasuredBytes = sent("the largest size that was measured there, bytes")
    overhead_us: NotNegative = sent("µs per fragment")
    ns_per_byte: NotNegative = sent("ns per byte")
    overhead_us_interval: tuple[NotNegative, NotNegative] = sent(
        "95 % interval of the overhead, µs"
    )
    ns_per_byte_interval: tuple[NotNegative, NotNegative] = sent(
        "95 % interval of the cost, ns per byte"
    )
    overhead_std_error_us: NotNegative = sent("standard error of the overhead, µs")
    ns_per_byte_std_error: NotNegative = sent("standard error of the cost, ns per byte")
    correlation: float = sent("correlation of both estimates")
    overhead_verdict: Supported = sent("whether the samples support the overhead")
    ns_per_byte_verdict: Supported = sent("whether the samples support the cost of a byte")
    num_samples: Count = sent("samples of this range")
    clipped: tuple[str, ...] = sent("which estimates came out negative and were set to 0")
    up_to_bytes_interval: tuple[Count, Count] | None = sent(
        "95 % interval of that end, bytes; null: the range has none, or it is not known",
        default=None,
    )
    free_overhead_us: Estimated | None = sent(
        "the overhead before a negative one was set to 0, µs", default=None
    )
    free_ns_per_byte: Estimated | None = sent(
        "the cost before a negative one was set to 0, ns per byte", default=None
    )
    covariance: tuple[Estimated, Estimated, Estimated] | None = sent(
        "variance of free_overhead_us in µs², covariance in µs·ns per byte, variance of "
        "free_ns_per_byte in (ns per byte)²; null in fits that earlier versions stored",
        default=None,
    )
    degrees_of_freedom: NotNegative | None = sent(
        "of the covariance; null in fits that earlier versions stored", default=None
    )


@output
class SizeFitOut(Output):
    """How well the fit holds at one measured size.

    `mean_us` is the mean of the times, each clipped at 4 medians; the errors are standard errors of
    the median and of that mean. All three are null in fits that earlier versions stored.
    """

    message_bytes: MeasuredBytes = sent("the size that was measured, bytes")
    num_samples: Count = sent("samples of this size")
    median_us: NotNegative = sent("their median, µs")
    fitted_us: NotNegative = sent("what the line says, µs")
    relative_residual: float = sent("(median - fitted) / fitted")
    relative_spread: NotNegative = sent(
        "robust standard deviation of single times, as a share of their median"
    )
    outliers: Count = sent("how many of them were weighted down to next to nothing")
    mean_us: NotNegative | None = sent(
        "mean of the times, each clipped at 4 medians, µs; null in fits of earlier versions",
        default=None,
    )
    median_error_us: NotNegative | None = sent(
        "standard error of the median, µs; null in fits of earlier versions", default=None
    )
    mean_error_us: NotNegative | None = sent(
        "standard error of that mean, µs; null in fits of earlier versions", default=None
    )


@output
class WholeMessagesOut(Output):
    """Whole messages of one size that were timed in one piece: their median, and the model's."""

    message_bytes: Bytes = sent("size of the messages, bytes")
    num_samples: Count = sent("how many were timed")
    measured_us: NotNegative = sent("median of their times, µs")
    modelled_us: NotNegative = sent("what the fitted model says, µs")


@output
class StageFitOut(Output):
    """One stage's fit. What is said of a line is null where there are several `ranges`."""

    name: str = sent("what the stage is called")
    method: Method = sent("how the lines were fitted")
    overhead_us: float | None = sent("µs per fragment; null: there are several ranges")
    ns_per_byte: float | None = sent("ns per byte; null: there are several ranges")
    overhead_us_interval: tuple[float, float] | None = sent(
        "95 % interval of the overhead, µs; null: there are several ranges"
    )
    ns_per_byte_interval: tuple[float, float] | None = sent(
        "95 % interval of the cost, ns per byte; null: there are several ranges"
    )
    ranges: tuple[LineFitOut, ...] = sent("a line for each range of fragment sizes, ascending")
    num_samples: Count = sent("samples of the stage")
    outliers: Count = sent("how many of them were weighted down to next to nothing")
    outlier_influence: NotNegative = sent(
        "by how much the fitted times would move at most if no sample were weighted down, as a "
        "share"
    )
    relative_residual_std: NotNegative = sent(
        "robust standard deviation of the relative residuals of single times"
    )
    residual_std_us: NotNegative = sent("standard deviation of the residuals, µs")
    r_squared: float = sent("share of the variance of the times that the lines explain")
    sizes: tuple[SizeFitOut, ...] = sent("how well the fit holds at each measured size")
    size_deviation: NotNegative | None = sent(
        "relative deviation between sizes beyond the noise of single times; null: too few sizes "
        "tell it",
        default=None,
    )
    misfit: NotNegative | None = sent(
        "95th percentile of the relative residuals of sizes, without their signs; null in fits "
        "of earlier versions",
        default=None,
    )
    common_error: NotNegative = sent(
        "relative standard error that the times of all sizes have in common", default=0.0
    )


@output
class FittedPipelineOut(Output):
    """The fitted stages, in order, and the constant delay."""

    stages: Annotated[tuple[StageFitOut, ...], rule(max_length=MAX_STAGES)] = sent(
        "the fitted stages, in their order"
    )
    delay_us: NotNegative = sent("a constant delay that occupies no stage, µs")


@output
class AggregateFitOut(Output):
    """All stages together and the slowest of them; the sums are null where there are ranges."""

    sum_overhead_us: float | None = sent(
        "overheads of all stages together, µs per fragment; null: there are ranges"
    )
    sum_ns_per_byte: float | None = sent(
        "costs of all stages together, ns per byte; null: there are ranges"
    )
    sum_overhead_us_interval: tuple[float, float] | None = sent(
        "95 % interval of the overheads, µs; null: there are ranges"
    )
    sum_ns_per_byte_interval: tuple[float, float] | None = sent(
        "95 % interval of the costs, ns per byte; null: there are ranges"
    )
    total: StageFitOut = sent("all stages together")
    bottleneck: StageFitOut = sent("the slowest stage")
    total_is_uncut: bool = sent(
        "whether nothing cut the messages whose latencies are the total", default=False
    )


@output
class EstimateOut(Output):
    """A value with its 95 % interval, [low, high]."""

    value: float = sent("the estimate, in the unit of the field that has it")
    interval: tuple[float, float] = sent("its 95 % interval, [low, high]")


@output
class LogGPParametersOut(Output):
    """The parameters at one message size; null where the measurements do not give one."""

    message_bytes: Whole = sent("size of the messages, bytes")
    send_overhead_us: EstimateOut | None = sent(
        "o of the sender, µs; null: the measurements do not give it"
    )
    receive_overhead_us: EstimateOut | None = sent(
        "o of the receiver, µs; null: the measurements do not give it"
    )
    message_gap_us: EstimateOut | None = sent(
        "g, between two messages, µs; null: the measurements do not give it"
    )
    wire_latency_us: EstimateOut | None = sent("L, µs; null: the measurements do not give it")
    round_trip_us: EstimateOut | None = sent(
        "time of a round trip, µs; null: the measurements do not give it"
    )


@output
class LogGPFitOut(Output):
    """LogP parameters by message size, and what the pipeline that follows assumes."""

    sizes: tuple[LogGPParametersOut, ...] = sent("the parameters, by message size")
    byte_gap_ns: EstimateOut | None = sent("G, ns per byte; null: the measurements do not give it")
    assumptions: tuple[str, ...] = sent("what the pipeline that follows assumes")


@output
class ExcludedSampleOut(Output):
    """A sample that was left out by hand."""

    stage: str = sent("the stage that was measured, as the trace names it")
    message_bytes: Whole = sent("size of the message, bytes")
    time_us: float = sent("its time, µs")


@output
class FitOut(Output):
    """A fit: what was understood, the stages, and what to beware of.

    `aggregate` is for traces that do not tell the stages apart, `loggp` for signatures of an end
    point; each is null elsewhere. `trace_digests` are the SHA-256 of the files, in their
    order. `excluded` are the samples that were to be left out by hand. `profile` is what the fit
    was saved as with this request; `plot` is what a plot of it shows, where that was asked for.
    `timed_whole` are whole messages that were timed beside the stages. `overlap` is what is known
    of the stages' overlap, null where they are a pipeline. Requests take this document as `fit`.
    """

    kind: Measured = sent("what was measured")
    method: Method = sent("how the lines were fitted")
    understood: dict[str, str] = sent("how the file was understood, by name")
    pipeline: FittedPipelineOut = sent("the fitted stages; none beside an aggregate")
    aggregate: AggregateFitOut | None = sent(
        "of traces that do not tell the stages apart: all together and the slowest; null elsewhere"
    )
    loggp: LogGPFitOut | None = sent(
        "of signatures of an end point: the parameters of LogGP; null elsewhere"
    )
    warnings: tuple[NoticeOut, ...] = sent("what to beware of")
    excluded: tuple[ExcludedSampleOut, ...] = sent("the samples that were to be left out by hand")
    trace_digests: tuple[str, ...] = sent("SHA-256 of the files, in their order")
    fit_id: str | None = sent("the identifier under which the fit is stored; null: it is not")
    profile: ProfileRevisionOut | None = sent(
        "what the fit was saved as with this request; null: it was not"
    )
    plot: FitPlotOut | None = sent(
        "what a plot of it shows; null: that was not asked for", default=None
    )
    timed_whole: tuple[WholeMessagesOut, ...] = sent(
        "whole messages that were timed beside the stages", default=()
    )
    overlap: OverlapOut | None = sent(
        "what is known of the stages' overlap; null: they are a pipeline", default=None
    )

    @property
    def fitted_stages(self) -> tuple[StageFitOut, ...]:
        """The stages, or all together and the slowest of an aggregate."""
        aggregate = self.aggregate
        if aggregate is None:
            return self.pipeline.stages
        return (aggregate.total, aggregate.bottleneck)
