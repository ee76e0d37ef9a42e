"""Cost models, in and out: stages in a pipeline, or an aggregate of them; and constraints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeAlias

from pydantic import Discriminator, FailFast, Field, Tag

from app.schemas.base import LINE, RANGES, Bytes, Input, Output, same_named
from app.text.notices import deciding_sentence
from app.text.units import printable
from domain.aggregate import Aggregate
from domain.errors import InvalidStage
from domain.model import CostModel
from domain.pipeline import (
    MAX_NAME_LENGTH,
    MAX_NS_PER_BYTE,
    MAX_OVERHEAD_US,
    MAX_RANGES,
    MAX_STAGES,
    FitRange,
    Pipeline,
    Stage,
    stage_name,
)
from domain.problem import FragmentLimits
from domain.sensitivity import Sensitivities, Slope

OverheadUs = Annotated[float, Field(ge=0.0, le=MAX_OVERHEAD_US, description="µs per fragment")]
NsPerByte = Annotated[float, Field(ge=0.0, le=MAX_NS_PER_BYTE, description="ns per byte")]
TotalIsUncut = Annotated[
    bool, Field(description="nothing cut the messages whose latencies are the total")
]
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH)]
Handoff = Annotated[
    Bytes | None, Field(description="bytes are handed on as they move, so many at a time")
]


class LineCostIn(Input):
    """A cost that is one line at every fragment size."""

    name: Name | None = None
    overhead_us: OverheadUs
    ns_per_byte: NsPerByte

    def to_domain(self, number: int) -> Stage:
        """Return the domain's stage; `number` names it where nobody did."""
        line = FitRange(self.overhead_us, self.ns_per_byte)
        return Stage(self.name or stage_name(number), (line,))


class LineStageIn(LineCostIn):
    """A stage whose cost is one line at every fragment size."""

    handoff_bytes: Handoff = None

    def to_domain(self, number: int) -> Stage:
        """Return the domain's stage; `number` names it where nobody did."""
        return replace(super().to_domain(number), handoff_bytes=self.handoff_bytes)


class RangeIn(Input):
    """One line and the greatest fragment size it covers, inclusive; null means without end."""

    up_to_bytes: Bytes | None = None
    overhead_us: OverheadUs
    ns_per_byte: NsPerByte


class RangesCostIn(Input):
    """A cost with a line for each range of fragment sizes, ascending, the last one open."""

    name: Name | None = None
    ranges: Annotated[list[RangeIn], FailFast(), Field(min_length=1, max_length=MAX_RANGES)]

    def to_domain(self, number: int) -> Stage:
        """Return the domain's stage. Raises InvalidStage for ranges that are not in order."""
        ranges = (
            FitRange(part.overhead_us, part.ns_per_byte, part.up_to_bytes) for part in self.ranges
        )
        return Stage(self.name or stage_name(number), tuple(ranges))


class RangesStageIn(RangesCostIn):
    """A stage with a line for each range of fragment sizes, ascending, the last one open."""

    handoff_bytes: Handoff = None

    def to_domain(self, number: int) -> Stage:
        """Return the domain's stage. Raises InvalidStage for ranges that are not in order."""
        return replace(super().to_domain(number), handoff_bytes=self.handoff_bytes)


def _branch(value: Any) -> str:
    given = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    return RANGES if "ranges" in given else LINE


StageIn = Annotated[
    Annotated[LineStageIn, Tag(LINE)] | Annotated[RangesStageIn, Tag(RANGES)],
    Discriminator(_branch),
]
# Of an aggregate, which hands nothing on.
CostIn = Annotated[
    Annotated[LineCostIn, Tag(LINE)] | Annotated[RangesCostIn, Tag(RANGES)],
    Discriminator(_branch),
]


class PipelineIn(Input):
    """Ordered stages, and a constant delay that occupies none of them."""

    stages: Annotated[list[StageIn], FailFast(), Field(min_length=1, max_length=MAX_STAGES)]
    delay_us: OverheadUs = 0.0

    def to_domain(self) -> Pipeline:
        """Return the domain's pipeline. Raises InvalidStage naming the stage at fault."""
        stages = tuple(
            stage_of(stage, number, field=f"pipeline.stages.{number - 1}")
            for number, stage in enumerate(self.stages, start=1)
        )
        return Pipeline(stages, self.delay_us)


def stage_of(
    stage: LineCostIn | RangesCostIn, number: int, *, field: str, called: str = ""
) -> Stage:
    """Return the domain's stage. Raises InvalidStage naming the field at fault inside this one.

    `called` says in the refusal which one it is, where its number does not.
    """
    try:
        return stage.to_domain(number)
    except InvalidStage as refusal:
        place = f"{field}.{refusal.field}"
        which = called or stage_name(number)
        raise InvalidStage(f"{which}: {refusal.detail}", field=place) from None


