"""POST /audit."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.api.openapi import reads
from app.api.respond import accepted, json_bytes
from app.bodies import read_json
from app.deps import body_rules, client_of, prefers_async, service_of
from app.operations.audits import audit_operation
from app.schemas.audit import AuditIn, AuditOut
from app.schemas.queries import NoQuery

router = APIRouter(tags=["optimise"])


@router.post("/audit", response_model=AuditOut, **reads(AuditIn, 404, 409, may_be_async=True))
async def audit(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """What an existing setting costs over the optimum, and what to change."""
    service = service_of(request)
    asked = await read_json(request, AuditIn, **body_rules(request))
    make = partial(audit_operation, asked, settings=service.context.settings)
    if prefers_async(request):
        return accepted(await service.start_job(make))
    performed = await service.perform(make, client_of(request))
    return json_bytes(performed.outcome.document)
