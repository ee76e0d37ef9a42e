"""The outermost layer of the service, plain ASGI: counts requests, answers what nobody caught."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

import orjson

from app.errors import problem_document
from app.lookup.answers import Ready
from app.lookup.front import Front
from app.metrics import Metrics
from domain.errors import SluiceError

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger("sluice")
_UNMATCHED = "unmatched"
_SECURITY_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]


class InFront:
    """Sends and counts what the front answers; the rest goes on to the application."""

    def __init__(self, app: App, metrics: Metrics, front: Front) -> None:
        self._app = app
        self._metrics = metrics
        self._front = front

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started_s = time.perf_counter()
        served = self._served(scope) if scope["type"] == "http" else None
        if served is None:
            await self._app(scope, receive, send)
            return
        await send(
            {
                "type": "http.response.start",
                "status": served.status,
                "headers": [*served.headers, *_SECURITY_HEADERS],
            }
        )
        await send({"type": "http.response.body", "body": served.body})
        elapsed_s = time.perf_counter() - started_s
        self._metrics.request("GET", served.route, served.status, elapsed_s)

    def _served(self, scope: Scope) -> Ready | None:
        try:
            return self._front.answer(scope)
        except Exception:  # the framework may still be able to answer
            log.exception("unexpected error in the front")
            return None


class Outermost:
    """Wraps the application. What nobody caught is logged, and answered without its text."""

    def __init__(self, app: App, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_s = time.perf_counter()
        status = 0

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *_SECURITY_HEADERS]
            await send(message)

        try:
            await self._app(scope, receive, observed)
        except Exception:
            log.exception("unexpected error in %s %s", scope["method"], _route(scope))
            if status:  # too late for another answer: cut the connection
                raise
            await _send_internal_error(observed)
        finally:
            elapsed_s = time.perf_counter() - started_s
            self._metrics.request(_method(scope), _route(scope), status, elapsed_s)


def _route(scope: Scope) -> str:
    return getattr(scope.get("route"), "path", _UNMATCHED)


def _method(scope: Scope) -> str:
    method = str(scope["method"])
    return method if method in ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS") else "other"


async def _send_internal_error(send: Send) -> None:
    error = SluiceError("the service met an unexpected error; it has been logged")
    body = orjson.dumps(problem_document(error))
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": 500, "headers": headers})
    await send({"type": "http.response.body", "body": body})
