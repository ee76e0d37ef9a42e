"""Reading bodies: media type, length and time are judged before anything is parsed.

A body is refused as soon as its declared length, or what has arrived of it, is over the limit, so
that no more than the limit and one chunk of the server (64 KiB) is ever held. All bodies in flight
share one budget: many large ones at once are turned away instead of filling the memory.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from fastapi import Request
from pydantic import BaseModel

from app.errors import BodyTooLarge, BodyTooSlow, Overloaded, UnsupportedMediaType
from app.schemas.base import parse_json

ARRIVAL_LIMIT_S = 30.0
TRACE_ARRIVAL_LIMIT_S = 300.0
FREE_EXPANSION_BYTES = 2**20
MAX_EXPANSION = 200  # times the compressed length; text of measurements shrinks by 3 to 20
_CHUNK = 64 * 1024
_TEXT_TYPES = ("text/csv", "text/plain", "application/csv", "application/octet-stream")
_GZIP_TYPES = ("application/gzip", "application/x-gzip")

T = TypeVar("T", bound=BaseModel)


@dataclass(slots=True)
class BodyBudget:
    """Bytes of bodies that may be held at once, and those that are."""

    most_bytes: int
    held_bytes: int = 0

    def take(self, count: int) -> None:
        """Count bytes as held. Raises Overloaded where they do not fit."""
        if self.held_bytes + count > self.most_bytes:
            raise Overloaded("too many large bodies are arriving at once")
        self.held_bytes += count

    def give_back(self, count: int) -> None:
        """Bytes that are held no more."""
        self.held_bytes -= count


async def read_json(request: Request, model: type[T], *, limit: int, budget: BodyBudget) -> T:
    """The body as this model. Raises what `parse_json` and `held_body` do, UnsupportedMediaType."""
    _check_json_type(request)
    async with held_body(request, limit, budget, within_s=ARRIVAL_LIMIT_S) as body:
        return parse_json(model, body)


async def read_trace(request: Request, *, limit: int, budget: BodyBudget) -> bytes:
    """The bytes of a trace, expanded if they came as gzip. Raises as `held_body` does."""
    packed = _trace_is_packed(request)
    async with held_body(request, limit, budget, within_s=TRACE_ARRIVAL_LIMIT_S) as body:
        if packed or body[:2] == b"\x1f\x8b":
            return await asyncio.to_thread(expand, body, limit)
        return body


@asynccontextmanager
async def held_body(
    request: Request, limit: int, budget: BodyBudget, *, within_s: float
) -> AsyncIterator[bytes]:
    """The body, counted against the budget while it is held.

    Raises BodyTooLarge, BodyTooSlow and Overloaded; ClientDisconnect where the client is gone.
    """
    _check_declared_length(request, limit)
    chunks: list[bytes] = []
    held = 0
    try:
        try:
            async with asyncio.timeout(within_s):
                async for chunk in request.stream():
                    budget.take(len(chunk))
                    held += len(chunk)
                    if held > limit:
                        raise _too_large(limit)
                    chunks.append(chunk)
        except TimeoutError:
            raise BodyTooSlow(f"the body did not arrive within {within_s:g} s") from None
        yield chunks[0] if len(chunks) == 1 else b"".join(chunks)
    finally:
        budget.give_back(held)


def expand(packed: bytes, limit: int) -> bytes:
    """What a gzip file holds. Raises BodyTooLarge for a bomb, UnsupportedMediaType for no gzip."""
    expander = zlib.decompressobj(wbits=31)
    most = min(limit, FREE_EXPANSION_BYTES + MAX_EXPANSION * len(packed))
    pieces: list[bytes] = []
    size = 0
    rest = packed
    while rest and not expander.eof:
        try:
            piece = expander.decompress(rest, _CHUNK)
        except zlib.error:
            raise UnsupportedMediaType("the body is not a gzip file") from None
        rest = expander.unconsumed_tail
        size += len(piece)
        if size > most:
            raise BodyTooLarge(
                f"expected a gzip file that expands to at most {limit} bytes and at most "
                f"{MAX_EXPANSION} times its length"
            )
        pieces.append(piece)
    if not expander.eof:
        raise UnsupportedMediaType("the gzip file ends too early")
    return b"".join(pieces)


def _check_declared_length(request: Request, limit: int) -> None:
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:20]) > limit:
        raise _too_large(limit)


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(f"expected a body of at most {limit} bytes")


def _media_type(request: Request) -> tuple[str, str]:
    """Type without parameters, and the charset, both in lower case; empty where not given."""
    media_type, *parameters = request.headers.get("content-type", "").lower().split(";")
    charset = ""
    for parameter in parameters:
        name, _, value = parameter.strip().partition("=")
        if name == "charset":
            charset = value.strip().strip('"')
    return media_type.strip(), charset


def _check_json_type(request: Request) -> None:
    media_type, charset = _media_type(request)
    if media_type not in ("application/json", ""):
        raise UnsupportedMediaType("expected Content-Type: application/json")
    if charset not in ("", "utf-8", "utf8"):
        raise UnsupportedMediaType("expected JSON in UTF-8")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedMediaType("expected JSON without Content-Encoding")


def _trace_is_packed(request: Request) -> bool:
    media_type, charset = _media_type(request)
    if media_type not in ("", *_TEXT_TYPES, *_GZIP_TYPES):
        raise UnsupportedMediaType(
            f"expected Content-Type: one of {', '.join((*_TEXT_TYPES, *_GZIP_TYPES))}"
        )
    if charset not in ("", "utf-8", "utf8", "us-ascii", "ascii"):
        raise UnsupportedMediaType("expected text in UTF-8")
    encoding = request.headers.get("content-encoding", "identity").lower()
    if encoding not in ("identity", "gzip"):
        raise UnsupportedMediaType("expected Content-Encoding gzip or none")
    return encoding == "gzip" or media_type in _GZIP_TYPES
