"""Moments in UTC as they are shown, to the minute: an identifier has to have room beside them."""

from __future__ import annotations


def format_minute(timestamp: str) -> str:
    """Return the minute of a moment that is sent, RFC 3339 in UTC."""
    return timestamp[:16].replace("T", " ")
