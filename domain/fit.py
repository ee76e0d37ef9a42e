"""What is fitted from measurements: estimates with their uncertainty, and how far to trust them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any

from contract.limits import DEFAULT_MAX_RANGES, MAX_EXCLUDED, MAX_NAME_LENGTH, MAX_STAGES
from domain.aggregate import Aggregate, lower_of
from domain.conditions import NO_CHOICE, RowChoice
from domain.derived import Derived
from domain.errors import InconsistentInput, InvalidInput, MeasurementMissing
from domain.loggp import LogGPFit
from domain.measurement import TraceKind
from domain.model import CostModel
from domain.pipeline import FitRange, Pipeline, Stage
from domain.solution import Notice
from domain.structure import KnownOverlap
from domain.table_columns import parse_columns
from domain.traced_events import TracedEvents
from domain.units import format_bytes

CONFIDENCE = 0.95
END_TO_END_STAGE = "end to end"
BOTTLENECK_STAGE = "bottleneck"
BEYOND_MEASURED = "beyond_measured_sizes"  # the code of the notice that comes before an answer
MAY_BE_PIPELINED = "total_may_be_pipelined"  # that of what is taken for granted of a total


class FitMethod(StrEnum):
    """How a line is estimated, by the names clients use.

    robust    relative residuals, outliers weighted down, both parameters >= 0 (the default)
    weighted  least squares on relative residuals: weights 1/time^2, both parameters >= 0
    ordinary  least squares in µs, negative estimates clipped to 0
    """

    ROBUST = "robust"
    WEIGHTED = "weighted"
    ORDINARY = "ordinary"


class FitShape(StrEnum):
    """How many lines a stage gets.

    ranges    as many fit ranges as the data support (the default)
    line      one line over all sizes
    narrowed  one line over the fragment sizes that the schedules use (Wang98 sec. 5.2), which
              needs a message size
    """

    RANGES = "ranges"
    LINE = "line"
    NARROWED = "narrowed"


class Combine(StrEnum):
    """How steps that form one abstract stage add up (theory.md sec. 7).

    overlap   they run at the same time: the larger counts
    sequence  one processor runs them one after the other: the sum counts
    """

    OVERLAP = "overlap"
    SEQUENCE = "sequence"


@dataclass(frozen=True, slots=True)
class StepGroup:
    """Measured steps, two or more and neighbours in the trace, that form one abstract stage."""

    name: str
    steps: tuple[str, ...]
    combine: Combine


@dataclass(frozen=True, slots=True)
class ExcludedSample:
    """A sample that is left out by hand: every one of this stage with this size and this time.

    `stage` is the name of the fitted stage, "total" or "bottleneck" of an aggregate.
    """

    stage: str
    message_bytes: int
    time_us: float


@dataclass(frozen=True, slots=True)
class ComposedStage:
    """A stage that was measured by itself, in so many files.

    `step` is the column to take of files with several steps. Neighbours of one `processor` work one
    after the other there and count as one stage. `columns` are those of its tables, `choice` which
    of their rows are taken. Raises InvalidInput.
    """

    name: str
    files: int = 1
    step: str | None = None
    processor: str | None = None
    columns: str | None = None
    choice: RowChoice = NO_CHOICE

    def __post_init__(self) -> None:
        for text in (self.name, self.step, self.processor):
            if text is not None and not 1 <= len(text) <= MAX_NAME_LENGTH:
                raise InvalidInput(
                    f"expected names of 1 to {MAX_NAME_LENGTH} characters", field="stages"
                )
        if self.files < 1:
            raise InvalidInput(f"expected a file or more of {self.name}", field="stages")
        if self.columns is not None:
            parse_columns(self.columns)


@dataclass(frozen=True, slots=True)
class FitOptions:
    """How to fit. `groups` are for direct traces. `as_stage` says that times of whole messages are
    those of one stage, and names it. `total_is_uncut` says that nothing cut the messages whose
    latencies they hold. `composed` are the stages of a pipeline, each of files of its
    own, in their order. `columns` says which columns of tables hold what (`domain.table_columns`),
    `choice` which rows of files are taken, and which test they are of (`domain.conditions`).
    `several_at_once` says whether a stage handles several fragments at once, and `stages_overlap`
    whether stages work on different fragments at the same time; None where nobody has said. Raises
    InvalidInput.
    """

    method: FitMethod = FitMethod.ROBUST
    shape: FitShape = FitShape.RANGES
    max_ranges: int = DEFAULT_MAX_RANGES
    groups: tuple[StepGroup, ...] = ()
    excluded: tuple[ExcludedSample, ...] = ()
    as_stage: str | None = None
    composed: tuple[ComposedStage, ...] = ()
    columns: str | None = None
    total_is_uncut: bool = False
    several_at_once: bool | None = None
    stages_overlap: bool | None = None
    choice: RowChoice = NO_CHOICE

    def __post_init__(self) -> None:
        if self.columns is not None:
            parse_columns(self.columns)
        if self.several_at_once and self.stages_overlap is False:
            raise InconsistentInput(
                "several fragments at once overlap; expected one of the two",
                field="stages_overlap",
            )
        if self.composed:
            self._check_composed()
        if not 1 <= self.max_ranges <= 16:
            raise InvalidInput("expected 1 <= max_ranges <= 16", field="max_ranges")
        if len(self.excluded) > MAX_EXCLUDED:
            raise InvalidInput(
                f"expected at most {MAX_EXCLUDED} samples left out by hand", field="excluded"
            )
        if self.as_stage is not None and not 1 <= len(self.as_stage) <= MAX_NAME_LENGTH:
            raise InvalidInput(
                f"expected a name of 1 to {MAX_NAME_LENGTH} characters", field="as_stage"
            )

    def columns_of(self, place: int) -> str | None:
        """Return which columns the file at this place, from 0, has; None for other formats."""
        end = 0
        for stage in self.composed:
            end += stage.files
            if place < end:
                return stage.columns
        return self.columns

    def choice_of(self, place: int) -> RowChoice:
        """Return what is said of the rows of the file at this place, from 0."""
        begin = 0
        for stage in self.composed:
            if place < begin + stage.files:
                return stage.choice.of_file(place - begin)
            begin += stage.files
        return self.choice.of_file(place)

    def _check_composed(self) -> None:
        if self.choice != NO_CHOICE:
            raise InconsistentInput(
                "each stage says the runs and conditions of its own files", field="run"
            )
        if self.columns is not None:
            raise InconsistentInput("each stage says the columns of its own files", field="columns")
        names = [stage.name for stage in self.composed]
        if len(set(names)) < len(names):
            raise InconsistentInput("expected different names of stages", field="stages")
        if len(names) > MAX_STAGES:
            raise InvalidInput(f"expected at most {MAX_STAGES} stages", field="stages")
        if self.total_is_uncut:
            raise InconsistentInput("stages have no total", field="total_is_uncut")
        if self.stages_overlap is not None:
            raise InconsistentInput(
                "stages of files of their own overlap, but those of one processor",
                field="stages_overlap",
            )
        if self.groups or self.as_stage is not None:
            field = "groups" if self.groups else "as_stage"
            raise InconsistentInput(
                "stages of files of their own are not joined again", field=field
            )
        if self.shape is FitShape.NARROWED:
            raise InvalidInput("this shape is for measurements of one pipeline", field="shape")


class Verdict(StrEnum):
    """Whether the data support an estimate.

    supported    its interval says something
    weak         it is determined to no better than its own size, or diagnostics speak against it
    unsupported  the data decide nothing about it
    """

    SUPPORTED = "supported"
    WEAK = "weak"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class LineFit:
    """One fitted line over a range of measured sizes; intervals are 95 %, (low, high), >= 0.

    `from_bytes` and `to_bytes` are the least and the greatest measured size it was fitted to;
    `up_to_bytes` is where the range ends, inclusive, None for the last one, and
    `up_to_bytes_interval` the 95 % interval of that end. `correlation` is that
    of the two estimates, -1 to 1. `clipped` names what came out negative and was set to 0.

    `free_overhead_us` and `free_ns_per_byte` are the estimates before that, which may be negative;
    `covariance` holds the variance of the former in µs², their covariance in µs·ns per byte and the
    variance of the latter in (ns per byte)², deviations between sizes included (but for the method
    `ordinary`, which knows the scatter of single times alone), known from so many
    `degrees_of_freedom`. All four are None in fits that earlier versions stored.
    """

    overhead_us: float
    ns_per_byte: float
    overhead_std_error_us: float
    ns_per_byte_std_error: float
    correlation: float
    overhead_us_interval: tuple[float, float]
    ns_per_byte_interval: tuple[float, float]
    overhead_verdict: Verdict
    ns_per_byte_verdict: Verdict
    from_bytes: int
    to_bytes: int
    up_to_bytes: int | None
    num_samples: int
    clipped: tuple[str, ...] = ()
    up_to_bytes_interval: tuple[int, int] | None = None
    free_overhead_us: float | None = None
    free_ns_per_byte: float | None = None
    covariance: tuple[float, float, float] | None = None
    degrees_of_freedom: float | None = None

    def to_range(self) -> FitRange:
        """Return the domain's fit range of this line."""
        return FitRange(self.overhead_us, self.ns_per_byte, self.up_to_bytes)


