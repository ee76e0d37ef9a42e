"""GET /layers, GET /layers/{name} and POST /layer-costs: parse, one operation, return."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Query, Request, Response

from analysis.published_layers import disagreements, shipped_layers
from app.api.openapi import reads, refuses
from app.api.respond import accepted, json_bytes, json_document, keyed, once
from app.http.bodies import read_json
from app.http.dependencies import body_rules, client_of, own_router, prefers_async, service_of
from app.schemas.layer import layer_named, layers_out, published_layer_out
from app.schemas.queries import NoQuery
from app.verbs.layer.operation import operation
from contract.layer import LayersOut, PublishedLayerOut
from contract.layer_costs import LayerCostsIn, LayerCostsOut

router = own_router(tags=["layers"])
BODIES = (LayerCostsIn,)
OUTPUTS = (LayersOut, PublishedLayerOut, LayerCostsOut)


@router.get("/layers", **refuses(422, 503, sends=LayersOut))
async def layers(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """The published messaging layers."""
    found = await service_of(request).call(lambda: layers_out(shipped_layers().values()))
    return json_document(found)


@router.get("/layers/{name}", **refuses(404, 422, 503, sends=PublishedLayerOut))
async def layer(request: Request, name: str, _: Annotated[NoQuery, Query()]) -> Response:
    """A published layer, and where its publication contradicts itself."""
    found = await service_of(request).call(
        lambda: published_layer_out(layer_named(name), disagreements())
    )
    return json_document(found)


@router.post("/layer-costs", **reads(LayerCostsIn, 404, may_be_async=True, sends=LayerCostsOut))
@keyed
async def layer_costs(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """What a messaging layer's software costs, and what features of a network would save."""
    service = service_of(request)
    asked = await read_json(request, LayerCostsIn, **body_rules(request))
    make = partial(operation, asked, settings=service.context.settings)
    if prefers_async(request):
        return accepted(await service.start_job(make, client_of(request), once(request, accepted)))
    performed = await service.perform(make, client_of(request))
    return json_bytes(performed.outcome.document)
