"""The page's routes, put into an application."""

from __future__ import annotations

from fastapi import FastAPI

from app.web import assets
from app.web.pages import Pages
from app.web.views import workbench

_ROUTERS = (assets.router, workbench.router)


def attach_pages(app: FastAPI) -> None:
    """Have this application serve the page."""
    app.state.pages = Pages()
    for router in _ROUTERS:
        app.include_router(router)
