"""What to fit and how, and what to measure next: POST /fit, /compose and /measurement-plans."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, FailFast, Field, Tag
from typing_extensions import TypeAliasType

from app.questions.question import Measurement
from app.schemas.base import (
    MANY,
    ONE,
    Bytes,
    Input,
    Output,
    ProfileName,
    same_named,
    whole,
)
from domain.errors import InconsistentInput, InvalidInput
from domain.fit import (
    DEFAULT_MAX_RANGES,
    MAX_EXCLUDED,
    Combine,
    ComposedStage,
    ExcludedSample,
    FitMethod,
    FitOptions,
    FitShape,
    StepGroup,
)
from domain.measurement import MAX_TIME_US
from domain.pipeline import MAX_NAME_LENGTH, MAX_STAGES
from domain.plan import DEFAULT_TOLERANCE, MeasurementPlan, PlanLimits, Quantity
from domain.table_columns import MAX_COLUMNS_LENGTH, parse_columns

MAX_FIT_RANGES = 16
MAX_MEASUREMENTS = 16
# Sizes below 10^14 bytes and times below 10^12 µs: every one that matches is a sample.
EXCLUDED_PATTERN = (
    r"^[1-9][0-9]{0,13}:[0-9]{1,12}(\.[0-9]{1,20})?([eE]-[0-9]{1,3})?:.+$"  # bytes:µs:stage
)
_EXCLUDED = re.compile(EXCLUDED_PATTERN, re.ASCII)


# What a JSON Schema can say of columns, the size first: ASCII names without , : and =, or places #1
# to #999. Every text that matches is understood.
_NAMED = r"(#[1-9][0-9]{0,2}|[!-\"$-+\--9;<>-~]([ -+\--9;<>-~]*[!-+\--9;<>-~])?)"
_TIMED = rf"{_NAMED}(:(ns|us|ms|s))?"
_OTHER = rf"(,interarrival={_TIMED}|,rate={_NAMED}(:([GM]i?B|TB|[GM]b)/s)?)"
COLUMNS_PATTERN = rf"^size={_NAMED}(:([KMG]i?)?B)?(,time={_TIMED}{_OTHER}?|{_OTHER})$"
_COLUMNS = re.compile(COLUMNS_PATTERN, re.ASCII)


def _columns(text: str) -> str:
    """The word, where it names columns as `parse_columns` has them and the pattern allows."""
    try:
        parse_columns(text)
    except InvalidInput as refusal:
        raise ValueError(refusal.detail) from None
    if not _COLUMNS.search(text):
        raise ValueError(
            "expected the size first, then the time, then interarrival or rate, and names of ASCII "
            "without , : and =; another column is named by its place, as #2"
        )
    return text


# Which columns of a table hold what: role=column:unit,...
Columns = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_COLUMNS_LENGTH,
        json_schema_extra={"pattern": COLUMNS_PATTERN},
    ),
    AfterValidator(_columns),
]
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH)]
MaxRanges = Annotated[int, Field(ge=1, le=MAX_FIT_RANGES)]


def parse_group(text: str) -> StepGroup:
    """Return a group in one word, `name:overlap:step,step`. Raises InvalidInput naming `group`."""
    name, _, rest = text.partition(":")
    combine, _, steps = rest.partition(":")
    words = tuple(steps.split(","))
    if combine not in tuple(Combine) or not name or len(words) < 2 or not all(words):
        raise InvalidInput(
            "expected a group as name:overlap:step,step or name:sequence:step,step, with the names "
            "of two or more steps",
            field="group",
        )
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidInput(
            f"expected a name of at most {MAX_NAME_LENGTH} characters", field="group"
        )
    return StepGroup(name, words, Combine(combine))


def parse_composed(text: str, field: str) -> tuple[str, tuple[str, ...]]:
    """Return a name and what is of it, of `name=one,other`. Raises InvalidInput naming `field`."""
    name, _, rest = text.partition("=")
    words = tuple(rest.split(","))
    if not name or not all(words):
        raise InvalidInput("expected name=one or name=one,other", field=field)
    return name, words


def parse_excluded(text: str) -> ExcludedSample:
    """Return a sample in one word, `bytes:µs:stage`. Raises InvalidInput naming `exclude`."""
    if _EXCLUDED.fullmatch(text) is None:
        raise InvalidInput(
            "expected a sample as bytes:µs:stage, its time to the last digit, as in "
            "4096:12.75:copy",
            field="exclude",
        )
    size, time_us, stage = text.split(":", 2)
    return ExcludedSample(stage, int(size), float(time_us))


class ExcludedSampleIn(Input):
    """A sample to leave out: every one of this stage with this size and this time."""

    stage: Name
    message_bytes: Bytes
    time_us: Annotated[float, Field(ge=0, le=MAX_TIME_US, allow_inf_nan=False)]

    def to_domain(self) -> ExcludedSample:
        """Return the sample."""
        return ExcludedSample(self.stage, self.message_bytes, self.time_us)


class StepGroupIn(Input):
    """Measured steps, neighbours in the trace, that form one stage."""

    name: Name
    steps: Annotated[list[Name], Field(min_length=2, max_length=MAX_STAGES)]
    combine: Combine

    def to_domain(self) -> StepGroup:
        """Return the group."""
        return StepGroup(self.name, tuple(self.steps), self.combine)


Excluded = Annotated[tuple[ExcludedSampleIn, ...], Field(max_length=MAX_EXCLUDED)]


class FitOptionsIn(Input):
    """How to fit measurements; `groups` are for direct traces, `excluded` is left out by hand.

    `as_stage` says that times of whole messages are those of one stage, and names it; `columns`
    which columns of tables hold what; `total_is_uncut` that nothing cut the messages whose
    latencies were measured; `several_at_once` whether a stage handles several fragments at once,
    and `stages_overlap` whether stages work on different fragments at the same time, null where
    that is not known.
    """

    method: FitMethod = FitMethod.ROBUST
    shape: FitShape = FitShape.RANGES
    max_ranges: Annotated[MaxRanges, BeforeValidator(whole)] = DEFAULT_MAX_RANGES
    groups: tuple[StepGroupIn, ...] = Field(default=(), max_length=MAX_STAGES)
    excluded: Excluded = ()
    as_stage: Name | None = None
    columns: Columns | None = None
    total_is_uncut: bool = False
    several_at_once: bool | None = None
    stages_overlap: bool | None = None

    def to_domain(self) -> FitOptions:
        """Return the options. Raises InvalidInput."""
        return FitOptions(
            self.method,
            self.shape,
            self.max_ranges,
            tuple(group.to_domain() for group in self.groups),
            tuple(sample.to_domain() for sample in self.excluded),
            self.as_stage,
            columns=self.columns,
            total_is_uncut=self.total_is_uncut,
            several_at_once=self.several_at_once,
            stages_overlap=self.stages_overlap,
        )


class MeasurementIn(Input):
    """The text of one trace, and its kind where it cannot be told from the text."""

    content: str
    kind: Annotated[str, Field(max_length=32)] | None = None


def _how_many(value: Any) -> str:
    return MANY if isinstance(value, list) else ONE


# A named alias, because the members of a union must be hashable and FailFast is not.
MeasurementList = TypeAliasType(
    "MeasurementList",
    Annotated[list[MeasurementIn], FailFast(), Field(min_length=1, max_length=MAX_MEASUREMENTS)],
)
MeasurementsIn = Annotated[
    Annotated[MeasurementIn, Tag(ONE)] | Annotated[MeasurementList, Tag(MANY)],
    Discriminator(_how_many),
]


class FitIn(Input):
    """One file or several, fitted together, and samples to leave out.

    How else to fit them is said in the query.
    """

    measurements: MeasurementsIn
    excluded: Excluded = ()

    def to_domain(self) -> tuple[Measurement, ...]:
        """Return the measurements, in their order."""
        given = self.measurements
        listed = given if isinstance(given, list) else [given]
        return tuple(Measurement(one.content, one.kind) for one in listed)

    def left_out(self) -> tuple[ExcludedSample, ...]:
        """Return the samples to leave out."""
        return tuple(sample.to_domain() for sample in self.excluded)


# --- POST /compose --------------------------------------------------------------------------------


class ComposedStageIn(Input):
    """A stage that was measured by itself.

    `step` is the column to take of a file with several steps. Stages of one `processor`, neighbours
    in the pipeline, work one after the other and count as one. `columns` are those of its tables.
    """

    name: Name
    measurements: MeasurementsIn
    step: Name | None = None
    processor: Name | None = None
    columns: Columns | None = None

    def files(self) -> tuple[MeasurementIn, ...]:
        """Return its files, in their order."""
        given = self.measurements
        return tuple(given) if isinstance(given, list) else (given,)


class ComposeIn(Input):
    """Stages of a pipeline in their order, each of files of its own, and how to fit them."""

    stages: Annotated[list[ComposedStageIn], Field(min_length=1, max_length=MAX_STAGES)]
    method: FitMethod = FitMethod.ROBUST
    shape: Literal[FitShape.RANGES, FitShape.LINE] = FitShape.RANGES
    max_ranges: Annotated[MaxRanges, BeforeValidator(whole)] = DEFAULT_MAX_RANGES
    excluded: Excluded = ()
    save_as: ProfileName | None = None
    plot: bool = False

    def given(self) -> tuple[Measurement, ...]:
        """Return all measurements, those of the first stage first."""
        files = (file for stage in self.stages for file in stage.files())
        return tuple(Measurement(file.content, file.kind) for file in files)

    def options(self) -> FitOptions:
        """Return how to fit them. Raises InvalidInput."""
        return FitOptions(
            self.method,
            FitShape(self.shape),
            self.max_ranges,
            excluded=tuple(sample.to_domain() for sample in self.excluded),
            composed=tuple(
                ComposedStage(
                    stage.name, len(stage.files()), stage.step, stage.processor, stage.columns
                )
                for stage in self.stages
            ),
        )


# --- POST /measurement-plans ----------------------------------------------------------------------


class MeasurementPlanIn(Input):
    """Measurements so far, none at the start, and the message sizes of interest."""

    measurements: MeasurementsIn | None = None
    min_message_bytes: Bytes
    max_message_bytes: Bytes
    tolerance: Annotated[float, Field(ge=0.001, le=0.5)] = DEFAULT_TOLERANCE

    def given(self) -> tuple[Measurement, ...]:
        """Return the texts that were measured."""
        if self.measurements is None:
            return ()
        many = self.measurements if isinstance(self.measurements, list) else [self.measurements]
        return tuple(Measurement(one.content, one.kind) for one in many)

    def limits(self) -> PlanLimits:
        """Return the sizes of interest. Raises InconsistentInput where they are too close."""
        try:
            return PlanLimits(self.min_message_bytes, self.max_message_bytes, self.tolerance)
        except InvalidInput as refusal:
            raise InconsistentInput(refusal.detail, field=refusal.field) from None


@dataclass(frozen=True)
class NextMeasurementOut(Output):
    """One size to measure, how often, and why."""

    message_bytes: int
    what: Quantity
    repetitions: int
    why: str


@dataclass(frozen=True)
class TransitionOut(Output):
    """Where one bottleneck takes over from another; `at_bytes` is null for a protocol switch."""

    between_bytes: tuple[int, int]
    at_bytes: int | None


@dataclass(frozen=True)
class KnownBottleneckOut(Output):
    """A line that inter-arrival times lie on; its overhead may come out below 0 in a part."""

    from_bytes: int
    to_bytes: int
    overhead_us: float
    ns_per_byte: float


@dataclass(frozen=True)
class MeasurementPlanOut(Output):
    """What to measure next; `decided` where nothing is, with the reason."""

    decided: bool
    reason: str
    measure: tuple[NextMeasurementOut, ...]
    transitions: tuple[TransitionOut, ...]
    bottlenecks: tuple[KnownBottleneckOut, ...]

    @classmethod
    def of(cls, plan: MeasurementPlan) -> MeasurementPlanOut:
        """Return a plan as it is sent."""
        return cls(
            decided=plan.decided,
            reason=plan.reason,
            measure=tuple(
                NextMeasurementOut(one.message_bytes, one.quantity, one.repetitions, one.why)
                for one in plan.measure
            ),
            transitions=tuple(same_named(TransitionOut, one) for one in plan.transitions),
            bottlenecks=tuple(
                KnownBottleneckOut(
                    one.from_bytes, one.to_bytes, one.line.overhead_us, one.line.ns_per_byte
                )
                for one in plan.bottlenecks
            ),
        )
