"""The HTTP interface, to read and to try: Swagger UI in the page's own frame."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from app.web.pages import page

router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def docs(request: Request) -> Response:
    """Show the operations of /openapi.json."""
    return page(request, "docs.html", section="API")
