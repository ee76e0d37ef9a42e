"""What is sent, by the front and by the framework's routes alike: status, headers, bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

Headers: TypeAlias = list[tuple[bytes, bytes]]

# The templates of the routes that the front answers.
SCHEDULE = "/profiles/{name}/schedule"
ACTIVE = "/profiles/{name}/table"
STORED = "/tables/{digest}"

REVALIDATED = "no-cache"
IMMUTABLE = "public, max-age=31536000, immutable"
NO_CACHE = (b"cache-control", REVALIDATED.encode())
JSON = (b"content-type", b"application/json")


# A header of every answer of the service, whoever gives it.
SECURITY = (b"x-content-type-options", b"nosniff")


Kind: TypeAlias = tuple[str, int]  # a route's template and a status


class Served(NamedTuple):
    """A whole answer as a server takes it, and what it counts as."""

    start: dict[str, Any]
    end: dict[str, Any]
    kind: Kind


class Ready(NamedTuple):
    """A whole answer, and the template of its route."""

    status: int
    headers: Headers
    body: bytes
    route: str

    def served(self) -> Served:
        """The same for a server, with the headers that every answer has."""
        status, headers, body, route = self
        return Served(
            {
                "type": "http.response.start",
                "status": status,
                "headers": (*headers, SECURITY),  # a tuple: no work for garbage collection
            },
            {"type": "http.response.body", "body": body},
            (route, status),
        )


def holds(wanted: str, etag: str) -> bool:
    """Whether If-None-Match says that the client holds the bytes of this tag."""
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
) -> Ready:
    """200, or 304 where the client holds the bytes.

    `shared` are the headers of both, the tag first. Only what the front answers needs its route's
    template.
    """
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in shared]
    if wanted and holds(wanted, shared[0][1]):
        return Ready(304, headers, b"", route)
    if disposition is not None:
        headers.append((b"content-disposition", disposition.encode("latin-1")))
    headers.append((b"content-length", b"%d" % len(body)))
    headers.append((b"content-type", media_type.encode("latin-1")))
    return Ready(200, headers, body, route)
