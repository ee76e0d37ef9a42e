"""Addresses of pages, with what they ask for."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote, urlencode

from fastapi import Request

Pairs = Iterable[tuple[str, str]]
MAX_ADDRESS = 6_000  # characters of a query that browsers, proxies and mail programs pass on whole


def address(path: str, pairs: Pairs = ()) -> str:
    """Return a path with a query; what is empty is left out."""
    query = urlencode([(name, value) for name, value in pairs if value])
    return f"{path}?{query}" if query else path


def here_of(request: Request) -> str:
    """Return the address that was asked for, of this service alone."""
    return address(request.url.path, request.query_params.multi_items())


def in_path(text: str) -> str:
    """Return text as one step of a path."""
    return quote(text, safe="@")