@dataclass(frozen=True, slots=True)
class SizeFit:
    """How well the fit holds at one measured size (or at a bin of close ones).

    `relative_residual` is (median - fitted) / fitted; `relative_spread` the robust standard
    deviation of single times around the median, relative to it; `outliers` how many were weighted
    down to next to nothing. `mean_us` is the mean of the times, each clipped at 4 medians, and the
    errors are the standard errors of the median and of that mean: what they would scatter by if
    rows were measured anew. All three are None in fits that earlier versions stored.
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
class WholeMessages:
    """Whole messages of one size, sent in one piece: the median of their times, and the model's."""

    message_bytes: int
    num_samples: int
    measured_us: float
    modelled_us: float

    @property
    def misfit(self) -> float:
        """By which share of the model's time the measured one differs from it, at most 1."""
        off_us = abs(self.measured_us - self.modelled_us)
        return min(1.0, off_us / self.modelled_us) if self.modelled_us > 0.0 else 1.0


@dataclass(frozen=True, slots=True)
class StageFit:
    """One stage's fit: a line for each fit range, and how good they are.

    `relative_residual_std` is the robust standard deviation of relative residuals of single times;
    `outlier_influence` by how much the fitted times would move, relative to them, at most, if no
    sample were weighted down (0 without outliers). `size_deviation` is the relative deviation
    between sizes, beyond the noise of single times, None where too few sizes tell it; `misfit` the
    95th percentile of the relative residuals of sizes, without their signs. Both are None in fits
    that earlier versions stored. `common_error` is the relative standard error that the times of
    all sizes have in common, as neighbouring rows of the file are alike.
    """

    name: str
    method: FitMethod
    lines: tuple[LineFit, ...]
    sizes: tuple[SizeFit, ...]
    num_samples: int
    outliers: int
    relative_residual_std: float
    residual_std_us: float
    r_squared: float
    outlier_influence: float = 0.0
    size_deviation: float | None = None
    misfit: float | None = None
    common_error: float = 0.0

    def to_stage(self) -> Stage:
        """Return the stage that this fit describes."""
        return Stage(self.name, tuple(line.to_range() for line in self.lines))

    def ends_between(self) -> tuple[tuple[int, int], ...]:
        """Return the two measured sizes in bytes between which each range's end lies: the last one
        of the left range and the first one of the right.
        """
        return tuple((left.to_bytes, right.from_bytes) for left, right in pairwise(self.lines))


