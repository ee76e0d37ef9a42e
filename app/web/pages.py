"""Templates to responses: one place that renders, and says what a page may load."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import Any

from fastapi import Request, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from app.schemas.queries import MAX_PAGE_SIZE
from app.schemas.service import LimitsOut
from app.web.assets import Asset, read_assets
from app.web.filters import FILTERS

TEMPLATES = Path(__file__).resolve().parent / "templates"
HTML = "text/html; charset=utf-8"
# The bar's links, with the name that a view gives as its `section`.
SECTIONS = (
    ("/", "Workbench"),
    ("/ui/answers", "Answers"),
    ("/ui/profiles", "Profiles"),
    ("/ui/audit", "Audit"),
    ("/docs", "API"),
)
# Nothing inline, nothing from elsewhere: neither scripts nor styles nor frames.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


class Pages:
    """The templates and the files that they load; it never changes."""

    def __init__(self) -> None:
        self.assets: Mapping[str, Asset] = read_assets()
        self._templates = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._templates.filters.update(FILTERS)
        self._templates.policies["json.dumps_function"] = partial(json.dumps, default=asdict)
        self._templates.globals["asset"] = self._address
        self._templates.globals["sections"] = SECTIONS

    def _address(self, name: str) -> str:
        return self.assets[name].address

    def warm_up(self) -> None:
        """Compile every template, which the first reader would otherwise wait for."""
        for name in self._templates.list_templates():
            self._templates.get_template(name)

    def html(self, template: str, **values: Any) -> str:
        """A template with these values; every text in them is escaped.

        NUL, which stored names may hold, has no place in HTML, not even escaped.
        """
        return self._templates.get_template(template).render(**values).replace("\0", "\ufffd")


@cache
def all_pages() -> Pages:
    """The pages of every application of this process: reading and packing the files takes time."""
    return Pages()


def is_htmx(request: Request) -> bool:
    """Whether htmx asks, which exchanges the part of the page that its `hx-select` names."""
    return request.headers.get("hx-request") == "true"


def has_own_place(request: Request) -> bool:
    """Whether a whole page is wanted: htmx says where it wants only a part to put into one."""
    return request.headers.get("hx-request-type") != "partial"


def page(
    request: Request,
    template: str,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **values: Any,
) -> Response:
    """A whole page, for htmx as well: what it exchanges it takes out of the page by itself."""
    pages: Pages = request.app.state.pages
    limits = LimitsOut.of(request.app.state.settings, max_page_size=MAX_PAGE_SIZE)
    body = pages.html(template, status=status, limits=limits, **values)
    told = {
        "Content-Security-Policy": POLICY,
        "Cache-Control": "no-cache",
        **(headers or {}),
    }
    return Response(body, status, told, media_type=HTML)


def moved(request: Request, address: str) -> Response:
    """Where a form has led to: the browser goes there, by itself or through htmx."""
    if is_htmx(request):
        place = {"path": address, "target": "#main", "select": "#main", "swap": "outerHTML"}
        return Response(status_code=204, headers={"HX-Location": json.dumps(place)})
    return Response(status_code=303, headers={"Location": address})
