"""POST /simulate: a cut, or the rules by which stages cut, in; when what arrives where out."""

from __future__ import annotations

from typing import Annotated, ClassVar

from .declare import Input, Output, Sparse, asked, exactly_one, output, rule, sent
from .items import FillIn, ItemsIn, ItemsLimitOut, ItemsOut, SlotsOut
from .limits import MAX_ITEMS, MAX_SIMULATED, MAX_STAGES
from .notices import NoticeOut
from .pipeline import AggregateOut, PipelineOut
from .profile import ProfileRevisionOut
from .rules import RULE_MEANS, Bytes, DeliveryRule, PlainBytes
from .source import SOURCES, SourceIn

Sizes = Annotated[
    list[PlainBytes],
    rule(min_length=1, max_length=MAX_SIMULATED, fail_fast=True, is_whole=True),
]
Ends = Annotated[
    list[Annotated[int, rule(ge=1, le=MAX_ITEMS)]],
    rule(min_length=1, max_length=MAX_SIMULATED, fail_fast=True, is_whole=True),
]
Levels = Annotated[list[Sizes], rule(min_length=1, max_length=MAX_STAGES, fail_fast=True)]


class DeliveryIn(Input):
    """How one stage cuts what arrives.

    `pulse_bytes` goes with `static`, `threshold_bytes` (1) and `max_pulse_bytes` with `eager`, and
    `planned_bytes`, which sum to the message, with `planned`.
    """

    rule: DeliveryRule = asked(RULE_MEANS)
    pulse_bytes: Bytes | None = asked("with static: the size of each pulse, bytes", default=None)
    threshold_bytes: Bytes | None = asked(
        "with eager: no smaller pulse but the last, bytes; null: 1", default=None
    )
    max_pulse_bytes: Bytes | None = asked(
        "with eager: no larger pulse, bytes; null: no limit", default=None
    )
    planned_bytes: Sizes | None = asked(
        "with planned: the pulses in their order, bytes, which sum to the message", default=None
    )


Rules = Annotated[list[DeliveryIn], rule(min_length=1, max_length=MAX_STAGES, fail_fast=True)]


class SimulateIn(SourceIn):
    """Stages or an aggregate, wherever their costs come from, and one cut for all stages, one cut a
    stage, or a rule a stage by which it cuts what arrives of a message. With `items` the cut is
    between them: `cut`, or what `cap_bytes` gives.
    """

    schema_rules: ClassVar = {
        "allOf": [
            {"oneOf": exactly_one(*SOURCES)},
            {"oneOf": exactly_one("fragment_bytes", "levels", "delivery", "cut", "cap_bytes")},
        ]
    }

    fragment_bytes: Sizes | None = asked(
        "one cut for all stages: the fragments in their order, bytes",
        help="in place of both: every fragment, in order, as 4KiB,8KiB,4KiB",
        default=None,
        unit="listed_sizes",
        option="--fragments",
        metavar="SIZES",
    )
    levels: Levels | None = asked(
        "a cut for each stage: its fragments in their order, bytes", default=None
    )
    delivery: Rules | None = asked(
        "a rule for each stage, by which it cuts what arrives",
        help="one a stage, as eager,eager=512,static=1280: eager[=THRESHOLD[..MOST]], static=SIZE, "
        "planned=SIZE+SIZE.., store_and_forward, same, flow",
        default=None,
        unit="rules",
        option="--rules",
        metavar="RULES",
    )
    message_bytes: Bytes | None = asked(
        "with delivery: size of the message, bytes; other cuts say it themselves",
        help="size of the message",
        default=None,
        unit="bytes",
        option="--bytes",
        metavar="SIZE",
    )
    items: ItemsIn | None = asked(
        "what the message may be cut between, in their order; then cut or cap_bytes", default=None
    )
    cut: Ends | None = asked(
        "with items: the number of items up to the end of each fragment, ascending", default=None
    )
    cap_bytes: Bytes | None = asked(
        "with items: the cap up to which fragments are filled, bytes", default=None
    )
    fill: FillIn | None = asked(
        "with cap_bytes: how fragments are filled up to it; null: until", default=None
    )


