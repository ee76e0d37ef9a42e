"""Messaging layers: the published ones, and POST /layer-costs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from analysis.layer_cost import disagreements, shipped_layers
from app.api.openapi import reads, refuses
from app.api.respond import accepted, json_bytes, json_document, keyed, once
from app.http.bodies import read_json
from app.http.dependencies import body_rules, client_of, prefers_async, service_of
from app.operations.models import layer_operation
from app.schemas.layer_costs import LayerCostsIn, LayerCostsOut
from app.schemas.layers import LayersOut, PublishedLayerOut, layer_named
from app.schemas.queries import NoQuery

router = APIRouter(tags=["layers"])


@router.get("/layers", **refuses(422, 503, sends=LayersOut))
async def layers(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """The published messaging layers."""
    found = await service_of(request).call(lambda: LayersOut.of(iter(shipped_layers().values())))
    return json_document(found)


@router.get("/layers/{name}", **refuses(404, 422, 503, sends=PublishedLayerOut))
async def layer(request: Request, name: str, _: Annotated[NoQuery, Query()]) -> Response:
    """A published layer, and where its publication contradicts itself."""
    found = await service_of(request).call(
        lambda: PublishedLayerOut.of(layer_named(name), disagreements())
    )
    return json_document(found)


@router.post("/layer-costs", **reads(LayerCostsIn, 404, may_be_async=True, sends=LayerCostsOut))
@keyed
async def layer_costs(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """What a messaging layer's software costs, and what features of a network would save."""
    service = service_of(request)
    asked = await read_json(request, LayerCostsIn, **body_rules(request))
    settings = service.context.settings
    if prefers_async(request):
        stated = once(request, accepted)
        return accepted(await service.start_job(lambda _: layer_operation(asked, settings), stated))
    performed = await service.perform(
        lambda _: layer_operation(asked, settings), client_of(request)
    )
    return json_bytes(performed.outcome.document)
