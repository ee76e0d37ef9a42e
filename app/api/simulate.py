"""POST /simulate."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from app.api.openapi import reads
from app.api.respond import json_bytes
from app.bodies import read_json
from app.deps import body_rules, service_of
from app.flows.simulate import draw, run
from app.schemas.base import dump_json
from app.schemas.simulate import SimulateIn, SimulateOut, SimulateQuery, SimulationFormat

router = APIRouter(tags=["optimise"])

SVG = "image/svg+xml"
_MEDIA = {SimulationFormat.JSON: "application/json", SimulationFormat.SVG: SVG}
_PICTURE: dict[int, dict[str, Any]] = {200: {"content": {SVG: {"schema": {"type": "string"}}}}}
# Opened by itself the picture is a page of this service: nothing is loaded, its own colours aside.
_POLICY = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}


@router.post("/simulate", response_model=SimulateOut, **reads(SimulateIn, 404, also=_PICTURE))
async def simulate(request: Request, query: Annotated[SimulateQuery, Query()]) -> Response:
    """When each fragment is in each stage, for a cut that is given: as data, or drawn."""
    service = service_of(request)
    asked = await read_json(request, SimulateIn, **body_rules(request))
    source, cut = asked.source(), asked.cut()
    if (query.format or _accepted(request)) is SimulationFormat.SVG:
        picture = await service.call(lambda: draw(run(service.context.store, source, cut), cut))
        return Response(picture, headers=_POLICY, media_type=SVG)
    body = await service.call(
        lambda: dump_json(SimulateOut.of(run(service.context.store, source, cut)))
    )
    return json_bytes(body)


def _accepted(request: Request) -> SimulationFormat:
    """The first media type that the client names and that there is; else JSON."""
    for part in ",".join(request.headers.getlist("accept")).split(","):
        named = part.split(";")[0].strip().lower()
        for wanted, media in _MEDIA.items():
            if named == media:
                return wanted
    return SimulationFormat.JSON
