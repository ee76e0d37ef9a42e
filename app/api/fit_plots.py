"""GET /fits/{id}/plot."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.api.openapi import refuses
from app.api.respond import json_document
from app.deps import client_of, service_of
from app.schemas.fits import FitPlotOut
from app.schemas.queries import NoQuery

router = APIRouter(tags=["fit"])


@router.get("/fits/{id}/plot", response_model=FitPlotOut, **refuses(404, 422, 503))
async def fit_plot(request: Request, id: str, _: Annotated[NoQuery, Query()]) -> Response:
    """What a plot of a stored fit shows, from its stored traces."""
    return json_document(FitPlotOut.of(await service_of(request).plot(id, client_of(request))))
