"""The page's routes, put into an application."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import FastAPI
from fastapi.routing import APIRoute

from app.web import assets
from app.web.pages import Pages
from app.web.refusals import answer_browsers
from app.web.views import answers, docs, downloads, fits, workbench

_ROUTERS = (assets.router, docs.router, workbench.router, answers.router, fits.router)


def attach_pages(app: FastAPI) -> None:
    """Have this application serve the page."""
    app.state.pages = Pages()
    app.state.page_methods = _methods()
    for router in _ROUTERS:
        app.include_router(router)
    answer_browsers(app)


def _methods() -> Mapping[str, frozenset[str]]:
    # Several routes may share a path; a refusal of a method names those of all of them.
    found: dict[str, frozenset[str]] = {}
    for router in _ROUTERS:
        for route in router.routes:
            if isinstance(route, APIRoute):
                found[route.path] = found.get(route.path, frozenset()) | (route.methods or set())
    return found
