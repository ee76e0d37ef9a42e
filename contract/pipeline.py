"""The stages of a pipeline, or an aggregate of them, in and out."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from .declare import Input, Output, asked, by_member, one_of, output, rule, sent
from .limits import MAX_RANGES, MAX_STAGES
from .rules import Bytes, Name, NsPerByte, OverheadUs


class LineCostIn(Input):
    """A cost that is one line at every fragment size."""

    name: Name | None = asked("what it is called; null: by its place, as stage 1", default=None)
    overhead_us: OverheadUs = asked("µs per fragment")
    ns_per_byte: NsPerByte = asked("ns per byte")


class LineStageIn(LineCostIn):
    """A stage whose cost is one line at every fragment size."""

    handoff_bytes: Bytes | None = asked(
        "bytes are handed on as they move, so many at a time; null: a fragment is handed on whole",
        default=None,
    )


class RangeIn(Input):
    """One line and the greatest fragment size it covers, inclusive; null means without end."""

    up_to_bytes: Bytes | None = asked(
        "the greatest fragment that it covers, bytes, inclusive; null: without end", default=None
    )
    overhead_us: OverheadUs = asked("µs per fragment")
    ns_per_byte: NsPerByte = asked("ns per byte")


class RangesCostIn(Input):
    """A cost with a line for each range of fragment sizes, ascending, the last one open."""

    name: Name | None = asked("what it is called; null: by its place, as stage 1", default=None)
    ranges: Annotated[list[RangeIn], rule(min_length=1, max_length=MAX_RANGES, fail_fast=True)] = (
        asked("a line for each range of fragment sizes, ascending")
    )


class RangesStageIn(RangesCostIn):
    """A stage with a line for each range of fragment sizes, ascending, the last one open."""

    handoff_bytes: Bytes | None = asked(
        "bytes are handed on as they move, so many at a time; null: a fragment is handed on whole",
        default=None,
    )


_FORM = by_member("line", ranges="ranges")
StageIn = Annotated[
    LineStageIn | RangesStageIn, one_of(_FORM, line=LineStageIn, ranges=RangesStageIn)
]
# Of an aggregate, which hands nothing on.
CostIn = Annotated[LineCostIn | RangesCostIn, one_of(_FORM, line=LineCostIn, ranges=RangesCostIn)]


class PipelineIn(Input):
    """Ordered stages, and a constant delay that occupies none of them."""

    stages: Annotated[list[StageIn], rule(min_length=1, max_length=MAX_STAGES, fail_fast=True)] = (
        asked("the stages, in the order in which a fragment passes them")
    )
    delay_us: OverheadUs = asked("a constant delay that occupies no stage, µs", default=0.0)


class AggregateIn(Input):
    """All stages together, the slowest of them, and a known delay that is not in the total."""

    total: CostIn = asked("all stages together")
    bottleneck: CostIn = asked("the slowest stage")
    delay_us: OverheadUs = asked("a known delay that is not in the total, µs", default=0.0)
    total_is_uncut: bool = asked(
        "whether nothing cut the messages whose latencies are the total", default=False
    )


@output
class RangeOut(Output):
    """One line and the greatest fragment size it covers, inclusive; null means without end."""

    up_to_bytes: int | None = sent(
        "the greatest fragment that the line covers, bytes, inclusive; null: without end"
    )
    overhead_us: float = sent("µs per fragment")
    ns_per_byte: float = sent("ns per byte")


@output
class LineStageOut(Output):
    """A stage whose cost is one line at every fragment size."""

    name: str = sent("what the stage is called")
    overhead_us: float = sent("µs per fragment")
    ns_per_byte: float = sent("ns per byte")

    @property
    def parts(self) -> tuple[RangeOut, ...]:
        """The one line as a range without end."""
        return (RangeOut(None, self.overhead_us, self.ns_per_byte),)


@output
class RangesStageOut(Output):
    """A stage with a line for each range of fragment sizes."""

    name: str = sent("what the stage is called")
    ranges: tuple[RangeOut, ...] = sent("a line for each range of fragment sizes, ascending")

    @property
    def parts(self) -> tuple[RangeOut, ...]:
        """The ranges, ascending."""
        return self.ranges


@output
class LineHandoffStageOut(LineStageOut):
    """A stage of one line that hands its bytes on as they move."""

    handoff_bytes: int = sent("bytes are handed on as they move, so many at a time")


@output
class RangesHandoffStageOut(RangesStageOut):
    """A stage with several lines that hands its bytes on as they move."""

    handoff_bytes: int = sent("bytes are handed on as they move, so many at a time")


# A field that is only there where it is set: bodies of other stages stay as they were.
HandoffStageOut: TypeAlias = LineHandoffStageOut | RangesHandoffStageOut
StageOut: TypeAlias = HandoffStageOut | LineStageOut | RangesStageOut


@output
class PipelineOut(Output):
    """A pipeline in the form that requests have."""

    stages: tuple[StageOut, ...] = sent("the stages, in the order in which a fragment passes them")
    delay_us: float = sent("a constant delay that occupies no stage, µs")


@output
class AggregateOut(Output):
    """An aggregate in the form that requests have; the sums are null where there are ranges."""

    sum_overhead_us: float | None = sent(
        "overheads of all stages together, µs per fragment; null: the total has ranges"
    )
    sum_ns_per_byte: float | None = sent(
        "costs of all stages together, ns per byte; null: the total has ranges"
    )
    total: LineStageOut | RangesStageOut = sent("all stages together")
    bottleneck: LineStageOut | RangesStageOut = sent("the slowest stage")
    delay_us: float = sent("a known delay that is not in the total, µs")
    total_is_uncut: bool = sent(
        "whether nothing cut the messages whose latencies are the total", default=False
    )