@output
class Interval(Output):
    """One fragment in one stage, µs from the start of the message; the delay is left out."""

    fragment: int = sent("the fragment by its place, from 0")
    stage: int = sent("the stage by its place, from 0")
    fragment_bytes: int = sent("size of the fragment, bytes")
    start_us: float = sent("when it enters the stage, µs from the start of the message")
    exit_us: float = sent("when it leaves the stage, µs from the start of the message")


@output
class PathStepOut(Output):
    """One step of the critical path."""

    fragment: int = sent("the fragment by its place, from 0")
    stage: int = sent("the stage by its place, from 0")


@output
class SimulateOut(Output):
    """A run of a cut. `critical_path` is null where stages cut differently; `warnings` begin with
    what was measured against the profile's revision.
    """

    message_bytes: int = sent("size of the message, bytes")
    latency_us: float = sent("latency of the message, µs")
    intervals: tuple[Interval, ...] = sent("each fragment in each stage")
    critical_path: tuple[PathStepOut, ...] | None = sent(
        "the steps that the latency is the sum of; null where stages cut differently"
    )
    bottleneck_stage: int = sent("the stage that is busy longest, by its place from 0")
    busy_us: tuple[float, ...] = sent("how long each stage is busy, µs")
    pipeline: PipelineOut = sent("the stages that the message crosses")
    profile: ProfileRevisionOut | None = sent(
        "the revision of the profile that holds these costs; null where none does"
    )
    warnings: tuple[NoticeOut, ...] = sent(
        "what a user must see; first what was measured against the profile's revision"
    )


@output
class LagOut(Output):
    """How a processor orders the fragments of its two stages.

    It handles a fragment in the later stage when the earlier one has handled as many more.
    """

    processor: str = sent("what the processor is called")
    lag: int = sent("by how many fragments its earlier stage is ahead of its later one")


@output
class MachineRunOut(SimulateOut):
    """A run of a cut through stages with lanes, delays, processors or windows.

    Fragments take lanes in turn. Where lanes share a part of a stage's cost, a fragment is in the
    stage from the start of what its lane does alone to the end of what all share. `busy_us` is of
    all lanes together, and the bottleneck the stage that is busy longest by its busiest lane.
    """

    lags: tuple[LagOut, ...] = sent(
        "the order of each processor's fragments, which takes the least time for this cut"
    )


@output
class ItemsRunOut(Sparse, SimulateOut):
    """A run of a cut between items. `ready_us` is when all items of a fragment are ready."""

    items: ItemsOut = sent("the items, in their order")
    cut: tuple[int, ...] = sent("the number of items up to the end of each fragment")
    ready_us: tuple[float, ...] = sent("when each fragment is ready, µs")
    limit: ItemsLimitOut = sent("what most of the latency is")
    slots: tuple[SlotsOut, ...] = sent("of each window: how many buffers, of what size", default=())


@output
class DeliveredOut(SimulateOut):
    """A run of what the stages chose: their pulses, and what to compare the latency with.

    `lower_bound_us` is proven of this model, for every cut of every stage. A step of the critical
    path may end inside its pulse, at the byte that the next stage waits for; the path is null where
    a stage passes bytes on as they come.
    """

    levels: tuple[tuple[int, ...], ...] = sent("the pulses of each stage in their order, bytes")
    store_and_forward_us: float = sent("what the message takes whole, µs")
    lower_bound_us: float = sent("proven of this model: no cut of any stage takes less, µs")


@output
class PricedCutOut(Output):
    """What a cut takes at most by the total and the bottleneck of an aggregate, and one piece."""

    message_bytes: int = sent("size of the message, bytes")
    fragment_bytes: tuple[int, ...] = sent("the fragments in their order, bytes")
    latency_us: float = sent("what the cut takes at most, µs")
    one_piece_us: float = sent("what the message in one piece takes, µs")
    aggregate: AggregateOut = sent("all stages together, and the slowest of them")
    profile: ProfileRevisionOut | None = sent(
        "the revision of the profile that holds these costs; null where none does"
    )
    warnings: tuple[NoticeOut, ...] = sent("what a user must see beside the answer")
