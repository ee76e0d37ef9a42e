"""The page's routes, put into an application."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.routing import APIRoute

from app.http.dependencies import own_origin
from app.web import layers, models, pages
from app.web.answers import answers, compare, stored
from app.web.audits import audits
from app.web.fits import fits
from app.web.jobs import jobs
from app.web.pages import all_pages, answer_browsers, page
from app.web.profiles import profiles
from app.web.workbench import workbench

_DOCS = APIRouter(include_in_schema=False)
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
        app.include_router(router, dependencies=[Depends(own_origin)])
    answer_browsers(app)


@_DOCS.get("/docs")
async def docs(request: Request) -> Response:
    """Show the operations of /openapi.json, to read and to try: Swagger UI in the page's frame."""
    return page(request, "docs.html", section="API")


def _methods() -> Mapping[str, frozenset[str]]:
    # Several routes may share a path; a refusal of a method names those of all of them.
    found: dict[str, frozenset[str]] = {}
    for router in _ROUTERS:
        for route in router.routes:
            if isinstance(route, APIRoute):
                found[route.path] = found.get(route.path, frozenset()) | (route.methods or set())
    return found
