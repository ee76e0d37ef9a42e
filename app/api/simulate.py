"""POST /simulate."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.api.body import read_json
from app.api.openapi import reads
from app.api.respond import json_bytes
from app.deps import body_rules, service_of
from app.flows.simulate import run
from app.schemas.base import dump_json
from app.schemas.queries import NoQuery
from app.schemas.simulate import SimulateIn, SimulateOut, simulation_document

router = APIRouter(tags=["optimise"])


@router.post("/simulate", response_model=SimulateOut, **reads(SimulateIn, 404))
async def simulate(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """When each fragment is in each stage, for a cut that is given."""
    service = service_of(request)
    asked = await read_json(request, SimulateIn, **body_rules(request))
    source, cut = asked.source(), asked.cut()
    body = await service.call(
        lambda: dump_json(simulation_document(run(service.context.store, source, cut)))
    )
    return json_bytes(body)
