"""What is sent, by the front and by the framework's routes alike: status, headers, bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Headers: TypeAlias = list[tuple[bytes, bytes]]

IMMUTABLE = "public, max-age=31536000, immutable"
REVALIDATED = "no-cache"


@dataclass(frozen=True, slots=True)
class Ready:
    """A whole answer."""

    status: int
    headers: Headers
    body: bytes


def holds(wanted: str, etag: str) -> bool:
    """Whether If-None-Match says that the client holds the bytes of this tag."""
    tags = [tag.strip().removeprefix("W/") for tag in wanted.split(",")]
    return "*" in tags or etag in tags


def full(
    body: bytes, media_type: str, shared: Sequence[tuple[str, str]], *, disposition: str | None
) -> Ready:
    """200; `shared` are the headers that 304 has too."""
    headers = _encoded(shared)
    if disposition is not None:
        headers.append((b"content-disposition", disposition.encode("latin-1")))
    headers.append((b"content-length", b"%d" % len(body)))
    headers.append((b"content-type", media_type.encode("latin-1")))
    return Ready(200, headers, body)


def unchanged(shared: Sequence[tuple[str, str]]) -> Ready:
    """304: the client holds these very bytes."""
    return Ready(304, _encoded(shared), b"")


def conditional(
    wanted: str,
    body: bytes,
    media_type: str,
    shared: Sequence[tuple[str, str]],
    *,
    disposition: str | None = None,
) -> Ready:
    """304 where the client holds the bytes; the tag is the first of `shared`."""
    if wanted and holds(wanted, shared[0][1]):
        return unchanged(shared)
    return full(body, media_type, shared, disposition=disposition)


def _encoded(headers: Sequence[tuple[str, str]]) -> Headers:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
