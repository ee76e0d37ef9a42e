# app/verbs/curve/routes.py
"""POST /curve: parse, one operation, return."""

from __future__ import annotations

from functools import partial

from fastapi import Request, Response

from app.api.openapi import reads
from app.api.respond import accepted, json_bytes, keyed, once
from app.http.bodies import read_json
from app.http.dependencies import body_rules, client_of, own_router, prefers_async, service_of
from app.verbs.curve.operation import operation
from contract.curve import CurveIn, CurveOut

router = own_router(tags=["optimise"])
BODIES = (CurveIn,)
OUTPUTS = (CurveOut,)


@router.post("/curve", **reads(CurveIn, 404, may_be_async=True, sends=CurveOut))
@keyed
async def curve(request: Request) -> Response:
    """The latency of messages of every power of two."""
    service = service_of(request)
    asked = await read_json(request, CurveIn, **body_rules(request))
    make = partial(operation, asked, settings=service.context.settings)
    if prefers_async(request):
        return accepted(await service.start_job(make, client_of(request), once(request, accepted)))
    performed = await service.perform(make, client_of(request))
    return json_bytes(performed.outcome.document)