@dataclass(frozen=True, slots=True)
class AggregateFit:
    """All stages together and the slowest of them, as fitted from outside (theory.md sec. 7).

    Each was measured by itself: estimates of the one and of the other are independent, and the
    covariances of both are those of their lines. `total_is_uncut` is as it was said with the fit.
    """

    total: StageFit
    bottleneck: StageFit
    total_is_uncut: bool = False

    def to_aggregate(self) -> Aggregate:
        """Return the cost model that this fit describes.

        No stage takes longer than all together: where the bottleneck was fitted above the total,
        the total counts, so that no uncut message is priced above what it was measured to take.
        """
        total = self.total.to_stage()
        lower = lower_of(self.bottleneck.to_stage(), total)
        return Aggregate(total, lower, total_is_uncut=self.total_is_uncut)


@dataclass(frozen=True)  # no slots: what follows from a fit is kept beside its fields
class TraceFit(Derived):
    """The fit of one or more traces of one pipeline: estimates, what was read, what to beware of.

    direct      `stages`, one for every column or group
    end_to_end  `stages` is one stage named "end to end"; it says nothing about a bottleneck
    indirect    `aggregate` where both latencies and inter-arrival times came in; with inter-arrival
                times alone `stages` is one stage named "bottleneck"
    logp        `loggp`, and `stages` the pipeline that follows from it, with `delay_us`

    `timed_whole` are whole messages that were timed beside the stages, by size: `total_us` of
    direct traces, half round trips of signatures; of an aggregate they are its total.

    `overlap` is what is known of the stages' overlap: they are a pipeline where nothing is said.

    `events` are those of the trace, in the process that read it: they are no part of what is
    stored or sent elsewhere, where the trace itself is kept.
    """

    kind: TraceKind
    method: FitMethod
    understood: tuple[tuple[str, str], ...]
    stages: tuple[StageFit, ...] = ()
    aggregate: AggregateFit | None = None
    loggp: LogGPFit | None = None
    delay_us: float = 0.0
    notices: tuple[Notice, ...] = field(default=())
    timed_whole: tuple[WholeMessages, ...] = ()
    overlap: KnownOverlap = field(default_factory=KnownOverlap)
    events: TracedEvents | None = field(default=None, compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"events": None}

    @property
    def fitted_stages(self) -> tuple[StageFit, ...]:
        """What was fitted: the stages, or all together and the slowest of an aggregate."""
        aggregate = self.aggregate
        return self.stages if aggregate is None else (aggregate.total, aggregate.bottleneck)

    @property
    def whole_messages(self) -> tuple[WholeMessages, ...]:
        """Return all whole messages that were timed in one piece, by ascending size."""
        return self.derived(_whole_messages)

    @property
    def measured_bytes(self) -> tuple[int, int] | None:
        """The least and the greatest fragment that every stage was measured at; None without any.

        The first is the larger one where the stages have no sizes in common.
        """
        return self.derived(_measured_bytes)

    def to_model(self) -> CostModel:
        """Return what messages can be cut by. Raises MeasurementMissing naming what is not there
        yet.
        """
        if self.aggregate is not None:
            return self.aggregate.to_aggregate()
        check_enough(self.kind)
        if not self.stages:
            raise MeasurementMissing(
                f"the signatures give no pipeline: {self._lacking()}", field="measurements"
            )
        return Pipeline(tuple(stage.to_stage() for stage in self.stages), self.delay_us)

    def to_whole_model(self) -> CostModel:
        """Return what messages that nothing cuts take: of latencies alone all stages as one.

        Raises MeasurementMissing where no whole message was timed.
        """
        if self.kind is TraceKind.END_TO_END and self.stages:
            return Pipeline(tuple(stage.to_stage() for stage in self.stages), self.delay_us)
        return self.to_model()

    def _lacking(self) -> str:
        codes = {notice.code for notice in self.notices}
        if "one_size" in codes and "regime_missing" not in codes:
            return "messages of one size were measured, and it takes those of two sizes and more"
        return "round-trip times, or bursts without computation between messages, are missing"


