"""The stages of a pipeline, or an aggregate of them, in and out."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from .declare import Input, Output, Sparse, asked, by_member, documented, one_of, output, rule, sent
from .limits import MAX_PLACES, MAX_RANGES, MAX_STAGES, MAX_WINDOW_FRAGMENTS, MAX_WINDOWS
from .rules import Bytes, Name, NsPerByte, OverheadUs

Lanes = Annotated[int, rule(ge=1, le=MAX_PLACES, is_whole=True)]
Places = Annotated[int, rule(ge=1, le=MAX_WINDOW_FRAGMENTS, is_whole=True)]

_LANES = "how many fragments the stage handles at once, in turn"
_SHARED = "what of its cost all lanes share, ns per byte"
_DELAY = "how long it takes until the next stage has a fragment, which occupies nothing, µs"
_PROCESSOR = "stages of one name take turns"
_HANDOFF = "bytes are handed on as they move, so many at a time"


class LineCostIn(Input):
    """A cost that is one line at every fragment size."""

    name: Name | None = asked("what it is called; null: by its place, as stage 1", default=None)
    overhead_us: OverheadUs = asked("µs per fragment")
    ns_per_byte: NsPerByte = asked("ns per byte")


class LineStageIn(LineCostIn):
    """A stage whose cost is one line at every fragment size."""

    handoff_bytes: Bytes | None = asked(
        f"{_HANDOFF}; null: a fragment is handed on whole", default=None
    )
    lanes: Lanes | None = asked(f"{_LANES}; null: one", default=None)
    shared_ns_per_byte: NsPerByte | None = asked(f"{_SHARED}; null: nothing", default=None)
    delay_us: OverheadUs | None = asked(f"{_DELAY}; null: none", default=None)
    processor: Name | None = asked(f"{_PROCESSOR}; null: it has one of its own", default=None)


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
        f"{_HANDOFF}; null: a fragment is handed on whole", default=None
    )
    lanes: Lanes | None = asked(f"{_LANES}; null: one", default=None)
    shared_ns_per_byte: NsPerByte | None = asked(f"{_SHARED}; null: nothing", default=None)
    delay_us: OverheadUs | None = asked(f"{_DELAY}; null: none", default=None)
    processor: Name | None = asked(f"{_PROCESSOR}; null: it has one of its own", default=None)


_FORM = by_member("line", ranges="ranges")
StageIn = Annotated[
    LineStageIn | RangesStageIn, one_of(_FORM, line=LineStageIn, ranges=RangesStageIn)
]
# Of an aggregate, which hands nothing on.
CostIn = Annotated[LineCostIn | RangesCostIn, one_of(_FORM, line=LineCostIn, ranges=RangesCostIn)]


class WindowIn(Input):
    """At most so many fragments, or bytes, between the start of one stage and the end of another.

    Bytes are counted in fragments of the greatest size of a cut. Of fragments and bytes at least
    one is given, and of both the tighter one counts.
    """

    from_: Name = asked("the stage at whose start a fragment takes a place, by its name")
    to: Name = asked("the stage at whose end it leaves its place, by its name")
    fragments: Places | None = asked("how many fragments it holds; null: any", default=None)
    bytes: Bytes | None = asked("how many bytes it holds; null: any", default=None)
    return_us: OverheadUs = asked("how long it takes until a place is free again, µs", default=0.0)


class PipelineIn(Input):
    """Ordered stages, a constant delay that occupies none of them, and windows over them."""

    stages: Annotated[list[StageIn], rule(min_length=1, max_length=MAX_STAGES, fail_fast=True)] = (
        asked("the stages, in the order in which a fragment passes them")
    )
    delay_us: OverheadUs = asked("a constant delay that occupies no stage, µs", default=0.0)
    windows: Annotated[list[WindowIn], rule(max_length=MAX_WINDOWS, fail_fast=True)] | None = asked(
        "what bounds the fragments under way; null: nothing", default=None
    )


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
class LineStageOut(Sparse):
    """A stage whose cost is one line at every fragment size."""

    name: str = sent("what the stage is called")
    overhead_us: float = sent("µs per fragment")
    ns_per_byte: float = sent("ns per byte")
    handoff_bytes: int | None = sent(_HANDOFF, default=None)
    lanes: int = sent(_LANES, default=1)
    shared_ns_per_byte: float = sent(_SHARED, default=0.0)
    delay_us: float = sent(_DELAY, default=0.0)
    processor: str | None = sent(_PROCESSOR, default=None)

    @property
    def parts(self) -> tuple[RangeOut, ...]:
        """The one line as a range without end."""
        return (RangeOut(None, self.overhead_us, self.ns_per_byte),)


@output
class RangesStageOut(Sparse):
    """A stage with a line for each range of fragment sizes."""

    name: str = sent("what the stage is called")
    ranges: tuple[RangeOut, ...] = sent("a line for each range of fragment sizes, ascending")
    handoff_bytes: int | None = sent(_HANDOFF, default=None)
    lanes: int = sent(_LANES, default=1)
    shared_ns_per_byte: float = sent(_SHARED, default=0.0)
    delay_us: float = sent(_DELAY, default=0.0)
    processor: str | None = sent(_PROCESSOR, default=None)

    @property
    def parts(self) -> tuple[RangeOut, ...]:
        """The ranges, ascending."""
        return self.ranges


StageOut: TypeAlias = LineStageOut | RangesStageOut
# By the names that a request has, of which `from` is no name of a field in Python.
WindowOut: TypeAlias = Annotated[
    dict[str, str | int | float],
    documented(
        properties={
            "from": {"type": "string"},
            "to": {"type": "string"},
            "fragments": {"type": "integer"},
            "bytes": {"type": "integer"},
            "return_us": {"type": "number"},
        },
        required=["from", "to"],
        additionalProperties=False,
    ),
]


@output
class PipelineOut(Sparse):
    """A pipeline in the form that requests have."""

    stages: tuple[StageOut, ...] = sent("the stages, in the order in which a fragment passes them")
    delay_us: float = sent("a constant delay that occupies no stage, µs")
    windows: tuple[WindowOut, ...] = sent("what bounds the fragments under way", default=())


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
