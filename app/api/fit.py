"""POST /fit."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.api.body import read_trace
from app.api.openapi import reads_text
from app.api.respond import json_document
from app.deps import service_of, trace_rules
from app.schemas.fits import FitOut, fit_document
from app.schemas.queries import FitQuery

router = APIRouter(tags=["fit"])


@router.post(
    "/fit",
    response_model=FitOut,
    **reads_text("text/csv", "text/plain", "application/octet-stream", "application/gzip"),
)
async def fit(request: Request, query: Annotated[FitQuery, Query()]) -> Response:
    """Fit the stages of a measured pipeline; the body is the file of measurements."""
    service = service_of(request)
    content = await read_trace(request, **trace_rules(request))
    outcome = await service.fit(
        content, kind=query.kind, save_as=query.save_as, wants_plot=query.plot
    )
    return json_document(fit_document(outcome.fit, outcome.saved, plot=outcome.plot))
