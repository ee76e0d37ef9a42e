"""Asking a running service what its front holds."""

from __future__ import annotations

from app.http.fastpath.front import Front
from tests.app.serving import Live, wait_until


def front_of(live: Live) -> Front:
    """The front of a service."""
    return live.service.lookups.front


def is_warm(live: Live, name: str) -> bool:
    """Whether the front would answer for this name."""
    digest = front_of(live).choices.digests.get(name)
    return digest is not None and front_of(live).shelf.peek(digest) is not None


def warm(live: Live, name: str) -> None:
    """Wait until it would."""
    wait_until(lambda: is_warm(live, name))
