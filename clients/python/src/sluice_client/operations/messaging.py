"""Messaging layers: what their software costs, and what features of a network would save."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sluice_client.calls import Call, get, reads, reads_page, segment, send
from sluice_client.layer_answers import LayerCosts, LayerSummary, PublishedLayer
from sluice_client.operations.as_job import as_job
from sluice_client.shapes import Stage

_DEFAULT_LIMIT_S = 10.0  # the service's own, where the request names none


def layers() -> Call[tuple[LayerSummary, ...]]:
    """Return the published messaging layers."""
    page = reads_page(LayerSummary)
    return get("/layers", lambda answer: page(answer).items)


def layer(name: str) -> Call[PublishedLayer]:
    """Return a published layer, and where its publication contradicts itself."""
    return get(f"/layers/{segment(name)}", reads(PublishedLayer))


def layer_costs(
    layer: str | Mapping[str, Any],
    message_bytes: Sequence[int],
    *,
    cycles: Mapping[str, float] | None = None,
    clock_mhz: float | None = None,
    features: Sequence[str] | None = None,
    packet_words: Sequence[int] | None = None,
    mapping: str | None = None,
    handshake: str | None = None,
    between: Sequence[Stage] | None = None,
    wire_us: float | None = None,
    out_of_order: float | None = None,
    tune: bool | None = None,
    relative_gap: float | None = None,
    time_limit_s: float | None = None,
    save_as: str | None = None,
) -> Call[LayerCosts]:
    """Return what a layer, by name or as a document, costs on messages of these sizes.

    `features` are those whose savings are wanted, each that would remove something where None.
    With `tune` each message is cut anew for each set of them, within `time_limit_s` for all.
    `save_as` stores the stages of the layer as it is.
    """
    document = {
        "layer": layer if isinstance(layer, str) else dict(layer),
        "message_bytes": list(message_bytes),
        "cycles": None if cycles is None else dict(cycles),
        "clock_mhz": clock_mhz,
        "features": None if features is None else list(features),
        "packet_words": None if packet_words is None else list(packet_words),
        "mapping": mapping,
        "handshake": handshake,
        "between": None if between is None else [stage.as_json() for stage in between],
        "wire_us": wire_us,
        "out_of_order": out_of_order,
        "tune": tune,
        "relative_gap": relative_gap,
        "time_limit_s": time_limit_s,
        "save_as": save_as,
    }
    return send(
        "POST",
        "/layer-costs",
        reads(LayerCosts),
        document,
        may_repeat=save_as is None,  # a second one would store a second revision
        takes_s=time_limit_s or _DEFAULT_LIMIT_S,
    )


start_layer_costs = as_job(layer_costs)
