"""POST /thresholds: parse, one operation, return."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Query, Request, Response

from app.api.openapi import reads
from app.api.respond import accepted, json_bytes, keyed, once
from app.http.bodies import read_json
from app.http.dependencies import body_rules, client_of, own_router, prefers_async, service_of
from app.schemas.queries import NoQuery
from app.verbs.thresholds.operation import operation
from contract.thresholds import ThresholdsIn, ThresholdsOut

router = own_router(tags=["optimise"])
BODIES = (ThresholdsIn,)
OUTPUTS = (ThresholdsOut,)


@router.post("/thresholds", **reads(ThresholdsIn, 404, may_be_async=True, sends=ThresholdsOut))
@keyed
async def thresholds(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Latencies by threshold or pulse size, the best of each message, and the best one for all."""
    service = service_of(request)
    asked = await read_json(request, ThresholdsIn, **body_rules(request))
    make = partial(operation, asked, settings=service.context.settings)
    if prefers_async(request):
        return accepted(await service.start_job(make, client_of(request), once(request, accepted)))
    performed = await service.perform(make, client_of(request))
    return json_bytes(performed.outcome.document)
