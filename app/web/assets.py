"""The files that pages load, under addresses that name their content and so never change."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request, Response

from domain.errors import NotFound

FOLDER = Path(__file__).resolve().parent / "assets"
_KINDS = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
_FOR_EVER = "public, max-age=31536000, immutable"

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Asset:
    """One file: its bytes, the same compressed, and the address that names its content."""

    name: str
    media_type: str
    body: bytes
    compressed: bytes
    digest: str

    @property
    def address(self) -> str:
        """Where it is served; another content has another address."""
        return f"/ui/assets/{self.digest[:16]}/{self.name}"


def read_assets() -> Mapping[str, Asset]:
    """Return every file of the folder that a page can load, by name. Read once, at the start."""
    found = (path for path in sorted(FOLDER.iterdir()) if path.suffix in _KINDS)
    return {path.name: _asset(path) for path in found}


def _asset(path: Path) -> Asset:
    body = path.read_bytes()
    return Asset(
        path.name,
        _KINDS[path.suffix],
        body,
        gzip.compress(body, 6, mtime=0),
        hashlib.sha256(body).hexdigest(),
    )


@router.get("/ui/assets/{digest}/{name}")
async def asset(request: Request, digest: str, name: str) -> Response:
    """Show a file that was read at the start; a name is never made a path."""
    found = request.app.state.pages.assets.get(name)
    if found is None or digest != found.digest[:16]:
        raise NotFound("there is no such file")
    headers = {"Cache-Control": _FOR_EVER, "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
        return Response(found.compressed, headers=headers, media_type=found.media_type)
    return Response(found.body, headers=headers, media_type=found.media_type)
