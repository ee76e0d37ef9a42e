"""What contract/layer_costs.py declares, as the domain has it."""

from __future__ import annotations

from analysis.layer_answer import LayerQuestion
from analysis.layer_stages import Handshake, StageMapping, StageQuestion
from app.schemas.base import read_request
from app.schemas.layer import given_layer
from app.schemas.stages import rules_of, stage_of
from contract.layer_costs import (
    LayerCostsIn,
)
from domain.errors import InconsistentInput
from domain.instruction_counts import CycleModel, in_order
from domain.machine import check_plain_stage
from domain.messaging_layer import MessagingLayer, NetworkFeature
from domain.units import format_bytes


def question_of(asked: LayerCostsIn, *, fragment_cap: int) -> LayerQuestion:
    """Return the question.

    Raises NotFound, InconsistentInput, MissingClassCost, NotPublished, NeedsPlainStages.
    """
    layer = given_layer(asked.layer)
    features = set(layer.features if asked.features is None else asked.features)
    between = tuple(
        stage_of(stage, number, field=f"between.{number - 1}")
        for number, stage in enumerate(asked.between, start=1)
    )
    for place, stage in enumerate(asked.between):
        field = f"between.{place}"
        check_plain_stage(rules_of(stage, place + 1, field=field), place, field)
    return LayerQuestion(
        layer=layer,
        costs=_costs(asked, layer),
        message_bytes=tuple(asked.message_bytes),
        features=tuple(feature for feature in NetworkFeature if feature in features),
        packet_words=tuple(asked.packet_words),
        stages=StageQuestion(
            mapping=StageMapping(asked.mapping),
            handshake=Handshake(asked.handshake),
            between=between,
            wire_us=asked.wire_us,
            max_packet_words=max(asked.packet_words, default=None),
        ),
        tune=asked.tune,
        out_of_order=asked.out_of_order,
        relative_gap=asked.relative_gap,
        time_limit_s=asked.time_limit_s,
        fragment_cap=fragment_cap,
    )


def _costs(asked: LayerCostsIn, layer: MessagingLayer) -> CycleModel | None:
    counted = {name for component in layer.components for name in component.counts.classes}
    known = in_order({*counted, *dict(layer.cycles)})
    for name in asked.cycles or ():
        if name not in known:
            raise InconsistentInput(
                f"expected a class of this layer: {', '.join(known)}", field=f"cycles.{name}"
            )
    prices = {**dict(layer.cycles), **(asked.cycles or {})}
    if not prices and asked.clock_mhz is None:
        return None
    return CycleModel(tuple(prices.items()), asked.clock_mhz)


def title(request: bytes) -> str:
    """Return what a job is called on its page."""
    asked = read_request(LayerCostsIn, request)
    name = asked.layer if isinstance(asked.layer, str) else asked.layer.name
    sizes = asked.message_bytes
    of = f"{len(sizes)} messages" if len(sizes) > 1 else format_bytes(sizes[0])
    return f"Costs of {name} on {of}"