class AggregateIn(Input):
    """All stages together, the slowest of them, and a known delay that is not in the total."""

    total: CostIn
    bottleneck: CostIn
    delay_us: OverheadUs = 0.0
    total_is_uncut: TotalIsUncut = False

    def to_domain(self) -> Aggregate:
        """Return the domain's aggregate. Raises InvalidStage naming the part at fault."""
        return Aggregate(
            stage_of(self.total, 1, field="aggregate.total", called="the total"),
            stage_of(self.bottleneck, 2, field="aggregate.bottleneck", called="the bottleneck"),
            self.delay_us,
            self.total_is_uncut,
        )


class ConstraintsIn(Input):
    """What every cut must respect; see FragmentLimits."""

    min_fragment_bytes: Bytes = 1
    max_fragment_bytes: Bytes | None = None
    alignment_bytes: Bytes = 1
    max_fragments: Bytes | None = None

    def to_domain(self) -> FragmentLimits:
        """Return the domain's limits."""
        return FragmentLimits(
            self.min_fragment_bytes,
            self.max_fragment_bytes,
            self.alignment_bytes,
            self.max_fragments,
        )


@dataclass(frozen=True)
class RangeOut(Output):
    """One line and the greatest fragment size it covers, inclusive; null means without end."""

    up_to_bytes: int | None
    overhead_us: float
    ns_per_byte: float


@dataclass(frozen=True)
class LineStageOut(Output):
    """A stage whose cost is one line at every fragment size."""

    name: str
    overhead_us: float
    ns_per_byte: float

    @property
    def parts(self) -> tuple[RangeOut, ...]:
        """The one line as a range without end."""
        return (RangeOut(None, self.overhead_us, self.ns_per_byte),)


@dataclass(frozen=True)
class RangesStageOut(Output):
    """A stage with a line for each range of fragment sizes."""

    name: str
    ranges: tuple[RangeOut, ...]

    @property
    def parts(self) -> tuple[RangeOut, ...]:
        """The ranges, ascending."""
        return self.ranges


@dataclass(frozen=True)
class LineHandoffStageOut(LineStageOut):
    """A stage of one line that hands its bytes on as they move."""

    handoff_bytes: int


@dataclass(frozen=True)
class RangesHandoffStageOut(RangesStageOut):
    """A stage with several lines that hands its bytes on as they move."""

    handoff_bytes: int


# A field that is only there where it is set: bodies of other stages stay as they were.
HandoffStageOut: TypeAlias = LineHandoffStageOut | RangesHandoffStageOut
StageOut: TypeAlias = HandoffStageOut | LineStageOut | RangesStageOut


def stage_out(stage: Stage) -> StageOut:
    """Return a stage in the form that requests have."""
    grain = stage.handoff_bytes
    if stage.is_line:
        line = stage.ranges[0]
        costs = stage.name, line.overhead_us, line.ns_per_byte
        return LineStageOut(*costs) if grain is None else LineHandoffStageOut(*costs, grain)
    ranges = tuple(same_named(RangeOut, part) for part in stage.ranges)
    if grain is None:
        return RangesStageOut(stage.name, ranges)
    return RangesHandoffStageOut(stage.name, ranges, grain)


def stage_model(stage: StageOut) -> Stage:
    """Return the domain's stage of a stored one. Raises InvalidStage."""
    ranges = (
        FitRange(part.overhead_us, part.ns_per_byte, part.up_to_bytes) for part in stage.parts
    )
    grain = stage.handoff_bytes if isinstance(stage, HandoffStageOut) else None
    return Stage(stage.name, tuple(ranges), grain)


@dataclass(frozen=True)
class PipelineOut(Output):
    """A pipeline in the form that requests have."""

    stages: tuple[StageOut, ...]
    delay_us: float

    @classmethod
    def of(cls, pipeline: Pipeline) -> PipelineOut:
        """Return a pipeline as it is sent."""
        return cls(tuple(map(stage_out, pipeline.stages)), pipeline.delay_us)

    @classmethod
    def of_model(cls, model: CostModel) -> PipelineOut | None:
        """Return the model as it is sent, made once; None for one that is no pipeline."""
        return model.derived(cls.of) if isinstance(model, Pipeline) else None

    def to_domain(self) -> Pipeline:
        """Return the domain's pipeline. Raises InvalidStage."""
        return Pipeline(tuple(map(stage_model, self.stages)), self.delay_us)


@dataclass(frozen=True)
class AggregateOut(Output):
    """An aggregate in the form that requests have; the sums are null where there are ranges."""

    sum_overhead_us: float | None
    sum_ns_per_byte: float | None
    total: LineStageOut | RangesStageOut
    bottleneck: LineStageOut | RangesStageOut
    delay_us: float
    total_is_uncut: bool = False

    @classmethod
    def of(cls, aggregate: Aggregate) -> AggregateOut:
        """Return an aggregate as it is sent."""
        line = aggregate.total.ranges[0] if aggregate.total.is_line else None
        return cls(
            line.overhead_us if line else None,
            line.ns_per_byte if line else None,
            stage_out(aggregate.total),
            stage_out(aggregate.bottleneck),
            aggregate.delay_us,
            aggregate.total_is_uncut,
        )

    @classmethod
    def of_model(cls, model: CostModel) -> AggregateOut | None:
        """Return the model as it is sent, None for one that is no aggregate."""
        return cls.of(model) if isinstance(model, Aggregate) else None

    def to_domain(self) -> Aggregate:
        """Return the domain's aggregate. Raises InvalidStage."""
        costs = stage_model(self.total), stage_model(self.bottleneck)
        return Aggregate(*costs, self.delay_us, self.total_is_uncut)


