"""POST /compare."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.api.openapi import reads
from app.api.respond import accepted, json_bytes
from app.bodies import read_json
from app.deps import body_rules, client_of, prefers_async, service_of
from app.operations.compare import compare_operation
from app.schemas.compare import CompareIn, CompareOut
from app.schemas.queries import NoQuery

router = APIRouter(tags=["optimise"])


@router.post("/compare", response_model=CompareOut, **reads(CompareIn, 404, may_be_async=True))
async def compare(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """What each strategy gives on each message size."""
    service = service_of(request)
    asked = await read_json(request, CompareIn, **body_rules(request))
    make = partial(
        compare_operation, asked.to_domain(), asked.as_job, settings=service.context.settings
    )
    if prefers_async(request):
        return accepted(await service.start_job(make))
    performed = await service.perform(make, client_of(request))
    return json_bytes(performed.outcome.document)
