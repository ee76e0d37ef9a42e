"""The workbench: where a pipeline or a trace goes in."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from app.web.pages import page
from app.web.refusals import says_refusals

router = APIRouter(include_in_schema=False)


@router.get("/")
@says_refusals
async def workbench(request: Request) -> Response:
    """The empty workbench."""
    return page(request, "workbench.html", section="Workbench")
