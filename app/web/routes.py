"""The page's routes, put into an application; and how a browser signs in."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute

from app.http.access import SESSION_COOKIE, SIGN_IN, SIGN_OUT, Gate
from app.http.dependencies import cookie_rules, is_encrypted, own_router, service_of
from app.questions import keys
from app.registry import modules
from app.schemas.base import prepare_output
from app.schemas.queries import MAX_PAGE_SIZE
from app.schemas.service import limits_out
from app.ui import pages
from app.ui.pages import all_pages, answer_browsers, moved, own_address, page, says_refusals
from app.web.forms import sent_fields
from domain.errors import ScopeMissing, Unauthenticated
from models.records import KeyScope

log = logging.getLogger("sluice")

_DOCS = own_router(include_in_schema=False)
# Anybody may send it, and what bodies may take together is everybody's.
_MAX_SIGN_IN_BYTES = 1024
_ROUTERS = (
    pages.router,
    _DOCS,
    *(module.router for module in modules("page.views")),
)


def attach_pages(app: FastAPI) -> None:
    """Have this application serve the page."""
    app.state.pages = all_pages()
    app.state.limits = limits_out(app.state.settings, max_page_size=MAX_PAGE_SIZE)
    app.state.has_warned_of_proxy = False
    app.state.page_methods = _methods()
    for router in _ROUTERS:
        app.router.routes.extend(router.routes)
    answer_browsers(app)


def warm_up() -> None:
    """Compile every template, and load what the first view needs, which the first reader would
    otherwise wait for.
    """
    from app.plots.timeline_svg import timeline_picture  # noqa: F401
    from app.ui.panel.choices import trace_formats
    from contract.optimize import OptimizeOut

    trace_formats()
    prepare_output(OptimizeOut)
    all_pages().warm_up()


@_DOCS.get("/docs")
async def docs(request: Request) -> Response:
    """Show the operations of /openapi.json, to read and to try: Swagger UI in the page's frame."""
    return page(request, "docs.html", section="API")


@_DOCS.get(SIGN_IN)
async def sign_in_page(request: Request) -> Response:
    """Show the form that takes a key."""
    _warn_of_untrusted_proxy(request)
    return page(request, "sign_in.html", section="", is_asked=_gate(request) is not None, back="")


@_DOCS.post(SIGN_IN)
@says_refusals
async def sign_in(request: Request) -> Response:
    """Give the browser a key of its own, for a time, in the place of the one that was typed in."""
    _warn_of_untrusted_proxy(request)
    gate = _gate(request)
    fields = await sent_fields(request, _MAX_SIGN_IN_BYTES)
    known = None if gate is None else gate.by_secret(fields.get("key", "").strip().encode())
    if known is None:
        raise Unauthenticated("expected a key that is valid")
    if gate is not None and (too_many := gate.in_turn(known)):
        raise too_many
    if not known.may(KeyScope.READ):
        raise ScopeMissing("expected a key with the scope read: pages are read")
    service = service_of(request).of(known.owner, known.changed_by)
    made = await service.write(partial(keys.sign_in, service.context.store, known.key_id))
    await service.lookups.refresh()
    answer = moved(request, own_address(request.query_params.get("back", ""), otherwise="/"))
    answer.set_cookie(
        SESSION_COOKIE,
        made.secret,
        max_age=keys.SESSION_S,
        samesite="strict",
        **cookie_rules(request),
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
    answer.delete_cookie(SESSION_COOKIE, samesite="strict", **cookie_rules(request))
    return answer


def _warn_of_untrusted_proxy(request: Request) -> None:
    """Say once that a proxy's word does not count, without which the cookie is not `Secure`."""
    said = request.headers.get("x-forwarded-proto", "").strip()
    if said != "https" or is_encrypted(request) or request.app.state.has_warned_of_proxy:
        return
    request.app.state.has_warned_of_proxy = True
    peer = request.client.host if request.client else "an unknown address"
    log.warning(
        "X-Forwarded-Proto: https came from %s, which SLUICE_TRUSTED_PROXIES does not name: "
        "browsers that sign in get a cookie without Secure",
        peer,
    )


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
