"""POST /compare."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.api.openapi import reads
from app.api.respond import accepted, json_document
from app.bodies import read_json
from app.deps import body_rules, gone, prefers_async, service_of
from app.flows.durable_jobs import JobKind
from app.schemas.compare import CompareIn, CompareOut
from app.schemas.queries import NoQuery

router = APIRouter(tags=["optimise"])


@router.post("/compare", response_model=CompareOut, **reads(CompareIn, 404, may_be_async=True))
async def compare(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """What each strategy gives on each message size."""
    service = service_of(request)
    asked = await read_json(request, CompareIn, **body_rules(request))
    comparison = asked.to_domain()
    if prefers_async(request):
        job = await service.start_job(
            JobKind.COMPARE, lambda: asked.as_job(service.resolve(comparison))
        )
        return accepted(job)
    return json_document(CompareOut.of(await service.compare(comparison, gone(request))))
