"""What routes depend on: requests of our own origin, the running service, the client, body limits.

Where nobody says who asks, and where a browser has signed in, whatever it sends counts, also what a
foreign page has it send: a form, or text without a preflight. Browsers say where a request comes
from, in Sec-Fetch-Site where the connection can be trusted (Fetch Metadata, W3C) and in Origin
everywhere (Fetch, WHATWG), and no page can change either. Programs send neither and are let
through.

A foreign host may also name this machine's own address (DNS rebinding); its pages then count as
the same origin. They reach the service directly: at a loopback address, under its very port, with
a name that is not this machine's. A proxy on this machine has a port of its own. The file of a
socket has no port, and may be what a tunnel ends at: no such name is let in there.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import cached_property, lru_cache
from ipaddress import ip_address
from typing import Any, TypedDict
from urllib.parse import urlsplit

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

from app.http.access import admitted_of
from app.http.bodies import BodyBudget
from app.http.service import Client, Service
from app.telemetry import REQUEST
from domain.errors import ForeignOrigin, NotReady
from models.records import ChangedBy

_SAFE = ("GET", "HEAD", "OPTIONS")
_OWN_SITES = ("same-origin", "none")
_KNOWN = 64  # addresses and names of hosts that were judged last
_ANY_PORT = -1
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


class OwnRoute(APIRoute):
    """A route that refuses what a page of another host has a browser send, before it is read.

    No dependency, for which the framework would look for parameters with each request.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether it answers a request. Most paths begin otherwise, which is soon seen:
        the framework asks one route after the other.
        """
        if scope["path"].startswith(self._start) or scope.get("root_path"):
            return super().matches(scope)
        return Match.NONE, {}

    @cached_property
    def _start(self) -> str:
        return self.path.partition("{")[0]

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request. It raises ForeignOrigin."""
        answer = super().get_route_handler()

        async def of_own_origin(request: Request) -> Response:
            _check_origin(request)
            return await answer(request)

        return of_own_origin


def own_router(**how: Any) -> APIRouter:
    """Return a router of such routes, which are complete: an application takes them as they are.

    Of a router that is included the framework matches every request twice.
    """
    return APIRouter(
        route_class=OwnRoute, generate_unique_id_function=lambda route: route.name, **how
    )


def _check_origin(request: Request) -> None:
    if _is_rebound(request):
        raise ForeignOrigin("expected localhost or an address as the name of this service")
    if request.method not in _SAFE and not _is_own(request):
        raise ForeignOrigin("expected a request of this service's own pages or of a program")


def _is_own(request: Request) -> bool:
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in _OWN_SITES
    origin = request.headers.get("origin")
    if origin is None:
        return True
    scheme, _, place = origin.lower().partition("://")
    names = (request.headers.get(name, "") for name in ("host", "x-forwarded-host"))
    return _without_default_port(place, scheme) in {
        _without_default_port(name.lower(), scheme) for name in names if name
    }


def _without_default_port(place: str, scheme: str) -> str:
    return place.removesuffix(_DEFAULT_PORTS.get(scheme, "/"))


def _is_rebound(request: Request) -> bool:
    own_address, own_port = request.scope.get("server") or ("", None)
    is_socket = own_address.startswith("/")
    if not is_socket and not _is_loopback(own_address):
        return False
    foreign_port = _foreign_port(request.headers.get("host", ""))
    return foreign_port is not None and (is_socket or foreign_port in (own_port, _ANY_PORT))


@lru_cache(_KNOWN)
def _foreign_port(host: str) -> int | None:
    """Return the port of a Host that is no address, this machine or a name without a domain; any
    port of one that cannot be read, None of all others.
    """
    try:
        called = urlsplit(f"//{host}")
        name, port = called.hostname or "", called.port or 80
    except ValueError:
        return _ANY_PORT
    plain = name.removesuffix(".")
    is_local = "." not in plain or plain.endswith(".localhost") or _is_address(plain)
    return None if is_local else port


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


@lru_cache(_KNOWN)
def _is_loopback(address: str) -> bool:
    return _is_address(address) and ip_address(address).is_loopback


# --- the running service, the client, and limits of bodies ----------------------------------------


# Distinguishes the readers behind one address, and does nothing else.
READER_COOKIE = "sluice_reader"
_MAX_COOKIE = 64


def is_encrypted(request: Request) -> bool:
    """Return whether the browser came by TLS, as the server knows or a trusted proxy says."""
    return request.url.scheme == "https"


class CookieRules(TypedDict):
    """What a browser does with each of the service's cookies."""

    secure: bool
    httponly: bool
    path: str


def cookie_rules(request: Request) -> CookieRules:
    """Return the rules of cookies: in clear only where the page is, for no script, and not sent to
    what else a proxy offers under the same name.
    """
    root: str = request.app.state.settings.root_path
    return {"secure": is_encrypted(request), "httponly": True, "path": root or "/"}


def service_of(request: Request) -> Service:
    """Return the running service, as who asks may see it.

    Raises NotReady before it has started and after it has ended.
    """
    service: Service | None = getattr(request.app.state, "service", None)
    if service is None:
        raise NotReady("the service is starting or stopping")
    admitted = admitted_of(request.scope)
    if admitted is None:
        return service.of(service.context.store.owner, ChangedBy(request=REQUEST.get()))
    return service.of(admitted.owner, admitted.changed_by)


def still_admitted(request: Request) -> bool:
    """Return whether who asks may still: a long answer outlives keys."""
    admitted, gate = admitted_of(request.scope), request.app.state.gate
    return admitted is None or gate is None or bool(gate.still_admits(admitted))


def client_of(request: Request) -> Client:
    """Return who waits for the answer, after the body was read: the owner, where it is known.

    Else an address, and there a reader.
    """

    async def wait_disconnected() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    admitted = admitted_of(request.scope)
    if admitted is not None:
        return Client(f"owner {admitted.owner}", wait_disconnected)
    address = request.client.host if request.client else ""
    reader = request.cookies.get(READER_COOKIE, "")[:_MAX_COOKIE]
    return Client(f"{address} {reader}", wait_disconnected)


def prefers_async(request: Request) -> bool:
    """Return whether the client prefers a job (RFC 7240 `Prefer: respond-async`)."""
    given = ",".join(request.headers.getlist("prefer"))
    return any(
        preference.split(";")[0].strip().lower() == "respond-async"
        for preference in given.split(",")
    )


class BodyRules(TypedDict):
    """How long a body may be, and the budget it counts against."""

    limit: int
    budget: BodyBudget


def body_rules(request: Request) -> BodyRules:
    """Return the rules for JSON bodies."""
    state = request.app.state
    return _rules(request, state.settings.max_body_bytes, state.bodies)


def trace_rules(request: Request) -> BodyRules:
    """Return the rules for files of measurements."""
    state = request.app.state
    return _rules(request, state.settings.max_trace_bytes, state.traces)


def _rules(request: Request, limit: int, budget: BodyBudget) -> BodyRules:
    admitted = admitted_of(request.scope)
    return {"limit": limit, "budget": budget if admitted is None else budget.of(admitted.owner)}


def base_url_of(request: Request) -> str:
    """Return the address that this request was sent to, without a slash at its end."""
    return str(request.base_url).rstrip("/")
