"""Responses of the fast path and of the framework's routes alike: status, headers, bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from app.schemas.queries import TableFormat

Headers: TypeAlias = list[tuple[bytes, bytes]]

# The templates of the routes that the fast path answers.
SCHEDULE = "/profiles/{name}/schedule"
ACTIVE = "/profiles/{name}/table"
STORED = "/tables/{digest}"

REVALIDATED = "no-cache"
# Of one owner: a cache that several share would hand it to others.
IMMUTABLE = "private, max-age=31536000, immutable"
NO_CACHE = (b"cache-control", REVALIDATED.encode())
JSON_HEADER = (b"content-type", b"application/json")


# A header of every answer of the service.
SECURITY = (b"x-content-type-options", b"nosniff")


Kind: TypeAlias = tuple[str, int]  # a route's template and a status


class AsgiResponse(NamedTuple):
    """A whole response as a server takes it, and what it counts as."""

    start: dict[str, Any]
    end: dict[str, Any]
    kind: Kind


class CachedResponse(NamedTuple):
    """A whole response, and the template of its route."""

    status: int
    headers: Headers
    body: bytes
    route: str

    def as_asgi(self) -> AsgiResponse:
        """Return it as a server takes it, with the headers that every answer has."""
        status, headers, body, route = self
        return AsgiResponse(
            {
                "type": "http.response.start",
                "status": status,
                "headers": (*headers, SECURITY),  # a tuple: no work for garbage collection
            },
            {"type": "http.response.body", "body": body},
            (route, status),
        )


def holds(wanted: str, etag: str) -> bool:
    """Return whether If-None-Match says that the client holds the bytes of this tag."""
    tags = [tag.strip().removeprefix("W/") for tag in wanted.split(",")]
    return "*" in tags or etag in tags


def conditional(
    wanted: str,
    body: bytes,
    media_type: str,
    shared: Sequence[tuple[str, str]],
    *,
    route: str = "",
    disposition: str | None = None,
) -> CachedResponse:
    """Return 200, or 304 where the client holds the bytes.

    `shared` are the headers of both, the tag first. Only a response of the fast path needs its
    route's template.
    """
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in shared]
    if wanted and holds(wanted, shared[0][1]):
        return CachedResponse(304, headers, b"", route)
    if disposition is not None:
        headers.append((b"content-disposition", disposition.encode("latin-1")))
    headers.append((b"content-length", b"%d" % len(body)))
    headers.append((b"content-type", media_type.encode("latin-1")))
    return CachedResponse(200, headers, body, route)


# --- rendered bodies, by their tag ----------------------------------------------------------------


BODIES = 10_240  # in each of two generations
FEWER_BODIES = 1024  # of each owner but the first
SEEN_ONCE = 32_768  # tags that are remembered until they come again
_MAX_BODY_BYTES = 1024  # of a body that is stored; 64 fragments take less


class RenderedBodies:
    """The last few thousand bodies that were asked for again. A tag never stands for another body.

    Two generations: when the young one is full it becomes the old one, and the old one goes. What
    was asked for once is only remembered, as a number. Nothing but bytes is stored: an answer's
    many small objects would be fetched from slow memory one by one.
    """

    def __init__(self, most: int = BODIES) -> None:
        self._most = most
        self.young: dict[bytes, bytes] = {}
        self._old: dict[bytes, bytes] = {}
        self._seen: set[int] = set()

    def older(self, tag: bytes) -> bytes | None:
        """Return a body of the old generation, which is young again."""
        found = self._old.get(tag)
        if found is not None:
            self._add(tag, found)
        return found

    def see(self, tag: bytes, body: bytes) -> None:
        """Store a body whose tag was seen before, and which is not long."""
        number = hash(tag)
        if number in self._seen:
            if len(body) <= _MAX_BODY_BYTES:
                self._add(tag, body)
            return
        if len(self._seen) >= SEEN_ONCE:
            self._seen.clear()
        self._seen.add(number)

    def _add(self, tag: bytes, body: bytes) -> None:
        if len(self.young) >= self._most:
            self._old, self.young = self.young, {}
        self.young[tag] = body


# --- the forms of a compiled table ----------------------------------------------------------------


JSON = "application/json"
SLT = "application/vnd.sluice.table"
TWIN = "application/vnd.sluice.table+json"


MEDIA = {TableFormat.SLT: SLT, TableFormat.JSON: TWIN, TableFormat.SUMMARY: JSON}
_TAGS = {TableFormat.SLT: "", TableFormat.JSON: "-json", TableFormat.SUMMARY: "-summary"}


def accepted(values: Sequence[str]) -> TableFormat:
    """Return the first media type in the Accept headers that there is; else the summary."""
    for part in ",".join(values).split(","):
        named = part.split(";")[0].strip().lower()
        for wanted, media in MEDIA.items():
            if named == media:
                return wanted
        if named == "application/octet-stream":
            return TableFormat.SLT
    return TableFormat.SUMMARY


def table_form(
    wanted: str, digest: str, form: TableFormat, body: bytes, *, route: str, said: str = ""
) -> CachedResponse:
    """Return a form of a table: where it is STORED, under its digest, its file never changes, but
    what is told of it may have more to say later; another one may follow an ACTIVE one. `wanted` is
    If-None-Match.
    """
    kept = REVALIDATED if route == ACTIVE or form is TableFormat.SUMMARY else IMMUTABLE
    shared = [_tagged(digest, form, said), ("cache-control", kept), _VARY]
    if route == ACTIVE:
        shared.append(("content-location", f"/tables/{digest}"))
    disposition = f'attachment; filename="{digest[:16]}.slt"' if form is TableFormat.SLT else None
    return conditional(wanted, body, MEDIA[form], shared, route=route, disposition=disposition)


_VARY = "vary", "Accept"
_SAID_DIGITS = 16


def _tagged(digest: str, form: TableFormat, said: str) -> tuple[str, str]:
    """The tag of a form; `said` is what was measured of the table's revision since."""
    more = "" if not said else f"-{hashlib.sha256(said.encode()).hexdigest()[:_SAID_DIGITS]}"
    return "etag", f'"{digest}{_TAGS[form]}{more}"'
