"""What a layer costs, as contract/layer_costs.py sends it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analysis.comparison import Cell
from analysis.feature_savings import FeatureStages, TunedMessage
from analysis.layer_answer import LayerAnswer, MessageCosts
from analysis.layer_cost import (
    FeatureSet,
    PartCost,
    UnitCosts,
    Work,
    costs_of_each,
    feature_sets,
)
from analysis.layer_stages import LayerStages
from app.schemas.base import notices_out, revision_out
from app.schemas.layer import layer_out
from app.schemas.stages import constraints_out, pipeline_out
from contract.layer import NetworkFeature as NetworkFeatureName
from contract.layer_costs import (
    BestCutOut,
    FeatureSavingOut,
    FeatureStagesOut,
    FullPacketsOut,
    LayerCostsOut,
    LayerStagesOut,
    MessageCostsOut,
    PacketSizeOut,
    ServiceCostOut,
)
from domain.messaging_layer import End, Service
from domain.profile import ProfileRevision


def sent(answer: LayerAnswer, profile: ProfileRevision | None = None) -> LayerCostsOut:
    """Return an answer as it is sent."""
    asked = answer.question
    own = answer.pipelines[0].stages if answer.pipelines else None
    costs, parts = asked.costs, _PricedParts.priced_in(answer)
    priced = costs_of_each([message.work for message in answer.messages], parts.priced)
    return LayerCostsOut(
        layer=layer_out(asked.layer),
        cycles=dict(costs.cycles) if costs else None,
        clock_mhz=costs.clock_mhz if costs else None,
        mapping=asked.stages.mapping.value,
        handshake=asked.stages.handshake.value,
        stages=_stages(own) if own else None,
        with_features=tuple(map(_with_features, answer.pipelines[1:])),
        messages=tuple(
            _message(answer, parts, message, priced[place], answer.tuned[place : place + 1])
            for place, message in enumerate(answer.messages)
        ),
        assumptions=own.assumptions if own else (),
        profile=revision_out(profile),
        warnings=notices_out(answer.notices),
    )


def _stages(stages: LayerStages) -> LayerStagesOut:
    return LayerStagesOut(
        pipeline_out(stages.pipeline),
        constraints_out(stages.limits),
        stages.last_fragment_us_at_most,
    )


def _names(features: FeatureSet) -> tuple[NetworkFeatureName, ...]:
    return tuple(feature.value for feature in features)


def _best_cut(cell: Cell | None) -> BestCutOut | None:
    if cell is None:
        return None
    found = cell.solution
    return BestCutOut(
        latency_us=found.latency_us if found else None,
        lower_bound_us=found.lower_bound_us if found else None,
        relative_gap=found.relative_gap if found else None,
        fragments=found.schedule.fragments if found else None,
        largest_fragment_bytes=max(found.schedule.fragment_bytes) if found else None,
        status=found.status.value if found else None,
        declined=cell.declined,
    )


def _with_features(one: FeatureStages) -> FeatureStagesOut:
    limits = constraints_out(one.stages.limits)
    return FeatureStagesOut(_names(one.features), pipeline_out(one.stages.pipeline), limits)


def _message(
    answer: LayerAnswer,
    parts: _PricedParts,
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
            ServiceCostOut(service.value, end.value, own, *cost)
            for (service, end), own, cost in zip(
                parts.ends, counts_of_ends, costs[:ends], strict=True
            )
        ),
        full_packets=_full_packets(full) if full else None,
        packet_sizes=tuple(map(_packet_size, message.packet_sizes)),
        best=_best_cut(found.cells[0]) if found else None,
        savings=tuple(_savings(answer, parts, costs[ends:], found)),
    )


@dataclass(frozen=True)
class _PricedParts:
    """The costs that each message's rows are of: what is priced is all, the overhead, each service
    at each of the `ends`, and what each of the `features` removes; counted by class all and these.
    """

    priced: tuple[UnitCosts, ...]
    counted: tuple[UnitCosts, ...]
    ends: tuple[tuple[Service, End], ...]
    features: tuple[FeatureSet, ...]

    @classmethod
    def priced_in(cls, answer: LayerAnswer) -> _PricedParts:
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
    answer: LayerAnswer, parts: _PricedParts, saved: Sequence[PartCost], found: TunedMessage | None
) -> Iterator[FeatureSavingOut]:
    if found is None:
        for features, cost in zip(parts.features, saved, strict=True):
            yield FeatureSavingOut(_names(features), *cost, None, None, None, None)
        return
    before, tuned = found.before, _tuned(answer, found)
    for features, cost in zip(parts.features, saved, strict=True):
        cell, old_us = tuned.get(features, (None, None))
        best = cell.solution if cell else None
        kept_us = before.latency_us - old_us if before and old_us is not None else None
        yield FeatureSavingOut(
            _names(features),
            *cost,
            old_cut_us=old_us,
            best=_best_cut(cell),
            saved_at_old_cut_us=kept_us,
            saved_us=before.latency_us - best.latency_us if before and best else None,
        )


def _tuned(
    answer: LayerAnswer, found: TunedMessage
) -> dict[FeatureSet, tuple[Cell | None, float | None]]:
    """Return the best cut with each set of features, and the latency of the old cut there."""
    sets = (pipeline.features for pipeline in answer.pipelines)
    return dict(zip(sets, zip(found.cells, found.at_old_cut_us, strict=True), strict=True))