def _whole_messages(fit: TraceFit) -> tuple[WholeMessages, ...]:
    of_total = fit.aggregate.total.sizes if fit.aggregate else ()
    total = (
        WholeMessages(one.message_bytes, one.num_samples, one.median_us, one.fitted_us)
        for one in of_total
    )
    return tuple(sorted((*fit.timed_whole, *total), key=lambda one: one.message_bytes))


def _measured_bytes(fit: TraceFit) -> tuple[int, int] | None:
    both = fit.fitted_stages
    if not both:
        return None
    return max(map(_min_bytes, both)), min(map(_max_bytes, both))


def _min_bytes(stage: StageFit) -> int:
    return min([stage.lines[0].from_bytes, *(one.message_bytes for one in stage.sizes[:1])])


def _max_bytes(stage: StageFit) -> int:
    return max([stage.lines[-1].to_bytes, *(one.message_bytes for one in stage.sizes[-1:])])


def cut_sizes(fragment_bytes: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes that a cut is of: all of its fragments but the remainder at its end, which
    is smaller than the one before it.
    """
    has_remainder = len(fragment_bytes) > 1 and fragment_bytes[-1] < fragment_bytes[-2]
    return tuple(fragment_bytes[:-1] if has_remainder else fragment_bytes)


def beyond_measured(
    sizes: Collection[int], measured_bytes: tuple[int, int] | None, noun: str = "the answer"
) -> Notice | None:
    """Return that fragments are smaller or larger than those that were measured, None if none is.

    `measured_bytes` are the least and the greatest size at which every stage was measured, None
    where the costs are not of measurements.
    """
    if measured_bytes is None or not sizes:
        return None
    minimum, maximum = measured_bytes
    ends = (min(sizes), max(sizes))
    if minimum <= ends[0] and ends[1] <= maximum:
        return None
    span = " to ".join(dict.fromkeys(map(format_bytes, ends)))
    where = f"every stage was measured from {format_bytes(minimum)} to {format_bytes(maximum)}"
    where = where if minimum <= maximum else "the stages have no measured size in common"
    return Notice(
        "beyond_measured_sizes",
        f"{noun} has fragments of {span}, and {where}: times of other sizes are those of the "
        "lines, continued; measure these sizes, or use others",
        values=(("min_bytes", float(minimum)), ("max_bytes", float(maximum))),
    )


def taken_for_granted(premise: str) -> Notice:
    """Return a model's premise, how to see whether it holds, and how to say so."""
    return Notice(
        "total_may_be_pipelined",
        f"{premise}. Measure it once more with the library's fragments as large as the message, or "
        "its pipelining off. If it takes as long, say that the total is uncut (total_is_uncut, "
        "--uncut)",
    )


def check_enough(kind: TraceKind) -> None:
    """Raise MeasurementMissing where this kind alone gives neither a pipeline nor an aggregate."""
    if kind is TraceKind.END_TO_END:
        raise MeasurementMissing(
            "latencies alone do not tell which stage is the bottleneck, and every answer would be "
            "one fragment: inter-arrival times of back-to-back messages are missing (or the time "
            "of every stage)",
            field="measurements",
        )
    if kind is TraceKind.INDIRECT:
        raise MeasurementMissing(
            "inter-arrival times alone tell the bottleneck and not the other stages: latencies of "
            "unpipelined messages are missing",
            field="measurements",
        )
