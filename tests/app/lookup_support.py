"""Asking a running service what its fast path holds."""

from __future__ import annotations

from app.http.fastpath.fast_path import FastPath
from tests.app.serving import Live, wait_until


def fast_path_of(live: Live) -> FastPath:
    """The fast path of a service."""
    return live.service.lookups.fast_path


def is_warm(live: Live, name: str) -> bool:
    """Whether the fast path would answer for this name."""
    digest = fast_path_of(live).active.digests.get(name)
    return digest is not None and fast_path_of(live).cache.peek(digest) is not None


def warm(live: Live, name: str) -> None:
    """Wait until it would."""
    wait_until(lambda: is_warm(live, name))
