"""Parts of an answer's page that are computed by themselves, in the render queue."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi import Request, Response

from app.http.call_threads import Requester
from app.http.dependencies import READER_COOKIE, client_of, cookie_rules, service_of
from app.ui.pages import page
from domain.errors import Overloaded

if TYPE_CHECKING:
    pass


_MIN_WAIT_S, _MAX_WAIT_S = 2, 10

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the view: its name in addresses, where it stands, its heading and its template."""

    name: str
    place: str
    title: str
    template: str


def with_reader(request: Request, response: Response) -> Response:
    """Return the response, with a cookie that names this reader where the browser has none yet."""
    if not request.cookies.get(READER_COOKIE):
        reader = secrets.token_hex(8)
        response.set_cookie(READER_COOKIE, reader, samesite="lax", **cookie_rules(request))
    return response


def requester_of(request: Request, id: str) -> Requester:
    """Return the requester of a request: its address and reader, for this answer."""
    return Requester(client_of(request).name, id)


async def explored(request: Request, id: str, what: str, work: Callable[[], T]) -> T:
    """Return what the work returns, queued by reader. Raises what it raises, Overloaded, Cancelled.

    `what` distinguishes questions about the same answer.
    """
    return await service_of(request).pictures.run(
        work,
        client_of(request).wait_disconnected,
        requester=requester_of(request, id),
        question=(what, id),
    )


async def part_of(
    request: Request,
    id: str,
    part: Part,
    work: Callable[[], dict[str, Any]],
    *,
    query: str = "",
    **values: Any,
) -> Response:
    """Show the part with what the work returns; where the queue is full, one that asks again."""
    try:
        found = await explored(request, id, part.name + query, work)
    except Overloaded as refusal:
        if "json" in request.headers.get("accept", ""):
            raise
        return _busy(request, id, part, refusal, query=query)
    return page(request, part.template, headers=_KEPT, **found, **values)


# A stored answer never changes, and going back to it shall not compute its parts again.
_KEPT = {"Cache-Control": "private, max-age=600"}


def _busy(request: Request, id: str, part: Part, refusal: Overloaded, *, query: str) -> Response:
    waiting = service_of(request).pictures.waiting
    wait_s = min(_MAX_WAIT_S, _MIN_WAIT_S + waiting // 4)
    headers = {"Retry-After": str(wait_s)}
    address = f"/ui/answers/{id}/parts/{part.name}{query}"
    values = {"part": part, "address": address, "wait_s": wait_s, "words": refusal.detail}
    return page(request, "answer_busy.html", status=503, headers=headers, **values)
