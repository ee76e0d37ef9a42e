"""Keys as parts: a list of them, a new one with its secret, and one that was revoked."""

from __future__ import annotations

from datetime import datetime

from app.text.moments import format_minute
from app.ui.parts import Column, Grid, Part
from contract.keys import KeyOut, KeysOut, NewKeyOut

_COLUMNS = ("id", "name", "scope", "expires", "is")


def parts(keys: KeysOut, now: datetime) -> list[Part]:
    """Return a table of keys, with what they are at this moment."""
    rows = (
        (
            key.id,
            key.name,
            key.scope,
            "never" if key.expires_at is None else format_minute(key.expires_at),
            _state(key, now),
        )
        for key in keys.items
    )
    return [Grid(tuple(Column(name, is_number=False) for name in _COLUMNS), tuple(rows))]


def _state(key: KeyOut, now: datetime) -> str:
    if key.revoked_at is not None:
        return "revoked"
    end = key.expires_at
    is_old = end is not None and datetime.fromisoformat(end) <= now
    return "expired" if is_old else "valid"


def made(key: NewKeyOut) -> list[Part]:
    """Return a new key with its secret, which is shown this once."""
    said = f"{key.id} {key.name}: {key.scope}, of {key.owner}"
    return [said, key.secret, "The secret is stored nowhere: keep it."]


def revoked(key: KeyOut) -> list[Part]:
    """Return that a key was ended."""
    return [f"{key.id} {key.name}: revoked"]