def given_model(model: CostModel) -> dict[str, object]:
    """Return a request's fields that give this model: `pipeline`, or `aggregate` by bare costs."""
    if isinstance(model, Pipeline):
        return {"pipeline": PipelineOut.of(model)}
    aggregate = AggregateOut.of_model(model)
    return {"aggregate": given_aggregate(aggregate)} if aggregate else {}


def given_aggregate(aggregate: AggregateOut) -> dict[str, object]:
    """Return an aggregate as a request gives it, without the sums that follow from it."""
    return {name: getattr(aggregate, name) for name in AggregateIn.model_fields}


@dataclass(frozen=True)
class ConstraintsOut(Output):
    """The limits that an answer respects."""

    min_fragment_bytes: int
    max_fragment_bytes: int | None
    alignment_bytes: int
    max_fragments: int | None

    @classmethod
    def of(cls, limits: FragmentLimits) -> ConstraintsOut:
        """Return the limits as they are sent."""
        return same_named(cls, limits)

    def to_domain(self) -> FragmentLimits:
        """Return the domain's limits. Raises InvalidLimits."""
        return FragmentLimits(
            self.min_fragment_bytes,
            self.max_fragment_bytes,
            self.alignment_bytes,
            self.max_fragments,
        )


# --- how an answer's latency moves with its stages ------------------------------------------------


@dataclass(frozen=True)
class SlopeOut(Output):
    """The derivatives on both sides: they differ at a kink; null where a side is not there."""

    falling: float | None
    rising: float | None

    @classmethod
    def of(cls, found: Slope, unit: float = 1.0) -> SlopeOut:
        """Return the derivatives by a parameter in this unit."""
        falling, rising = found.falling, found.rising
        return cls(
            None if falling is None else falling * unit, None if rising is None else rising * unit
        )


@dataclass(frozen=True)
class CostChangeOut(Output):
    """What both costs of a stage, changed by this share, do to the latency, µs.

    `same_cut_us` is what the answer's cut takes then, `best_us` the best real-valued cut into as
    many fragments, of which `lower_bound_us` is proven of this model; null where not solved.
    """

    by: float
    same_cut_us: float
    best_us: float | None
    lower_bound_us: float | None


@dataclass(frozen=True)
class StageSensitivityOut(Output):
    """How the latency moves with a stage's overhead (µs per µs) and cost (µs per ns/byte)."""

    name: str
    by_overhead: SlopeOut
    by_ns_per_byte: SlopeOut
    changes: tuple[CostChangeOut, ...]


@dataclass(frozen=True)
class SensitivitiesOut(Output):
    """How the latency moves with the costs, and with the message (µs per byte).

    `basis` is `optimum` of this model, the best real-valued cut into as many fragments, or `cut`,
    the answer's own cut as it is, of which nothing is said by the message.
    """

    basis: str
    sentence: str
    by_message_byte: SlopeOut
    stages: tuple[StageSensitivityOut, ...]

    @classmethod
    def of(cls, found: Sensitivities | None, model: CostModel) -> SensitivitiesOut | None:
        """Return the same as it is sent and stored, None where nothing is known."""
        if found is None or not isinstance(model, Pipeline):
            return None
        names = [stage.name for stage in model.stages]
        return cls(
            found.basis,
            deciding_sentence(found, names),
            SlopeOut.of(found.message),
            tuple(
                StageSensitivityOut(
                    name,
                    SlopeOut.of(one.overhead),
                    SlopeOut.of(one.per_byte, 1e-3),
                    tuple(same_named(CostChangeOut, change) for change in one.changes),
                )
                for name, one in zip(names, found.stages, strict=True)
            ),
        )

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield how the latency moves, in words: the sentence, and each stage's figures."""
        yield "what decides", self.sentence
        for one in self.stages:
            parts = [
                f"{_sides(one.by_overhead)} per µs of overhead",
                f"{_sides(one.by_ns_per_byte)} per ns/byte",
            ]
            yield printable(one.name), ", ".join(part for part in parts if part[0] != " ")


def _sides(slope: SlopeOut) -> str:
    """The derivative in µs, two where they differ by a digit that is shown; "" where none is."""
    shown = [f"{one:.4g}" for one in (slope.falling, slope.rising) if one is not None]
    return " to ".join(dict.fromkeys(shown)) + " µs" * bool(shown)
