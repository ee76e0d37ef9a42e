"""POST /measurement-plans: parse, one operation, return."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response

from app.api.openapi import reads
from app.api.respond import json_bytes, keyed
from app.http.bodies import read_json
from app.http.dependencies import body_rules, client_of, own_router, service_of
from app.schemas.base import dump_json
from app.schemas.queries import NoQuery
from app.verbs.plan.answer import planned
from app.verbs.plan.operation import operation
from contract.plan import MeasurementPlanIn, MeasurementPlanOut

router = own_router(tags=["fit"])
BODIES = (MeasurementPlanIn,)
OUTPUTS = (MeasurementPlanOut,)


@router.post("/measurement-plans", **reads(MeasurementPlanIn, sends=MeasurementPlanOut))
@keyed
async def measurement_plan(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Which message sizes to measure next, or that enough is known. Nothing is stored."""
    asked = await read_json(request, MeasurementPlanIn, **body_rules(request))
    found = await service_of(request).run(operation(asked), client_of(request))
    return json_bytes(dump_json(planned(found)))
