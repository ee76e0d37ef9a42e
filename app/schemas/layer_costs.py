"""POST /layer-costs: what a messaging layer's software costs, and what features would save."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import FailFast, Field

from analysis.comparison import Cell
from analysis.layer_answer import MAX_MESSAGES, LayerAnswer, LayerQuestion, MessageCosts
from analysis.layer_cost import (
    MAX_PACKET_SIZES,
    FeatureSet,
    PartCost,
    UnitCosts,
    Work,
    costs_of_each,
    feature_sets,
)
from analysis.layer_stages import (
    FeatureStages,
    Handshake,
    LayerStages,
    StageMapping,
    StageQuestion,
    TunedMessage,
)
from app.questions.question import DEFAULT_RELATIVE_GAP, DEFAULT_TIME_LIMIT_S
from app.schemas.base import (
    Bytes,
    Input,
    NoticeOut,
    Output,
    ProfileName,
    ProfileRevisionOut,
    notices_out,
)
from app.schemas.layers import (
    ClockMhz,
    Cycles,
    LayerGiven,
    LayerOut,
    PacketWords,
    Share,
    layer_named,
)
from app.schemas.optimize import RelativeGap, TimeLimitS
from app.schemas.stages import ConstraintsOut, OverheadUs, PipelineOut, StageIn, stage_of
from domain.errors import InconsistentInput
from domain.messaging_layer import (
    CycleModel,
    End,
    MessagingLayer,
    NetworkFeature,
    Service,
    in_order,
)
from domain.pipeline import MAX_STAGES
from domain.profile import ProfileRevision
from domain.solution import Status


class LayerCostsIn(Input):
    """A layer by name or as a document, messages, and what is wanted of them.

    `cycles` add to the layer's own or take their place, class by class. `features` None: each that
    would remove something. The largest of `packet_words` bounds the packets that are chosen with
    the mapping `packet`. `between` are the stages between both ends. With `tune` each message is
    cut anew for each set of features; `time_limit_s` is for all of them. `save_as` stores the
    stages of the layer as it is.
    """

    layer: LayerGiven
    cycles: Cycles | None = None
    clock_mhz: ClockMhz | None = None
    message_bytes: Annotated[list[Bytes], FailFast(), Field(min_length=1, max_length=MAX_MESSAGES)]
    features: Annotated[list[NetworkFeature], Field(max_length=len(NetworkFeature))] | None = None
    packet_words: Annotated[list[PacketWords], FailFast(), Field(max_length=MAX_PACKET_SIZES)] = []  # noqa: RUF012
    mapping: StageMapping = StageMapping.PACKET
    handshake: Handshake = Handshake.OVERLAPPED
    between: Annotated[list[StageIn], FailFast(), Field(max_length=MAX_STAGES - 2)] = []  # noqa: RUF012
    wire_us: OverheadUs = 0.0
    out_of_order: Share | None = None
    tune: bool = False
    relative_gap: RelativeGap = DEFAULT_RELATIVE_GAP
    time_limit_s: TimeLimitS = DEFAULT_TIME_LIMIT_S
    save_as: ProfileName | None = None

    def to_domain(self, *, fragment_cap: int) -> LayerQuestion:
        """Return the question.

        Raises NotFound, InconsistentInput, MissingClassCost, NotPublished.
        """
        layer = layer_named(self.layer) if isinstance(self.layer, str) else self.layer.to_domain()
        asked = set(layer.features if self.features is None else self.features)
        between = tuple(
            stage_of(stage, number, field=f"between.{number - 1}")
            for number, stage in enumerate(self.between, start=1)
        )
        return LayerQuestion(
            layer=layer,
            costs=self._costs(layer),
            message_bytes=tuple(self.message_bytes),
            features=tuple(feature for feature in NetworkFeature if feature in asked),
            packet_words=tuple(self.packet_words),
            stages=StageQuestion(
                mapping=self.mapping,
                handshake=self.handshake,
                between=between,
                wire_us=self.wire_us,
                max_packet_words=max(self.packet_words, default=None),
            ),
            tune=self.tune,
            out_of_order=self.out_of_order,
            relative_gap=self.relative_gap,
            time_limit_s=self.time_limit_s,
            fragment_cap=fragment_cap,
        )

    def _costs(self, layer: MessagingLayer) -> CycleModel | None:
        counted = {name for one in layer.components for name in one.counts.classes}
        known = in_order({*counted, *dict(layer.cycles)})
        for name in self.cycles or ():
            if name not in known:
                raise InconsistentInput(
                    f"expected a class of this layer: {', '.join(known)}", field=f"cycles.{name}"
                )
        prices = {**dict(layer.cycles), **(self.cycles or {})}
        if not prices and self.clock_mhz is None:
            return None
        return CycleModel(tuple(prices.items()), self.clock_mhz)


# --- costs, out -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class LayerStagesOut(Output):
    """The stages of the layer as it is, for POST /optimize with these constraints.

    `last_fragment_us_at_most` bounds by how much the software of the last fragment, at both ends
    together, may take longer than the stages say, µs.
    """

    pipeline: PipelineOut
    constraints: ConstraintsOut
    last_fragment_us_at_most: float

    @classmethod
    def of(cls, stages: LayerStages) -> LayerStagesOut:
        """Return stages as they are sent."""
        return cls(
            PipelineOut.of(stages.pipeline),
            ConstraintsOut.of(stages.limits),
            stages.last_fragment_us_at_most,
        )


@dataclass(frozen=True)
class FeatureStagesOut(Output):
    """The stages on a network that has these features."""

    features: tuple[NetworkFeature, ...]
    pipeline: PipelineOut
    constraints: ConstraintsOut


@dataclass(frozen=True)
class ServiceCostOut(Output):
    """What one service does at one end for a message; its shares of all instructions and cycles."""

    service: Service
    end: End
    counts: dict[str, float]
    instructions: float
    cycles: float | None
    us: float | None
    share_of_instructions: float
    share_of_cycles: float | None


@dataclass(frozen=True)
class FullPacketsOut(Output):
    """The work of a message whose packets are all full, as the formulas of the paper count."""

    words: int
    instructions: float
    cycles: float | None


@dataclass(frozen=True)
class PacketSizeOut(Output):
    """The work of a message in packets of this many words; the overhead is all but the base."""

    packet_words: int
    packets: int
    instructions: float
    cycles: float | None
    overhead_of_instructions: float
    overhead_of_cycles: float | None


@dataclass(frozen=True)
class BestCutOut(Output):
    """The best cut of a message with its bound, µs; `declined` says why there is none."""

    latency_us: float | None
    lower_bound_us: float | None
    relative_gap: float | None
    fragments: int | None
    largest_fragment_bytes: int | None
    status: Status | None
    declined: str | None

    @classmethod
    def of(cls, cell: Cell | None) -> BestCutOut | None:
        """Return a cut as it is sent, None for one that was not asked for."""
        if cell is None:
            return None
        found = cell.solution
        return cls(
            latency_us=found.latency_us if found else None,
            lower_bound_us=found.lower_bound_us if found else None,
            relative_gap=found.relative_gap if found else None,
            fragments=found.schedule.fragments if found else None,
            largest_fragment_bytes=max(found.schedule.fragment_bytes) if found else None,
            status=found.status if found else None,
            declined=cell.declined,
        )


@dataclass(frozen=True)
class FeatureSavingOut(Output):
    """What a network with these features saves of a message: work, and latency in µs.

    Work is `instructions`, `cycles` and `us`, and their shares of all. `old_cut_us` is the latency
    of the cut that is best without them, `best` the best cut with them; the differences to the best
    latency without are `saved_at_old_cut_us` and `saved_us`. All null where nothing was tuned.
    """

    features: tuple[NetworkFeature, ...]
    instructions: float
    cycles: float | None
    us: float | None
    share_of_instructions: float
    share_of_cycles: float | None
    old_cut_us: float | None
    best: BestCutOut | None
    saved_at_old_cut_us: float | None
    saved_us: float | None


@dataclass(frozen=True)
class MessageCostsOut(Output):
    """One message: its units, its work by service and end, savings, and its best cut.

    `full_packets` is there where its last packet is not full (`partial_packet`).
    """

    message_bytes: int
    words: int
    packets: int
    acknowledgements: int
    partial_packet: bool
    counts: dict[str, float]
    instructions: float
    cycles: float | None
    us: float | None
    overhead_of_instructions: float
    overhead_of_cycles: float | None
    services: tuple[ServiceCostOut, ...]
    full_packets: FullPacketsOut | None
    packet_sizes: tuple[PacketSizeOut, ...]
    best: BestCutOut | None
    savings: tuple[FeatureSavingOut, ...]


@dataclass(frozen=True)
class LayerCostsOut(Output):
    """What a messaging layer costs. `stages` is null without a clock, or where there is no
    pipeline; `profile` is where they were stored.
    """

    layer: LayerOut
    cycles: dict[str, float] | None
    clock_mhz: float | None
    mapping: StageMapping
    handshake: Handshake
    stages: LayerStagesOut | None
    with_features: tuple[FeatureStagesOut, ...]
    messages: tuple[MessageCostsOut, ...]
    assumptions: tuple[str, ...]
    profile: ProfileRevisionOut | None
    warnings: tuple[NoticeOut, ...]

    @classmethod
    def of(cls, answer: LayerAnswer, profile: ProfileRevision | None = None) -> LayerCostsOut:
        """Return an answer as it is sent."""
        asked = answer.question
        own = answer.pipelines[0].stages if answer.pipelines else None
        costs, parts = asked.costs, _Parts.of(answer)
        priced = costs_of_each([one.work for one in answer.messages], parts.priced)
        return cls(
            layer=LayerOut.of(asked.layer),
            cycles=dict(costs.cycles) if costs else None,
            clock_mhz=costs.clock_mhz if costs else None,
            mapping=asked.stages.mapping,
            handshake=asked.stages.handshake,
            stages=LayerStagesOut.of(own) if own else None,
            with_features=tuple(map(_with_features, answer.pipelines[1:])),
            messages=tuple(
                _message(answer, parts, one, priced[place], answer.tuned[place : place + 1])
                for place, one in enumerate(answer.messages)
            ),
            assumptions=own.assumptions if own else (),
            profile=ProfileRevisionOut.of(profile),
            warnings=notices_out(answer.notices),
        )


def _with_features(one: FeatureStages) -> FeatureStagesOut:
    limits = ConstraintsOut.of(one.stages.limits)
    return FeatureStagesOut(one.features, PipelineOut.of(one.stages.pipeline), limits)


def _message(
    answer: LayerAnswer,
    parts: _Parts,
    message: MessageCosts,
    priced: Sequence[PartCost],
    tuned: Sequence[TunedMessage],
) -> MessageCostsOut:
    found = tuned[0] if tuned else None
    work, full = message.work, message.full_packets
    units, ends = work.units, len(parts.ends)
    every, overhead, *costs = priced
    counts, *counts_of_ends = work.class_counts(parts.counted)
    return MessageCostsOut(
        message_bytes=units.message_bytes,
        words=units.words,
        packets=units.packets,
        acknowledgements=units.acknowledgements,
        partial_packet=units.is_partial,
        counts=counts,
        instructions=every.instructions,
        cycles=every.cycles,
        us=every.us,
        overhead_of_instructions=overhead.share_of_instructions,
        overhead_of_cycles=overhead.share_of_cycles,
        services=tuple(
            ServiceCostOut(service, end, own, *cost)
            for (service, end), own, cost in zip(
                parts.ends, counts_of_ends, costs[:ends], strict=True
            )
        ),
        full_packets=_full_packets(full) if full else None,
        packet_sizes=tuple(map(_packet_size, message.packet_sizes)),
        best=BestCutOut.of(found.cells[0]) if found else None,
        savings=tuple(_savings(answer, parts, costs[ends:], found)),
    )


@dataclass(frozen=True)
class _Parts:
    """The costs that each message's rows are of: what is priced is all, the overhead, each service
    at each of the `ends`, and what each of the `features` removes; counted by class all and these.
    """

    priced: tuple[UnitCosts, ...]
    counted: tuple[UnitCosts, ...]
    ends: tuple[tuple[Service, End], ...]
    features: tuple[FeatureSet, ...]

    @classmethod
    def of(cls, answer: LayerAnswer) -> _Parts:
        sums, sets = answer.messages[0].work.sums, feature_sets(answer.question.features)
        services = tuple(costs for _, _, costs in sums.services)
        removed = map(sums.removed_by, sets)
        return cls(
            (sums.every, sums.overhead, *services, *removed),
            (sums.every, *services),
            tuple((service, end) for service, end, _ in sums.services),
            sets,
        )


def _full_packets(work: Work) -> FullPacketsOut:
    (every,) = work.cost_of([work.sums.every])
    return FullPacketsOut(work.units.words, every.instructions, every.cycles)


def _packet_size(work: Work) -> PacketSizeOut:
    every, overhead = work.cost_of((work.sums.every, work.sums.overhead))
    return PacketSizeOut(
        packet_words=work.units.packet_words,
        packets=work.units.packets,
        instructions=every.instructions,
        cycles=every.cycles,
        overhead_of_instructions=overhead.share_of_instructions,
        overhead_of_cycles=overhead.share_of_cycles,
    )


def _savings(
    answer: LayerAnswer, parts: _Parts, saved: Sequence[PartCost], found: TunedMessage | None
) -> Iterator[FeatureSavingOut]:
    if found is None:
        for features, cost in zip(parts.features, saved, strict=True):
            yield FeatureSavingOut(features, *cost, None, None, None, None)
        return
    before, tuned = found.before, _tuned(answer, found)
    for features, cost in zip(parts.features, saved, strict=True):
        cell, old_us = tuned.get(features, (None, None))
        best = cell.solution if cell else None
        kept_us = before.latency_us - old_us if before and old_us is not None else None
        yield FeatureSavingOut(
            features,
            *cost,
            old_cut_us=old_us,
            best=BestCutOut.of(cell),
            saved_at_old_cut_us=kept_us,
            saved_us=before.latency_us - best.latency_us if before and best else None,
        )


def _tuned(
    answer: LayerAnswer, found: TunedMessage
) -> dict[FeatureSet, tuple[Cell | None, float | None]]:
    """Return the best cut with each set of features, and the latency of the old cut there."""
    sets = (one.features for one in answer.pipelines)
    return dict(zip(sets, zip(found.cells, found.at_old_cut_us, strict=True), strict=True))
