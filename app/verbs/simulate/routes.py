"""POST /simulate: parse, run, return; as data, or drawn."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from fastapi import Query, Request, Response

from app.api.openapi import reads
from app.api.respond import json_bytes, keyed
from app.http.bodies import read_json
from app.http.dependencies import body_rules, client_of, own_router, service_of
from app.questions.items import ItemsCut, run_items
from app.questions.simulate import draw, run
from app.schemas.base import dump_json
from app.schemas.queries import Query as QueryIn
from app.schemas.source import options_of, source_of
from app.verbs.simulate.answer import sent, sent_items
from app.verbs.simulate.request import cut_of, items_cut
from contract.simulate import (
    DeliveredOut,
    ItemsRunOut,
    MachineRunOut,
    PricedCutOut,
    SimulateIn,
    SimulateOut,
)
from domain.errors import ItemsDeclined

router = own_router(tags=["optimise"])
BODIES = (SimulateIn,)
OUTPUTS = (DeliveredOut, ItemsRunOut, MachineRunOut, PricedCutOut, SimulateOut)
SVG = "image/svg+xml"


class SimulationFormat(StrEnum):
    """Every interval as data, or all of them as a picture."""

    JSON = "json"
    SVG = "svg"


class SimulateQuery(QueryIn):
    """What to answer with, where `Accept` does not say it."""

    format: SimulationFormat | None = None


_MEDIA = {SimulationFormat.JSON: "application/json", SimulationFormat.SVG: SVG}
_PICTURE: dict[int, dict[str, Any]] = {200: {"content": {SVG: {"schema": {"type": "string"}}}}}
# Opened by itself the picture is a page of this service: nothing is loaded, its own colours aside.
_POLICY = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}


@router.post(
    "/simulate",
    **reads(
        SimulateIn,
        404,
        also=_PICTURE,
        sends=SimulateOut | DeliveredOut | MachineRunOut | ItemsRunOut | PricedCutOut,
    ),
)
@keyed
async def simulate(request: Request, query: Annotated[SimulateQuery, Query()]) -> Response:
    """When each fragment is in each stage, for a cut that is given: as data, or drawn."""
    service = service_of(request)
    asked = await read_json(request, SimulateIn, **body_rules(request))
    between = items_cut(asked)
    if between is not None:
        return await _of_items(request, asked, between, query.format or _accepted(request))
    cut = cut_of(asked)

    found = await service.prepare(
        lambda stored: run(stored, source_of(asked), options_of(asked), cut), client_of(request)
    )
    if (query.format or _accepted(request)) is SimulationFormat.SVG:
        picture = await service.call(lambda: draw(found, cut))
        return Response(picture, headers=_POLICY, media_type=SVG)
    return json_bytes(await service.call(lambda: dump_json(sent(found))))


async def _of_items(
    request: Request, asked: SimulateIn, cut: ItemsCut, form: SimulationFormat
) -> Response:
    """Run a cut between items. Raises ItemsDeclined for a picture."""
    if form is SimulationFormat.SVG:
        raise ItemsDeclined(
            "a timeline needs a message that may be cut at any byte", field="format"
        )
    service = service_of(request)
    found = await service.prepare(
        lambda stored: run_items(stored, source_of(asked), options_of(asked), cut),
        client_of(request),
    )
    return json_bytes(await service.call(lambda: dump_json(sent_items(found))))


def _accepted(request: Request) -> SimulationFormat:
    """Return the first media type that the client names and that there is; else JSON."""
    for part in ",".join(request.headers.getlist("accept")).split(","):
        named = part.split(";")[0].strip().lower()
        for wanted, media in _MEDIA.items():
            if named == media:
                return wanted
    return SimulationFormat.JSON
