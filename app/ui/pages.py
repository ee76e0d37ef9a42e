"""Templates to responses: filters, what a page may load and from where, refusals as pages."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import asdict, dataclass
from functools import cache, partial, wraps
from pathlib import Path
from typing import Any, TypeAlias, cast
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException

from app.errors import retry_after_s
from app.http.dependencies import own_router
from app.registry import with_door
from app.schemas.base import problem_out, read_output
from app.text.notices import capitalised, sentence
from app.text.numbers import format_count, format_figure, format_percent, format_signed_percent
from app.text.units import format_time
from contract.problem import ProblemOut
from domain.errors import NotFound, SluiceError
from domain.units import format_bytes

FOLDER = Path(__file__).resolve().parent / "assets"
_KINDS = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
# Files that are served as one: a request takes longer than what it brings. Each is in one of them,
# and not served by itself, for no script may run twice in a page that others are swapped into.
JOINED = {
    "common.js": ("sluice.js", "numbers.js"),
    "workbench.css": ("input.css", "timeline.css", "answer.css", "take_away.css"),
    "workbench.js": (
        *("units.js", "sheet.js", "paste.js", "input.js", "trace.js", "items_file.js"),
        *("charts.js", "answer.js", "take_away.js"),
    ),
}
_FOR_EVER = "public, max-age=31536000, immutable"

router = own_router(include_in_schema=False)


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
    """Return every file that a page can load, by name. Read once, at the start."""
    paths = (path for path in sorted(FOLDER.iterdir()) if path.suffix in _KINDS)
    found = {path.name: path.read_bytes() for path in paths}
    for name, parts in JOINED.items():
        found[name] = b"\n".join(found.pop(part) for part in parts)
    return {name: _asset(name, body) for name, body in found.items()}


def _asset(name: str, body: bytes) -> Asset:
    return Asset(
        name,
        _KINDS[Path(name).suffix],
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


FILTERS: Mapping[str, Callable[..., Any]] = {
    "time_us": format_time,
    "share": format_percent,
    "signed_share": format_signed_percent,
    "capitalised": capitalised,
    "figure": format_figure,
    "grouped": format_count,
    "size": format_bytes,
    "sentence": sentence,
}


# --- templates to responses -----------------------------------------------------------------------


_APP = Path(__file__).resolve().parents[1]
TEMPLATES = (
    _APP / "ui",
    _APP / "ui" / "panel",
    _APP / "web" / "templates",
    *(_APP / "verbs" / verb.name / "page" for verb in with_door("page")),
)
HTML = "text/html; charset=utf-8"
# The bar's links, with the name that a view gives as its `section`.
SECTIONS = (
    ("/", "Workbench"),
    ("/ui/answers", "Answers"),
    ("/ui/profiles", "Profiles"),
    ("/ui/audit", "Audit"),
    ("/ui/delivery", "Models"),
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
        for name in self._templates.list_templates(extensions=("html",)):
            self._templates.get_template(name)

    def html(self, template: str, **values: Any) -> str:
        """Return a template with these values; every text in them is escaped.

        NUL, which stored names may hold, has no place in HTML, not even escaped.
        """
        return self._templates.get_template(template).render(**values).replace("\0", "\ufffd")


@cache
def all_pages() -> Pages:
    """Return the pages of every application of this process: reading and packing takes time."""
    return Pages()


def is_htmx(request: Request) -> bool:
    """Return whether htmx asks, which exchanges the part of the page that its `hx-select` names."""
    return request.headers.get("hx-request") == "true"


def has_own_place(request: Request) -> bool:
    """Return whether a whole page is wanted, not a part for htmx to put into one."""
    return request.headers.get("hx-request-type") != "partial"


def page(
    request: Request,
    template: str,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **values: Any,
) -> Response:
    """Show a whole page, for htmx as well: it takes its part out of the page by itself."""
    pages: Pages = request.app.state.pages
    settings, limits = request.app.state.settings, request.app.state.limits
    root = settings.root_path
    shared = {"status": status, "limits": limits, "root": root, "asks_who": settings.asks_who}
    body = below_root(root, pages.html(template, **shared, **values))
    sent_headers = {
        "Content-Security-Policy": POLICY,
        "Cache-Control": "no-cache",
        **(headers or {}),
    }
    return Response(body, status, sent_headers, media_type=HTML)


# Addresses are written in attributes only, and quotes in texts are escaped: nothing else looks so.
_ADDRESS = re.compile(
    r'(\s(?:href|src|action|formaction|hx-get|hx-post|data-(?:closer|echarts|part|png|send-to))=")(?=/)'
)


def below_root(root: str, html: str) -> str:
    """Return a page with this path before every address of the service in it."""
    return _ADDRESS.sub(lambda found: found[1] + root, html) if root else html


_OWN = re.compile(r"/(?:ui/|\?)[!-\[\]-~]{1,8000}")


def own_address(address: str, *, otherwise: str) -> str:
    """Return the address that a browser sent where it is one of this page's own, else the other."""
    return address if _OWN.fullmatch(address) else otherwise


