"""Durable jobs: their state, their events, their end."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from app.api.events import EventStream
from app.api.openapi import refuses
from app.api.respond import json_document
from app.deps import service_of
from app.jobs.ledger import shown_job
from app.schemas.jobs import JobOut
from app.schemas.queries import NoQuery

router = APIRouter(prefix="/jobs", tags=["jobs"])
_EVENTS = {
    200: {
        "description": "An event for each change, the last one when the job has ended",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}
_STOPPING = {202: {"description": "The job is stopping", "model": JobOut}}


@router.get("/{id}", response_model=JobOut, **refuses(404, 422, 503))
async def job(request: Request, id: str, _: Annotated[NoQuery, Query()]) -> Response:
    """Where a job stands, with the best answer so far and the bound on it."""
    service = service_of(request)
    found = await service.call(lambda: shown_job(service.context.store, id))
    return json_document(JobOut.of(found))


@router.delete("/{id}", response_model=JobOut, **refuses(404, 422, 503, also=_STOPPING))
async def cancel(request: Request, id: str, _: Annotated[NoQuery, Query()]) -> Response:
    """Stop a job; its best answer so far is kept. 202 while it is still stopping."""
    found = await service_of(request).cancel_job(id)
    return json_document(JobOut.of(found), status=200 if found.state.is_terminal else 202)


@router.get("/{id}/events", response_class=Response, **refuses(404, 422, 503, also=_EVENTS))
async def events(request: Request, id: str, _: Annotated[NoQuery, Query()]) -> Response:
    """Server-sent events: `progress` while the job is open, then `done`, `failed` or `cancelled`.

    Each event carries the job as GET /jobs/{id} gives it, so a client that connects again misses
    nothing.
    """
    stream = EventStream(service_of(request), id, request.headers.get("last-event-id", ""))
    first = await stream.first()
    return StreamingResponse(
        stream.events(first),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )
