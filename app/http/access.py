"""Who asks, and whether he may: one gate before the fast path and the framework alike.

    request -> who   a key's secret (Authorization, or the cookie of a browser that signed in), or
                     what a trusted proxy says -> owner and scope; else nobody
            -> what  reads take `read`, all that changes or starts something `write`, keys `admin`,
                     counters `metrics`, which is all that a key of it may have
            -> how often   each owner has a rate, and a key may have a lower one of its own

Keys are compared by the SHA-256 of their secrets, of which each has 256 random bits: nothing can be
learnt from how long that takes, and no slow hash is needed. The gate holds all that are valid in
memory; `Lookups` exchanges them as it does the active tables.
"""

from __future__ import annotations

import hashlib
import math
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.http.fastpath.fast_path import FastPath
from app.http.fastpath.responses import AsgiResponse
from app.questions.keys import is_owner
from app.settings import Network, Settings
from app.telemetry import OWNER, REQUEST
from domain.errors import RateLimited, ScopeMissing, SluiceError, Unauthenticated
from models.records import ApiKeyRecord, ChangedBy, KeyScope

SESSION_COOKIE = "sluice_session"
SIGN_IN, SIGN_OUT = "/ui/sign-in", "/ui/sign-out"
_PUBLIC = ("/healthz", "/readyz", SIGN_IN, SIGN_OUT)
_ASSETS = "/ui/assets/"
_ADMIN = ("/keys", "/changes")
_METRICS = "/metrics"
# What a key of each scope may have.
_GRANTED = {
    KeyScope.READ: frozenset({KeyScope.READ}),
    KeyScope.WRITE: frozenset({KeyScope.READ, KeyScope.WRITE}),
    KeyScope.ADMIN: frozenset(KeyScope),
    KeyScope.METRICS: frozenset({KeyScope.METRICS}),
}
BURST_S = 2.0  # a key that has rested may ask for so long at once
_BEARER = b"bearer "
_COOKIE = re.compile(rb"(?:^|;\s*)" + SESSION_COOKIE.encode() + rb"=([\w-]{1,200})")
_OF_OWNER = "owner "  # no identifier of a key begins so
ADMITTED = "sluice.admitted"
_PEER = "sluice.peer"
_OWNER_HEADER, _SCOPE_HEADER = b"x-sluice-owner", b"x-sluice-scope"
_PRIVATE = (b"cache-control", b"private")


class Rate:
    """How often somebody may ask: the time at which all that he asked would be used up (GCRA)."""

    __slots__ = ("_due_s", "_interval_s", "requests_per_s")

    def __init__(self, requests_per_s: int) -> None:
        self.requests_per_s = requests_per_s
        self._interval_s = 1.0 / requests_per_s if requests_per_s else 0.0
        self._due_s = 0.0

    def wait_s(self, now_s: float) -> float:
        """Return in how long one more may be asked, 0 or less where it may be now."""
        return max(self._due_s, now_s) + self._interval_s - now_s - BURST_S

    def count(self, now_s: float) -> None:
        """Count one that is asked."""
        self._due_s = max(self._due_s, now_s) + self._interval_s


@dataclass(frozen=True, slots=True)
class Admitted:
    """Who asks: an owner, by a key or, where `key_id` is empty, as a proxy says."""

    owner: str
    scope: KeyScope
    rates: tuple[Rate, ...]  # the owner's, and the key's where it has one of its own
    key_id: str = ""
    name: str = "proxy"  # of the key
    parent: str | None = None  # by which key a browser signed in
    expires_s: float = math.inf

    def may(self, wanted: KeyScope) -> bool:
        """Return whether what takes this scope is his to have."""
        return wanted in _GRANTED[self.scope]

    @property
    def changed_by(self) -> ChangedBy:
        """Who changes what this request changes."""
        return ChangedBy(self.name, self.parent or self.key_id, REQUEST.get())


