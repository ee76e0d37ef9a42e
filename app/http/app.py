"""The application's outermost layers: the fast path, HEAD, counts, errors that nothing caught.

HEAD is GET without its body (RFC 9110, section 9.3.2): one layer around the application turns it
into a GET, so that every path with a GET has it and no route can be forgotten.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Callable, Iterable, Set
from contextlib import ExitStack
from typing import TypeAlias

import orjson
from fastapi import FastAPI, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.http.admission import refused_unread
from app.http.fastpath.responses import SECURITY, AsgiResponse
from app.http.metrics import Metrics
from app.schemas.base import problem_out
from app.telemetry import REQUEST, Tracing, end_request, events
from contract.problem import ProblemOut
from domain.errors import InvalidInput, Overloaded, SluiceError


class HeadersSent(Exception):
    """Ends an answer after its headers: nobody reads its body."""


def as_get(scope: Scope) -> Scope:
    """Return the request as a GET; the server keeps its own, and sends no body."""
    return {**scope, "method": "GET"}


def headers_only(send: Send) -> Send:
    """Return a `send` that leaves the body out.

    Raises HeadersSent where more of the body would come: a stream would go on unread.
    """

    async def without_body(message: Message) -> None:
        if message["type"] != "http.response.body":
            await send(message)
            return
        await send({"type": "http.response.body", "body": b""})
        if message.get("more_body", False):
            raise HeadersSent

    return without_body


def with_head(methods: Set[str]) -> Set[str]:
    """Return the methods of a path, with the one that comes with GET."""
    return methods | {"HEAD"} if "GET" in methods else methods


# --- the outermost layers -------------------------------------------------------------------------


_ADDRESSES = (b"location", b"content-location")

Ask: TypeAlias = Callable[[Scope], AsgiResponse | None]
AsPage: TypeAlias = Callable[[Scope, ProblemOut], Response | None]

log = logging.getLogger("sluice")
_UNMATCHED = "unmatched"
_HTML = b"text/html"
_REQUEST_ID = b"x-request-id"
_IDENTIFIER = re.compile(rb"[A-Za-z0-9._-]{1,64}")
# Nothing for other hosts. Under "no-referrer" a page's own forms would come from nowhere: browsers
# then send `Origin: null`, as they do for foreign pages that hide where they are.
_OWN_REFERRER = (b"referrer-policy", b"same-origin")


def no_page(scope: Scope, problem: ProblemOut) -> None:
    """Return no page: for an application that has none."""


class RootPath:
    """The path below which a proxy offers the application, which itself knows nothing of it.

    Requests lose it where they have it, addresses in the headers of answers get it. Those in pages
    get it where pages are made.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._raw = path.encode("ascii")

    def inside(self, scope: Scope) -> Scope:
        """Return the request as it is without the path."""
        path, raw = scope["path"], scope.get("raw_path")
        inner = {**scope, "app_root_path": self._path}
        if path == self._path or path.startswith(self._path + "/"):
            inner["path"] = path[len(self._path) :] or "/"
            if raw is not None:
                inner["raw_path"] = raw.removeprefix(self._raw) or b"/"
        return inner

    def outside(self, send: Send) -> Send:
        """Return a `send` whose addresses have the path."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [(name, self._placed(name, value)) for name, value in message["headers"]]
                message = {**message, "headers": headers}
            await send(message)

        return sent

    def _placed(self, name: bytes, value: bytes) -> bytes:
        if name in _ADDRESSES and value.startswith(b"/"):
            return self._raw + value
        if name == b"hx-location":
            place = orjson.loads(value)
            return orjson.dumps({**place, "path": self._path + place["path"]})
        return value


class FastPathApp(FastAPI):
    """The framework's application behind the fast path.

    What the fast path answers, and what overload refuses, is sent and counted here, before any of
    the framework's own layers, each of which would cost more than the answer.
    """

    def use_fast_path(self, ask: Ask, metrics: Metrics) -> None:
        """Ask this first, from now on."""
        self._ask, self._metrics = ask, metrics

    def below(self, root_path: str, paths: Iterable[str]) -> None:
        """Be offered below this path by a proxy, which may hand it on or leave it out.

        Raises InvalidInput where it begins as one of these `paths`, which are the routes': requests
        for what is there would lose it.
        """
        first = root_path[1:].partition("/")[0]
        taken = {path[1:].partition("/")[0] for path in paths}
        if first in taken - {""}:
            raise InvalidInput(
                f"expected SLUICE_ROOT_PATH not to begin with /{first}, which is a route",
                field="SLUICE_ROOT_PATH",
            )
        self._root = RootPath(root_path) if root_path else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or handle another event of the server."""
        if scope["type"] == "http":
            if self._root is not None:
                scope, send = self._root.inside(scope), self._root.outside(send)
            started_s = time.perf_counter()
            served = None
            try:
                served = self._ask(scope)
            except Exception:  # the framework may still be able to answer
                log.exception("unexpected error in the fast path")
            if served is None and (service := getattr(self.state, "service", None)) is not None:
                served = refused_unread(service.admissions, scope)
            if served is not None:
                start, end, (route, status) = served
                await send(start)
                await send(end)
                elapsed_s = time.perf_counter() - started_s
                self._metrics.request(scope["method"], route, status, elapsed_s)
                if status == 503:
                    self._metrics.refused(Overloaded.code)
                return
        await super().__call__(scope, receive, send)


