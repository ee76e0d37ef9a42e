"""The page /docs and its files, all from this checkout: it works without the internet."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, Response

from domain.errors import NotFound

STATIC = Path(__file__).resolve().parent.parent / "static"
_KINDS = {
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "swagger-ui.css": "text/css; charset=utf-8",
    "favicon-32x32.png": "image/png",
    "docs.js": "text/javascript; charset=utf-8",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)

router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def docs() -> Response:
    """The operations, to read and to try."""
    page = (STATIC / "docs.html").read_bytes()
    headers = {"Content-Security-Policy": _POLICY}
    return Response(page, headers=headers, media_type="text/html; charset=utf-8")


@router.get("/static/{name}")
async def static(name: str) -> Response:
    """A file of the page. Only those listed here; the name is never made a path."""
    kind = _KINDS.get(name)
    if kind is None:
        raise NotFound("there is no such file")
    headers = {"Cache-Control": "public, max-age=86400"}
    return Response((STATIC / name).read_bytes(), headers=headers, media_type=kind)