def moved(request: Request, address: str) -> Response:
    """Lead the browser to where a form has led, by itself or through htmx."""
    if is_htmx(request):
        place = {"path": address, "target": "#main", "select": "#main", "swap": "outerHTML"}
        return Response(status_code=204, headers={"HX-Location": json.dumps(place)})
    return Response(status_code=303, headers={"Location": address})


# --- refusals and failures as pages, in the API's own words ---------------------------------------


View: TypeAlias = Callable[..., Awaitable[Response]]
Handler: TypeAlias = Callable[[Request, Exception], Any]

_PLACES = ("/", "/docs", "/ui")
_OF_THE_BODY = ("content-type", "content-length")


def refused(request: Request, error: SluiceError) -> Response:
    """Show the page of a refusal, with the status of its code."""
    problem = problem_out(error)
    headers = {"Retry-After": str(retry_after_s())} if problem.status == 503 else {}
    return _reported(request, problem, status=problem.status, headers=headers)


def says_refusals(view: View) -> View:
    """Return a view whose refusals are pages, unless JSON is asked for.

    Its first parameter is `request`.
    """

    @wraps(view)
    async def guarded(request: Request, *given: Any, **named: Any) -> Response:
        try:
            return await view(request, *given, **named)
        except SluiceError as error:
            if not _asks_for_page(request):
                raise
            return refused(request, error)

    return guarded


def answer_browsers(app: FastAPI) -> None:
    """Have the refusals of this application be pages for those who look at pages.

    Everyone else gets what the handlers that are registered by now say.
    """
    for kind in (SluiceError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _as_page(cast(Handler, app.exception_handlers[kind])))


def wants_page(path: str, accept: str, *, is_served: bool) -> bool:
    """Return whether a refusal of this path is for someone who looks at pages.

    Below the page's own paths it is, unless JSON is asked for; for paths that nothing serves, where
    HTML is.
    """
    if "text/html" in accept:
        return not is_served or _is_ours(path)
    return _is_ours(path) and "json" not in accept


def failure_page(scope: MutableMapping[str, Any], problem: ProblemOut) -> Response | None:
    """Show the page of an unexpected error, or None where it is not a page that was asked for."""
    if "app" not in scope or not _asks_for_page(request := Request(scope)):
        return None
    return _reported(request, problem, status=500, headers={})


def _is_ours(path: str) -> bool:
    return path in _PLACES or path.startswith("/ui/")


def _asks_for_page(request: Request) -> bool:
    return wants_page(
        request.url.path, request.headers.get("accept", ""), is_served="route" in request.scope
    )


def _as_page(handler: Handler) -> Handler:
    async def handled(request: Request, error: Exception) -> Response:
        stated: Response = await handler(request, error)
        if not _asks_for_page(request):
            return stated
        kept = {name: text for name, text in stated.headers.items() if name not in _OF_THE_BODY}
        problem = read_output(ProblemOut, bytes(stated.body))
        return _reported(request, problem, status=stated.status_code, headers=kept)

    return handled


def _reported(
    request: Request, problem: ProblemOut, *, status: int, headers: Mapping[str, str]
) -> Response:
    template = "refused.html" if has_own_place(request) else "refused_part.html"
    sent_headers = {**headers, "Vary": "Accept"}
    back = request.query_params.get("back", "")  # of a form with a wrong key
    if request.method == "GET":
        back = f"{quote(request.scope['path'])}?{request.url.query}"
    shown = {**_values(problem), "back": own_address(back.removesuffix("?"), otherwise="")}
    return page(request, template, status=status, headers=sent_headers, **shown)


def _values(problem: ProblemOut) -> dict[str, Any]:
    return {
        "section": "",
        "title": problem.title,
        "detail": problem.detail,
        "code": problem.code,
        # A single fault is in the detail already.
        "faults": problem.errors if len(problem.errors) > 1 else (),
    }
