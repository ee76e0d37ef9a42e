"""POST /crossover: parse, one operation, return."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Query, Request, Response

from app.api.openapi import reads
from app.api.respond import json_bytes, keyed
from app.http.bodies import read_json
from app.http.dependencies import body_rules, client_of, own_router, service_of
from app.schemas.queries import NoQuery
from app.verbs.crossover.operation import operation
from contract.crossover import CrossoverIn, CrossoverOut

router = own_router(tags=["optimise"])
BODIES = (CrossoverIn,)
OUTPUTS = (CrossoverOut,)


@router.post("/crossover", **reads(CrossoverIn, 404, sends=CrossoverOut))
@keyed
async def crossover(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """The sizes at which one path of a message overtakes another, and what a threshold costs."""
    service = service_of(request)
    asked = await read_json(request, CrossoverIn, **body_rules(request))
    make = partial(operation, asked, settings=service.context.settings)
    performed = await service.perform(make, client_of(request))
    return json_bytes(performed.outcome.document)
