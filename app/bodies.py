"""Reading JSON bodies: media type, length and time are judged before anything is parsed.

A body is refused as soon as its declared length, or what has arrived of it, is over the limit, so
that no more than the limit and one chunk of the server (64 KiB) is ever held. All bodies in flight
share one budget: many large ones at once are turned away instead of filling the memory.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from fastapi import Request
from pydantic import BaseModel

from app.schemas.base import parse_json
from domain.errors import BodyTooLarge, BodyTooSlow, Overloaded, UnsupportedMediaType

ARRIVAL_LIMIT_S = 30.0

T = TypeVar("T", bound=BaseModel)


@dataclass(slots=True)
class BodyBudget:
    """Bytes of bodies that may be held at once, and those that are."""

    most_bytes: int
    held_bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def take(self, count: int) -> None:
        """Count bytes as held. Raises Overloaded where they do not fit."""
        with self._lock:
            if self.held_bytes + count > self.most_bytes:
                raise Overloaded("too many large bodies are arriving at once")
            self.held_bytes += count

    def give_back(self, count: int) -> None:
        """Bytes that are held no more."""
        with self._lock:
            self.held_bytes -= count


async def read_json(request: Request, model: type[T], *, limit: int, budget: BodyBudget) -> T:
    """The body as this model. Raises what `parse_json` and `held_body` do, UnsupportedMediaType."""
    _check_json_type(request)
    async with held_body(request, limit, budget, within_s=ARRIVAL_LIMIT_S) as body:
        return parse_json(model, body)


@asynccontextmanager
async def held_body(
    request: Request, limit: int, budget: BodyBudget, *, within_s: float
) -> AsyncIterator[bytes]:
    """The body, counted against the budget while it is held.

    Raises BodyTooLarge, BodyTooSlow and Overloaded; ClientDisconnect where the client is gone.
    """
    check_declared_length(request, limit)
    chunks: list[bytes] = []
    held = 0
    try:
        try:
            async with asyncio.timeout(within_s):
                async for chunk in request.stream():
                    budget.take(len(chunk))
                    held += len(chunk)
                    if held > limit:
                        raise too_large(limit)
                    chunks.append(chunk)
        except TimeoutError:
            raise too_slow(within_s) from None
        yield chunks[0] if len(chunks) == 1 else b"".join(chunks)
    finally:
        budget.give_back(held)


def check_declared_length(request: Request, limit: int) -> None:
    """Raise BodyTooLarge for a body that is announced as longer than the limit."""
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:20]) > limit:
        raise too_large(limit)


def too_large(limit: int) -> BodyTooLarge:
    """The refusal of a body over the limit."""
    return BodyTooLarge(f"expected a body of at most {limit} bytes")


def too_slow(within_s: float) -> BodyTooSlow:
    """The refusal of a body that takes longer."""
    return BodyTooSlow(f"the body did not arrive within {within_s:g} s")


def media_type(request: Request) -> tuple[str, str]:
    """Type without parameters, and the charset, both in lower case; empty where not given."""
    kind, *parameters = request.headers.get("content-type", "").lower().split(";")
    charset = ""
    for parameter in parameters:
        name, _, value = parameter.strip().partition("=")
        if name == "charset":
            charset = value.strip().strip('"')
    return kind.strip(), charset


def _check_json_type(request: Request) -> None:
    kind, charset = media_type(request)
    if kind not in ("application/json", ""):
        raise UnsupportedMediaType("expected Content-Type: application/json")
    if charset not in ("", "utf-8", "utf8"):
        raise UnsupportedMediaType("expected JSON in UTF-8")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedMediaType("expected JSON without Content-Encoding")
