"""What a page says where something is refused or fails: the API's own words, as HTML.

The API's handlers make the answer; where a browser has asked for a page it is shown as one. So a
refusal has one status and one text, whoever asks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import wraps
from typing import Any, TypeAlias, cast

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from app.schemas.base import read_output
from app.schemas.problems import ProblemOut
from app.web.pages import has_own_place, page
from domain.errors import Overloaded, SluiceError

View: TypeAlias = Callable[..., Awaitable[Response]]
Handler: TypeAlias = Callable[[Request, Exception], Any]

_PLACES = ("/", "/docs", "/ui")
_OF_THE_BODY = ("content-type", "content-length")


def refused(request: Request, error: SluiceError) -> Response:
    """The page of a refusal, with the status of its code."""
    problem = ProblemOut.of(error)
    headers = {"Retry-After": str(Overloaded.retry_after_s)} if problem.status == 503 else {}
    return _told(request, problem, status=problem.status, headers=headers)


def says_refusals(view: View) -> View:
    """A view whose refusals are pages, unless JSON is asked for.

    Its first parameter is `request`.
    """

    @wraps(view)
    async def guarded(request: Request, *given: Any, **named: Any) -> Response:
        try:
            return await view(request, *given, **named)
        except SluiceError as error:
            if not _asks_for_page(request):
                raise
            return refused(request, error)

    return guarded


def answer_browsers(app: FastAPI) -> None:
    """Have the refusals of this application be pages for those who look at pages.

    Everyone else gets what the handlers that are registered by now say.
    """
    for kind in (SluiceError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _as_page(cast(Handler, app.exception_handlers[kind])))


def wants_page(path: str, accept: str, *, is_served: bool) -> bool:
    """Whether a refusal of this path is for someone who looks at pages.

    Below the page's own paths it is, unless JSON is asked for; for paths that nothing serves, where
    HTML is.
    """
    if "text/html" in accept:
        return not is_served or _is_ours(path)
    return _is_ours(path) and "json" not in accept


def failure_page(scope: MutableMapping[str, Any], problem: ProblemOut) -> Response | None:
    """The page of an unexpected error, or None where it is not a page that was asked for."""
    if "app" not in scope or not _asks_for_page(request := Request(scope)):
        return None
    return _told(request, problem, status=500, headers={})


def _is_ours(path: str) -> bool:
    return path in _PLACES or path.startswith("/ui/")


def _asks_for_page(request: Request) -> bool:
    return wants_page(
        request.url.path, request.headers.get("accept", ""), is_served="route" in request.scope
    )


def _as_page(handler: Handler) -> Handler:
    async def handled(request: Request, error: Exception) -> Response:
        said: Response = await handler(request, error)
        if not _asks_for_page(request):
            return said
        kept = {name: text for name, text in said.headers.items() if name not in _OF_THE_BODY}
        problem = read_output(ProblemOut, bytes(said.body))
        return _told(request, problem, status=said.status_code, headers=kept)

    return handled


def _told(
    request: Request, problem: ProblemOut, *, status: int, headers: Mapping[str, str]
) -> Response:
    template = "refused.html" if has_own_place(request) else "refused_part.html"
    told = {**headers, "Vary": "Accept"}
    return page(request, template, status=status, headers=told, **_values(problem))


def _values(problem: ProblemOut) -> dict[str, Any]:
    return {
        "section": "",
        "title": problem.title,
        "detail": problem.detail,
        "code": problem.code,
        # A single fault is what the detail says already.
        "faults": problem.errors if len(problem.errors) > 1 else (),
    }
