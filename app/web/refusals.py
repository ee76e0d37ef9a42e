"""What a page says where a flow has refused: the same words as the API's, as HTML."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeAlias

from fastapi import Request, Response

from app.errors import Overloaded, kind_of, problem_document
from app.web.pages import page
from domain.errors import SluiceError

View: TypeAlias = Callable[..., Awaitable[Response]]


def refused(request: Request, error: SluiceError) -> Response:
    """The page of a refusal, with the status of its code."""
    document: dict[str, Any] = problem_document(error)
    status = kind_of(error.code).status
    headers = {"Retry-After": str(Overloaded.retry_after_s)} if status == 503 else {}
    return page(
        request,
        "refused.html",
        status=status,
        headers=headers,
        section="",
        title=document["title"],
        detail=document["detail"],
        code=error.code,
    )


def says_refusals(view: View) -> View:
    """A view whose refusals are pages. Its first parameter is `request`."""

    @wraps(view)
    async def guarded(request: Request, *given: Any, **named: Any) -> Response:
        try:
            return await view(request, *given, **named)
        except SluiceError as error:
            return refused(request, error)

    return guarded
