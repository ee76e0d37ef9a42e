"""A messaging layer as a document of JSON, written and read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from domain.errors import InvalidInput
from domain.instruction_counts import Exact, InstructionCounts
from domain.messaging_layer import Component, End, MessagingLayer, Per, Service, When


def layer_document(layer: MessagingLayer) -> dict[str, Any]:
    """Return the layer as JSON has it; `layer_of_document` reads it again."""
    return {
        "name": layer.name,
        "source": layer.source,
        "word_bytes": layer.word_bytes,
        "packet_words": layer.packet_words,
        "acknowledge_every": layer.acknowledge_every,
        "crossings_before": layer.crossings_before,
        "cycles": dict(layer.cycles),
        "out_of_order": layer.out_of_order,
        "components": [_component_document(component) for component in layer.components],
    }


def layer_of_document(document: Mapping[str, Any]) -> MessagingLayer:
    """Return the layer of a document whose fields have the types of `layer_document`.

    What stands there by default may be missing. Raises InvalidInput naming the field by its path.
    """
    given = dict(document)
    parts: Sequence[Mapping[str, Any]] = given.pop("components")
    components = tuple(_component(part, place) for place, part in enumerate(parts))
    prices: Mapping[str, float] = given.pop("cycles", None) or {}
    cycles = tuple((name, float(price)) for name, price in prices.items())
    return MessagingLayer(components=components, cycles=cycles, **given)


def _component_document(component: Component) -> dict[str, Any]:
    counts = component.counts.by_class
    return {
        "name": component.name,
        "service": component.service.value,
        "end": component.end.value,
        "per": component.per.value,
        "when": component.when.value,
        "counts": {name: _plain(count) for name, count in counts},
    }


def _plain(count: Exact) -> int | float:
    return int(count) if count.denominator == 1 else float(count)


def _component(document: Mapping[str, Any], place: int) -> Component:
    try:
        return Component(
            name=document["name"],
            service=Service(document["service"]),
            end=End(document["end"]),
            per=Per(document["per"]),
            counts=InstructionCounts.of(document["counts"]),
            when=When(document.get("when", When.DURING)),
        )
    except InvalidInput as refusal:
        raise InvalidInput(refusal.detail, field=f"components.{place}.{refusal.field}") from None
