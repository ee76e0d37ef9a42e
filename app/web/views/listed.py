"""What lists have in common: moments as text, addresses with a query, sizes as they were typed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from domain.errors import UnitMismatch
from domain.pipeline import MAX_MESSAGE_BYTES
from domain.units import parse_bytes

Pairs = Iterable[tuple[str, str]]


def moment_words(moment: datetime) -> str:
    """A moment in UTC, to the minute."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def address(path: str, pairs: Pairs = ()) -> str:
    """A path with a query; what is empty is left out."""
    query = urlencode([(name, value) for name, value in pairs if value])
    return f"{path}?{query}" if query else path


def in_path(text: str) -> str:
    """Text as one step of a path."""
    return quote(text, safe="@")


def size_in(text: str) -> int:
    """A size of 1 byte or more as it was typed, with its unit. Raises UnitMismatch."""
    size = parse_bytes(text)
    if not 1 <= size <= MAX_MESSAGE_BYTES:
        raise UnitMismatch("expected at least 1 byte and at most 256 TiB")
    return size
