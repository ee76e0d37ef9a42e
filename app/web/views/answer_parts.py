"""The turns of those who look at answers, and what a part says while others are served first."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import Request, Response

from app.deps import READER_COOKIE, client_of, service_of
from app.execution.render_queue import Requester
from app.web.pages import page
from domain.errors import Overloaded

_LEAST_WAIT_S, _MOST_WAIT_S = 2, 10

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the view: its name in addresses, where it stands, its heading and its template."""

    name: str
    place: str
    title: str
    template: str


def with_reader(request: Request, response: Response) -> Response:
    """The response, with a name for this reader's turns where the browser has none yet."""
    if not request.cookies.get(READER_COOKIE):
        response.set_cookie(READER_COOKIE, secrets.token_hex(8), httponly=True, samesite="lax")
    return response


def requester_of(request: Request, id: str) -> Requester:
    """Whose turn a request takes: that of its address and reader, for this answer."""
    return Requester(client_of(request).name, id)


async def explored(request: Request, id: str, what: str, work: Callable[[], T]) -> T:
    """What the work returns, at this reader's turn. Raises what it raises, Overloaded, Cancelled.

    `what` tells apart what is asked about the same answer.
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
    """The part with what the work returns; where too much waits, one that asks again by itself."""
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
    wait_s = min(_MOST_WAIT_S, _LEAST_WAIT_S + waiting // 4)
    headers = {"Retry-After": str(wait_s)}
    address = f"/ui/answers/{id}/parts/{part.name}{query}"
    values = {"part": part, "address": address, "wait_s": wait_s, "words": refusal.detail}
    return page(request, "answer_busy.html", status=503, headers=headers, **values)
