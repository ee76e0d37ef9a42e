"""POST /audit: parse, one operation, return."""

from __future__ import annotations

from functools import partial
from typing import Annotated, get_args

from fastapi import Query, Request, Response

from app.api.openapi import reads
from app.api.respond import accepted, json_bytes, keyed, once
from app.http.bodies import read_json
from app.http.dependencies import body_rules, client_of, own_router, prefers_async, service_of
from app.schemas.queries import NoQuery
from app.verbs.audit.operation import operation
from contract.audit import AnyAuditOut, AuditIn

router = own_router(tags=["optimise"])
BODIES = (AuditIn,)
OUTPUTS = get_args(AnyAuditOut)


@router.post("/audit", **reads(AuditIn, 404, 409, may_be_async=True, sends=AnyAuditOut))
@keyed
async def audit(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """What an existing setting costs over the optimum of the model, and what to change."""
    service = service_of(request)
    asked = await read_json(request, AuditIn, **body_rules(request))
    make = partial(operation, asked, settings=service.context.settings)
    if prefers_async(request):
        return accepted(await service.start_job(make, client_of(request), once(request, accepted)))
    performed = await service.perform(make, client_of(request))
    return json_bytes(performed.outcome.document)
