"""What contract/layer.py declares: a layer as the domain has it, and layers as they are sent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from analysis.published_layers import Disagreement, shipped_layers
from app.schemas.base import dump_json, notices_out, same_named
from contract.layer import (
    ComponentOut,
    CountChangeOut,
    CountChecksOut,
    CountedCallOut,
    CountedLayerOut,
    DisagreementOut,
    LayerIn,
    LayerOut,
    LayersOut,
    LayerSummaryOut,
    PublishedLayerOut,
)
from domain.errors import InvalidInput, NotFound
from domain.instruction_counts import InstructionCounts
from domain.layer_document import layer_document, layer_of_document
from domain.messaging_layer import End, MessagingLayer

if TYPE_CHECKING:
    from measuring.count import CountedCall, CountedLibrary, CountPlan
    from measuring.counted_layer import CountChange, CountedLayer

MAX_DOCUMENT_BYTES = 2**20


def given_layer(asked: str | LayerIn) -> MessagingLayer:
    """Return a layer by name or of its document. Raises NotFound, and InvalidInput naming the field
    inside `layer`.
    """
    if isinstance(asked, str):
        return layer_named(asked)
    document = asdict(asked)
    if len(dump_json(document)) > MAX_DOCUMENT_BYTES:
        raise InvalidInput(
            f"expected a layer of at most {MAX_DOCUMENT_BYTES} bytes of JSON", field="layer"
        )
    try:
        return layer_of_document(document)
    except InvalidInput as refusal:
        raise InvalidInput(refusal.detail, field=f"layer.{refusal.field}") from None


def document_in(document: dict[str, Any]) -> dict[str, Any]:
    """Return a layer's document, also out of what GET /layers/{name} and `layer count` have."""
    inner = document.get("layer")
    return inner if isinstance(inner, dict) else document


def layer_named(name: str) -> MessagingLayer:
    """Return a published layer. Raises NotFound with the names there are."""
    found = shipped_layers().get(name)
    if found is None:
        names = ", ".join(shipped_layers())
        raise NotFound(f"expected a published layer: {names}", field="layer", subject=name)
    return found


# --- layers, out ----------------------------------------------------------------------------------


def layer_out(layer: MessagingLayer) -> LayerOut:
    """Return a layer as it is sent."""
    parts = tuple(
        ComponentOut(
            name=component.name,
            service=component.service.value,
            end=component.end.value,
            per=component.per.value,
            when=component.when.value,
            counts=counts_out(component.counts),
        )
        for component in layer.components
    )
    return LayerOut(**{**layer_document(layer), "components": parts})


def published_layer_out(
    layer: MessagingLayer, known: tuple[Disagreement, ...]
) -> PublishedLayerOut:
    """Return a published layer as it is sent."""
    own = (found for found in known if found.layer == layer.name)
    return PublishedLayerOut(
        layer_out(layer), tuple(same_named(DisagreementOut, found) for found in own)
    )


def layers_out(layers: Iterable[MessagingLayer]) -> LayersOut:
    """Return the published layers as they are sent."""
    return LayersOut(tuple(same_named(LayerSummaryOut, layer) for layer in layers))


def counts_out(counts: InstructionCounts) -> dict[str, float]:
    """Return instructions by class as they are sent."""
    return {name: float(count) for name, count in counts.by_class}


# --- counts of an installed library ---------------------------------------------------------------


def counted_call_out(call: CountedCall) -> CountedCallOut:
    """Return a call as it is written."""
    return CountedCallOut(
        end=call.end.value,
        message_bytes=call.message_bytes,
        instructions=call.instructions,
        data=call.data,
        identical=call.identical,
        repetitions=call.repetitions,
        middle=call.middle,
        countable=call.is_countable,
        services={service.value: both[0] for service, both in call.by_service().items()},
    )


def counted_layer_out(
    plan: CountPlan, counted: CountedLibrary, made: CountedLayer
) -> CountedLayerOut:
    """Return counts as they are written."""
    return CountedLayerOut(
        layer=layer_out(made.layer),
        mpicc=plan.mpicc,
        launcher=plan.mpi.starts_with,
        version=counted.version,
        compiler=counted.compiler,
        valgrind=counted.valgrind,
        tunables=counted.tunables,
        calls=tuple(map(counted_call_out, counted.calls)),
        warnings=notices_out(made.notices),
    )


def countable_instructions(baseline: CountedLayerOut) -> dict[tuple[End, int], int]:
    """Return the instructions of each call that is countable, by end and size."""
    return {
        (End(call.end), call.message_bytes): call.instructions
        for call in baseline.calls
        if call.countable
    }


def count_checks_out(
    version: str, found: tuple[CountChange, ...], max_more: float
) -> CountChecksOut:
    """Return a check as it is written."""
    is_kept = all(change.share is not None and change.share <= max_more for change in found)
    calls = tuple(same_named(CountChangeOut, change) for change in found)
    return CountChecksOut(version, max_more, is_kept, calls)
