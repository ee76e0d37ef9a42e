"""The page's routes, put into an application; and how a browser signs in."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute

from app.http.access import SESSION_COOKIE, SIGN_IN, SIGN_OUT, Gate
from app.http.dependencies import own_router, service_of
from app.questions import keys
from app.web import layers, models, pages
from app.web.answers import answers, compare, stored
from app.web.audits import audits
from app.web.fits import fits
from app.web.forms import sent_fields
from app.web.jobs import jobs
from app.web.pages import all_pages, answer_browsers, moved, own_address, page, says_refusals
from app.web.profiles import profiles
from app.web.workbench import workbench
from domain.errors import Unauthenticated

_DOCS = own_router(include_in_schema=False)
# Anybody may send it, and what bodies may take together is everybody's.
_MAX_SIGN_IN_BYTES = 1024
_ROUTERS = (
    pages.router,
    _DOCS,
    workbench.router,
    answers.router,
    jobs.router,
    fits.router,
    stored.router,
    compare.router,
    audits.router,
    models.router,
    layers.router,
    profiles.router,
)


def attach_pages(app: FastAPI) -> None:
    """Have this application serve the page."""
    app.state.pages = all_pages()
    app.state.page_methods = _methods()
    for router in _ROUTERS:
        app.router.routes.extend(router.routes)
    answer_browsers(app)


@_DOCS.get("/docs")
async def docs(request: Request) -> Response:
    """Show the operations of /openapi.json, to read and to try: Swagger UI in the page's frame."""
    return page(request, "docs.html", section="API")


@_DOCS.get(SIGN_IN)
async def sign_in_page(request: Request) -> Response:
    """Show the form that takes a key."""
    return page(request, "sign_in.html", section="", is_asked=_gate(request) is not None, back="")


@_DOCS.post(SIGN_IN)
@says_refusals
async def sign_in(request: Request) -> Response:
    """Give the browser a key of its own, for a time, in the place of the one that was typed in."""
    gate = _gate(request)
    fields = await sent_fields(request, _MAX_SIGN_IN_BYTES)
    known = None if gate is None else gate.by_secret(fields.get("key", "").strip().encode())
    if known is None:
        raise Unauthenticated("expected a key that is valid")
    if gate is not None and (too_many := gate.in_turn(known)):
        raise too_many
    service = service_of(request).of(known.owner, known.changed_by)
    made = await service.write(partial(keys.sign_in, service.context.store, known.key_id))
    await service.lookups.refresh()
    answer = moved(request, own_address(request.query_params.get("back", ""), otherwise="/"))
    answer.set_cookie(
        SESSION_COOKIE,
        made.secret,
        max_age=keys.SESSION_S,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
        path=_cookie_path(request),
    )
    return answer


@_DOCS.post(SIGN_OUT)
@says_refusals
async def sign_out(request: Request) -> Response:
    """End the browser's key."""
    gate = _gate(request)
    secret = request.cookies.get(SESSION_COOKIE, "").encode()
    known = None if gate is None else gate.by_secret(secret)
    if known is not None:
        service = service_of(request).of(known.owner, known.changed_by)
        await service.write(partial(keys.revoke_key, service.context.store, known.key_id))
        await service.lookups.refresh()
    answer = moved(request, SIGN_IN)
    answer.delete_cookie(
        SESSION_COOKIE, path=_cookie_path(request), httponly=True, samesite="strict"
    )
    return answer


def _cookie_path(request: Request) -> str:
    """Return where the cookie is sent: not to what else a proxy offers under the same name."""
    root: str = request.app.state.settings.root_path
    return root or "/"


def _gate(request: Request) -> Gate | None:
    found: Gate | None = request.app.state.gate
    return found


def _methods() -> Mapping[str, frozenset[str]]:
    # Several routes may share a path; a refusal of a method names those of all of them.
    found: dict[str, frozenset[str]] = {}
    for router in _ROUTERS:
        for route in router.routes:
            if isinstance(route, APIRoute):
                found[route.path] = found.get(route.path, frozenset()) | (route.methods or set())
    return found
