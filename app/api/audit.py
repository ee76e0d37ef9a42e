"""POST /audit."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.api.openapi import reads
from app.api.respond import accepted, json_bytes
from app.audit_apart import AuditApart
from app.bodies import read_json
from app.deps import body_rules, gone, prefers_async, service_of
from app.flows.audit_setting import audit_question
from app.schemas.audit import AuditIn, AuditOut, render_audit
from app.schemas.queries import NoQuery

router = APIRouter(tags=["optimise"])


@router.post("/audit", response_model=AuditOut, **reads(AuditIn, 404, 409, may_be_async=True))
async def audit(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """What an existing setting costs over the optimum, and what to change."""
    service = service_of(request)
    settings = service.context.settings
    asked = await read_json(request, AuditIn, **body_rules(request))
    if prefers_async(request):
        return accepted(await service.work.audit(asked))
    scope, question = asked.to_domain(), asked.to_question()
    prepared = await service.call(lambda: service.prepare(question))
    wanted = audit_question(prepared, scope, fragment_cap=settings.max_fragments)
    child = AuditApart(wanted, memory_bytes=settings.worker_memory_bytes)
    found = await service.apart(child, gone(request))
    return json_bytes(render_audit(found))