class Outermost:
    """Wraps the application. What nobody caught is logged, and answered without its text.

    Refusals, and answers to requests that bring one, have an X-Request-ID: the request's own where
    it is a word of at most 64 letters, digits, `.`, `_` and `-`, else a new one. The log has it.

    `as_page` makes a page of such an answer's document, for browsers.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, *, as_page: AsPage = no_page) -> None:
        self._app = app
        self._metrics = metrics
        self._as_page = as_page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_s = time.perf_counter()
        method, status, given = _method(scope), 0, _request_id(scope)
        identifier = given or secrets.token_hex(16)
        REQUEST.set(identifier)  # of this request's task alone
        if method == "HEAD":
            scope, send = as_get(scope), headers_only(send)

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _guarded(message.get("headers", ()))
                if given or status >= 400:
                    message["headers"].append((_REQUEST_ID, identifier.encode()))
            await send(message)

        stack = ExitStack()
        span = None
        tracing: Tracing | None = getattr(getattr(scope.get("app"), "state", None), "tracing", None)
        if tracing is not None:
            span = stack.enter_context(tracing.request(scope["headers"]))
        try:
            await self._app(scope, receive, observed)
        except HeadersSent:
            pass
        except Exception:
            log.exception(
                "unexpected error in %s %s, request %s", method, _route(scope), identifier
            )
            if status:  # too late for another answer: cut the connection
                raise
            await self._send_internal_error(scope, observed)
        finally:
            elapsed_s = time.perf_counter() - started_s
            self._metrics.request(method, _route(scope), status, elapsed_s)
            if span is not None:
                end_request(span, method=method, route=_route(scope), status=status)
            stack.close()
            if events.isEnabledFor(logging.INFO):
                fields = {"method": method, "route": _route(scope), "status": status}
                events.info("request", extra={"fields": {**fields, "seconds": round(elapsed_s, 6)}})

    async def _send_internal_error(self, scope: Scope, send: Send) -> None:
        problem = problem_out(
            SluiceError("the service met an unexpected error; it has been logged")
        )
        self._metrics.refused(problem.code)
        body = orjson.dumps(problem)
        stated = Response(body, 500, media_type="application/problem+json")
        try:
            stated = self._as_page(scope, problem) or stated
        except Exception:  # what failed may be what pages are made with
            log.exception("no page of an unexpected error")
        headers = stated.raw_headers
        await send({"type": "http.response.start", "status": 500, "headers": headers})
        await send({"type": "http.response.body", "body": stated.body})


def _guarded(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return headers that forbid browsers to guess types and to name a page to other hosts."""
    guarded = [*headers, SECURITY]
    if any(name == b"content-type" and value.startswith(_HTML) for name, value in headers):
        guarded.append(_OWN_REFERRER)
    return guarded


def _request_id(scope: Scope) -> str:
    """Return the request's own identifier; empty where it has none that may be repeated."""
    for name, value in scope["headers"]:
        if name == _REQUEST_ID and _IDENTIFIER.fullmatch(value):
            return str(value, "ascii")
    return ""


def _route(scope: Scope) -> str:
    return getattr(scope.get("route"), "path", _UNMATCHED)


def _method(scope: Scope) -> str:
    method = str(scope["method"])
    return method if method in ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS") else "other"