class Gate:
    """One per service. For the event loop's thread."""

    def __init__(self, settings: Settings, fast_path: FastPath) -> None:
        self._fast_path = fast_path
        self._requests_per_s = settings.owner_requests_per_s
        self._proxies: tuple[Network, ...] = ()
        if settings.auth == "proxy":
            self._proxies = settings.trusted_networks
        self._by_digest: Mapping[str, Admitted] = {}
        self._key_ids: frozenset[str] = frozenset()
        self._rates: dict[str, Rate] = {}

    def exchange(self, keys: Iterable[ApiKeyRecord]) -> None:
        """Hold these keys for valid from now on. A browser shares the rate of its key."""
        self._by_digest = {
            key.digest: Admitted(
                key.owner,
                key.scope,
                self._rates_of(key),
                key.id,
                key.name,
                key.parent,
                math.inf if key.expires_at is None else key.expires_at.timestamp(),
            )
            for key in keys
        }
        self._key_ids = frozenset(one.key_id for one in self._by_digest.values())
        used = {id(rate) for one in self._by_digest.values() for rate in one.rates[1:]}
        self._rates = {
            name: rate
            for name, rate in self._rates.items()
            if id(rate) in used or name.startswith(_OF_OWNER)
        }

    def answer(self, scope: Scope) -> AsgiResponse | None:
        """Return the fast path's answer to who may have it; None where the framework answers."""
        if is_public(scope["path"]):
            OWNER.set("")
            return None
        found = self.admit(scope)
        scope[ADMITTED] = found
        if isinstance(found, SluiceError):
            OWNER.set("")  # a request that waited for another's answer runs in what that one set
            return None
        OWNER.set(found.owner)  # of this request's task alone
        path = self._fast_path.of(found.owner)
        return None if path is None else path.answer(scope)

    def admit(self, scope: Scope) -> Admitted | SluiceError:
        """Return who asks, where he may; else why not. Counts the request."""
        known = self._known(scope)
        if known is None:
            return Unauthenticated("expected a valid key: Authorization: Bearer <key>")
        wanted = scope_of(scope["method"], scope["path"])
        if not known.may(wanted):
            return ScopeMissing(f"expected a key with the scope {wanted.value}")
        return self.in_turn(known) or known

    def in_turn(self, known: Admitted) -> RateLimited | None:
        """Count one request of who is known; return why not, uncounted, where it is too many."""
        now_s = time.monotonic()
        for rate in known.rates:
            wait_s = rate.wait_s(now_s)
            if wait_s > 0.0:
                return RateLimited(
                    f"expected at most {rate.requests_per_s} requests each second",
                    requests_per_s=rate.requests_per_s,
                    retry_after_s=math.ceil(wait_s),
                )
        for rate in known.rates:
            rate.count(now_s)
        return None

    def still_admits(self, admitted: Admitted) -> bool:
        """Return whether who was let in would be now: his key may be revoked or expired since."""
        is_known = not admitted.key_id or admitted.key_id in self._key_ids
        return is_known and admitted.expires_s > time.time()

    def by_secret(self, secret: bytes) -> Admitted | None:
        """Return whose key this is; None where it is none that is valid."""
        found = self._by_digest.get(hashlib.sha256(secret).hexdigest())
        return None if found is None or found.expires_s <= time.time() else found

    def _known(self, scope: Scope) -> Admitted | None:
        cookie = None
        said: list[bytes] = []
        for name, value in scope["headers"]:
            if name == b"authorization":
                if value[: len(_BEARER)].lower() != _BEARER:
                    return None
                return self.by_secret(value[len(_BEARER) :].strip())
            if name == b"cookie":
                cookie = value
            elif name == _OWNER_HEADER:
                said.append(value)
        if said and self._proxies and (found := self._as_said(scope, said)):
            return found
        session = _COOKIE.search(cookie) if cookie is not None else None
        return None if session is None else self.by_secret(session[1])

    def _as_said(self, scope: Scope, said: list[bytes]) -> Admitted | None:
        """Return who a trusted proxy says it is; None where it is another, or says it wrongly.

        Twice is wrong: one of them may be the client's, behind a proxy that only adds its own.
        """
        try:
            peer: IPv4Address | IPv6Address = ip_address(scope[_PEER][0].partition("%")[0])
        except (KeyError, TypeError, ValueError):
            return None
        if isinstance(peer, IPv6Address) and peer.ipv4_mapped is not None:
            peer = peer.ipv4_mapped
        owner = said[0].decode("latin-1")
        given = [value for name, value in scope["headers"] if name == _SCOPE_HEADER]
        if len(said) > 1 or len(given) > 1 or not is_owner(owner):
            return None
        if not any(peer in one for one in self._proxies):
            return None
        try:
            granted = KeyScope(given[0].decode("latin-1")) if given else KeyScope.READ
        except ValueError:
            return None
        return Admitted(owner, granted, (self._rate(_OF_OWNER + owner, self._requests_per_s),))

    def _rates_of(self, key: ApiKeyRecord) -> tuple[Rate, ...]:
        of_owner = self._rate(_OF_OWNER + key.owner, self._requests_per_s)
        if key.requests_per_s is None:
            return (of_owner,)
        return of_owner, self._rate(key.parent or key.id, key.requests_per_s)

    def _rate(self, name: str, requests_per_s: int) -> Rate:
        found = self._rates.get(name)
        if found is None or found.requests_per_s != requests_per_s:
            found = self._rates[name] = Rate(requests_per_s)
        return found


def scope_of(method: str, path: str) -> KeyScope:
    """Return the scope that a request takes, whatever routes there are."""
    if any(_is_below(path, one) for one in _ADMIN):
        return KeyScope.ADMIN
    if _is_below(path, _METRICS):
        return KeyScope.METRICS
    return KeyScope.READ if method in ("GET", "HEAD", "OPTIONS") else KeyScope.WRITE


def _is_below(path: str, other: str) -> bool:
    return path == other or path.startswith(f"{other}/")


def admitted_of(scope: Scope) -> Admitted | None:
    """Return who asks, where that has to be said."""
    found = scope.get(ADMITTED)
    return found if isinstance(found, Admitted) else None


def is_public(path: str) -> bool:
    """Return whether anybody may ask for this path, whoever he is."""
    return path in _PUBLIC or path.startswith(_ASSETS)


class Guarded:
    """A layer of the application that lets in whom the gate admits, and answers all others."""

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_public(scope["path"]):
            await self._app(scope, receive, send)
            return
        found = scope.get(ADMITTED) or self._gate.admit(scope)
        scope[ADMITTED] = found
        if isinstance(found, Admitted):
            await self._app(scope, receive, _for_one(send))
            return
        # As the framework answers the same refusal of a route, pages for browsers included.
        refused = scope["app"].exception_handlers[SluiceError]
        response = await refused(Request(scope, receive), found)
        await response(scope, receive, send)


def _for_one(send: Send) -> Send:
    """Return a `send` whose answers no cache that several share may keep."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            if all(name != b"cache-control" for name, _ in headers):
                message = {**message, "headers": [*headers, _PRIVATE]}
        await send(message)

    return sent


def with_peer(app: Any) -> ASGIApp:
    """Return the application, told from whom a connection is, whatever its headers say."""

    async def with_it(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope[_PEER] = scope.get("client")
        await app(scope, receive, send)

    return with_it
