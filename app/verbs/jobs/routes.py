"""Durable jobs: their state, their events, their end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated, get_args

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse

from app.api.openapi import refuses
from app.api.respond import json_document
from app.http.dependencies import own_router, service_of, still_admitted
from app.http.service import Service
from app.jobs.ledger import shown_job
from app.schemas.base import dump_json
from app.schemas.jobs import job_out
from app.schemas.queries import NoQuery
from contract.jobs import AnyJobOut
from domain.errors import Overloaded, QuotaExceeded, StoreUnavailable
from models.records import JobRecord

MAX_EVENT_STREAMS = 500
MAX_EVENT_STREAMS_OF_OWNER = 125  # where everybody says who he is

router = own_router(prefix="/jobs", tags=["jobs"])
BODIES = ()
OUTPUTS = get_args(AnyJobOut)
_EVENTS = {
    200: {
        "description": "An event for each change, the last one when the job has ended",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}
_STOPPING = {202: {"description": "The job is stopping", "model": AnyJobOut}}


@router.get("/{id}", **refuses(404, 422, 503, sends=AnyJobOut))
async def job(request: Request, id: str, _: Annotated[NoQuery, Query()]) -> Response:
    """Where a job stands, with the best answer so far and the bound on it."""
    service = service_of(request)
    found = await service.call(lambda: shown_job(service.context.store, id))
    return json_document(job_out(found))


@router.delete("/{id}", **refuses(404, 422, 503, also=_STOPPING, sends=AnyJobOut))
async def cancel(request: Request, id: str, _: Annotated[NoQuery, Query()]) -> Response:
    """Stop a job; its best answer so far is kept. 202 while it is still stopping."""
    found = await service_of(request).cancel_job(id)
    return json_document(job_out(found), status=200 if found.state.is_terminal else 202)


@router.get("/{id}/events", response_class=Response, **refuses(404, 422, 503, also=_EVENTS))
async def events(request: Request, id: str, _: Annotated[NoQuery, Query()]) -> Response:
    """Server-sent events: `progress` while the job is open, then `done`, `failed` or `cancelled`.

    Each event carries the job as GET /jobs/{id} gives it, so a client that connects again misses
    nothing. It ends where the key that asked for it is revoked or has expired.
    """
    stream = EventStream(
        service_of(request),
        id,
        request.headers.get("last-event-id", ""),
        may_go_on=partial(still_admitted, request),
    )
    first = await stream.first()
    return StreamingResponse(
        stream.events(first),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


# --- the events of one job for one client ---------------------------------------------------------


_LOOK_S = 0.25
_KEEP_ALIVE_S = 15.0


class EventStream:
    """Watches the job's row and sends each change. The row is the truth also after a restart."""

    def __init__(
        self,
        service: Service,
        identifier: str,
        last_event_id: str,
        *,
        may_go_on: Callable[[], bool],
    ) -> None:
        self._service = service
        self._may_go_on = may_go_on
        self._identifier = identifier
        self._owner = service.context.store.owner
        self._streams = service.counts.streams_of_owner
        is_number = last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 10
        self._number = int(last_event_id) if is_number else 0

    async def first(self) -> JobRecord:
        """Return the job as it stands. Raises NotFound, Overloaded where too many watch, and
        QuotaExceeded where too many of one owner do.
        """
        if self._service.counts.open_streams >= MAX_EVENT_STREAMS:
            raise Overloaded("more event streams are open than this service accepts")
        settings = self._service.context.settings
        if settings.asks_who and self._streams[self._owner] >= MAX_EVENT_STREAMS_OF_OWNER:
            raise QuotaExceeded(
                f"expected at most {MAX_EVENT_STREAMS_OF_OWNER} open event streams of one owner"
            )
        return await self._look()

    async def events(self, job: JobRecord) -> AsyncIterator[bytes]:
        """Yield the events from this state on, to the end of the job or of the right to see it."""
        self._service.counts.open_streams += 1
        self._streams[self._owner] += 1
        try:
            yield self._event(job)
            sent_s = time.monotonic()
            while not job.state.is_terminal:
                await asyncio.sleep(_LOOK_S)
                if not self._may_go_on():
                    return
                before, job = job, await self._again(job)
                if job != before:
                    yield self._event(job)
                    sent_s = time.monotonic()
                elif time.monotonic() - sent_s > _KEEP_ALIVE_S:
                    yield b": still running\n\n"
                    sent_s = time.monotonic()
        finally:
            self._service.counts.open_streams -= 1
            self._streams[self._owner] -= 1
            if not self._streams[self._owner]:
                del self._streams[self._owner]

    async def _again(self, last: JobRecord) -> JobRecord:
        """Return the job as it is now, or as it was last where it cannot be read at this moment."""
        try:
            return await self._look()
        except (StoreUnavailable, Overloaded):
            return last

    async def _look(self) -> JobRecord:
        return await self._service.call(
            lambda: shown_job(self._service.context.store, self._identifier)
        )

    def _event(self, job: JobRecord) -> bytes:
        self._number += 1
        name = job.state.value if job.state.is_terminal else "progress"
        data = dump_json(job_out(job))
        return b"id: %d\nevent: %s\ndata: %s\n\n" % (self._number, name.encode(), data)
