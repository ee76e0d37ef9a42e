"""What the service says of itself: limits, health, metrics."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from app.api.openapi import refuses
from app.api.respond import json_document
from app.deps import service_of
from app.execution.engine import Pool
from app.metrics import CONTENT_TYPE
from app.schemas.queries import MAX_PAGE_SIZE, NoQuery
from app.schemas.service import AliveOut, LimitsOut, ReadyOut
from domain.errors import NotReady

router = APIRouter(tags=["service"])
_PING_LIMIT_S = 5.0
_METRICS = {
    200: {
        "description": "Prometheus text format",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
}


@router.get("/limits", response_model=LimitsOut, **refuses(422))
async def limits(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Everything that a request is measured against."""
    settings = service_of(request).context.settings
    return json_document(LimitsOut.of(settings, max_page_size=MAX_PAGE_SIZE))


@router.get("/healthz", response_model=AliveOut, **refuses(422))
async def alive(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """The process answers."""
    return json_document(AliveOut("alive"))


@router.get("/readyz", response_model=ReadyOut, **refuses(422, 503))
async def ready(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """The database and the workers can be reached."""
    service = service_of(request)
    store, engine = service.context.store, service.context.engine
    try:
        await asyncio.wait_for(service.call(store.ping), _PING_LIMIT_S)
    except TimeoutError:
        raise NotReady("the database does not answer") from None
    workers = engine.capacity(Pool.SOLVE).ready
    if workers < 1:
        raise NotReady("no worker is ready")
    database: Literal["sqlite", "postgresql"] = (
        "postgresql" if store.dialect == "postgresql" else "sqlite"
    )
    return json_document(ReadyOut("ready", database, workers))


@router.get("/metrics", response_class=Response, **refuses(422, also=_METRICS))
async def metrics(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Requests, answers and what is waiting, for Prometheus."""
    service = service_of(request)
    return Response(service.exposition(), media_type=CONTENT_TYPE)
