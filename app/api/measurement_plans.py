"""POST /measurement-plans."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.api.openapi import reads
from app.api.respond import json_bytes
from app.bodies import read_json
from app.deps import body_rules, service_of
from app.flows.measurement_plan import plan
from app.schemas.base import dump_json
from app.schemas.measurement_plans import MeasurementPlanIn, MeasurementPlanOut
from app.schemas.queries import NoQuery

router = APIRouter(tags=["fit"])


@router.post("/measurement-plans", response_model=MeasurementPlanOut, **reads(MeasurementPlanIn))
async def measurement_plan(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Which message sizes to measure next, or that enough is known. Nothing is stored."""
    service = service_of(request)
    asked = await read_json(request, MeasurementPlanIn, **body_rules(request))
    given, limits = asked.given(), asked.limits()
    body = await service.call(lambda: dump_json(MeasurementPlanOut.of(plan(given, limits))))
    return json_bytes(body)
