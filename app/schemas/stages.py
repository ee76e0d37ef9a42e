"""Stages, pipelines and constraints, in and out."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, FailFast, Field, Tag

from app.schemas.base import LINE, RANGES, Bytes, Input, Output
from domain.errors import InvalidStage
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

OverheadUs = Annotated[float, Field(ge=0.0, le=MAX_OVERHEAD_US, description="µs per fragment")]
NsPerByte = Annotated[float, Field(ge=0.0, le=MAX_NS_PER_BYTE, description="ns per byte")]
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH)]


class LineStageIn(Input):
    """A stage whose cost is one line at every fragment size."""

    name: Name | None = None
    overhead_us: OverheadUs
    ns_per_byte: NsPerByte

    def to_domain(self, number: int) -> Stage:
        """Return the domain's stage; `number` names it where nobody did."""
        name = self.name or stage_name(number)
        return Stage.of_line(name, overhead_us=self.overhead_us, ns_per_byte=self.ns_per_byte)


class RangeIn(Input):
    """One line and the greatest fragment size it covers, inclusive; null means without end."""

    up_to_bytes: Bytes | None = None
    overhead_us: OverheadUs
    ns_per_byte: NsPerByte


class RangesStageIn(Input):
    """A stage with a line for each range of fragment sizes, ascending, the last one open."""

    name: Name | None = None
    ranges: Annotated[list[RangeIn], FailFast(), Field(min_length=1, max_length=MAX_RANGES)]

    def to_domain(self, number: int) -> Stage:
        """Return the domain's stage. Raises InvalidStage for ranges that are not in order."""
        ranges = (
            FitRange(part.overhead_us, part.ns_per_byte, part.up_to_bytes) for part in self.ranges
        )
        return Stage(self.name or stage_name(number), tuple(ranges))


def _branch(value: Any) -> str:
    given = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    return RANGES if "ranges" in given else LINE


StageIn = Annotated[
    Annotated[LineStageIn, Tag(LINE)] | Annotated[RangesStageIn, Tag(RANGES)],
    Discriminator(_branch),
]


class PipelineIn(Input):
    """Ordered stages, and a constant delay that occupies none of them."""

    stages: Annotated[list[StageIn], FailFast(), Field(min_length=1, max_length=MAX_STAGES)]
    delay_us: OverheadUs = 0.0

    def to_domain(self) -> Pipeline:
        """The domain's pipeline. Raises InvalidStage naming the stage at fault."""
        stages = tuple(
            stage_of(stage, number, field=f"pipeline.stages.{number - 1}")
            for number, stage in enumerate(self.stages, start=1)
        )
        return Pipeline(stages, self.delay_us)


def stage_of(
    stage: LineStageIn | RangesStageIn, number: int, *, field: str, called: str = ""
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


class ConstraintsIn(Input):
    """What every cut must respect; see FragmentLimits."""

    min_fragment_bytes: Bytes = 1
    max_fragment_bytes: Bytes | None = None
    alignment_bytes: Bytes = 1
    max_fragments: Bytes | None = None

    def to_domain(self) -> FragmentLimits:
        """The domain's limits."""
        return FragmentLimits(
            self.min_fragment_bytes,
            self.max_fragment_bytes,
            self.alignment_bytes,
            self.max_fragments,
        )


class LineStageOut(Output):
    """A stage whose cost is one line at every fragment size."""

    name: str
    overhead_us: float
    ns_per_byte: float


class RangeOut(Output):
    """One line and the greatest fragment size it covers, inclusive; null means without end."""

    up_to_bytes: int | None
    overhead_us: float
    ns_per_byte: float


class RangesStageOut(Output):
    """A stage with a line for each range of fragment sizes."""

    name: str
    ranges: list[RangeOut]


class PipelineOut(Output):
    """A pipeline in the form that requests have."""

    stages: list[LineStageOut | RangesStageOut]
    delay_us: float


class ConstraintsOut(Output):
    """The limits that an answer respects."""

    min_fragment_bytes: int
    max_fragment_bytes: int | None
    alignment_bytes: int
    max_fragments: int | None


def pipeline_document(pipeline: Pipeline) -> dict[str, Any]:
    """PipelineOut."""
    return {
        "stages": [stage_document(stage) for stage in pipeline.stages],
        "delay_us": pipeline.delay_us,
    }


def stage_document(stage: Stage) -> dict[str, Any]:
    """LineStageOut or RangesStageOut."""
    if stage.is_line:
        line = stage.ranges[0]
        return {
            "name": stage.name,
            "overhead_us": line.overhead_us,
            "ns_per_byte": line.ns_per_byte,
        }
    return {
        "name": stage.name,
        "ranges": [
            {
                "up_to_bytes": part.up_to_bytes,
                "overhead_us": part.overhead_us,
                "ns_per_byte": part.ns_per_byte,
            }
            for part in stage.ranges
        ],
    }


def constraints_document(limits: FragmentLimits) -> dict[str, Any]:
    """ConstraintsOut."""
    return {name: getattr(limits, name) for name in limits.__slots__}
