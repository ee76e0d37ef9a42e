"""Time-sortable identifiers.

Source: RFC 9562 section 5.7 (UUID version 7) and 6.2 method 2 (monotonic random). Written as 32
lower-case hexadecimal digits, so that the order of the text is the order of creation: strictly
within a process, to the millisecond (and the clocks) between processes.
"""

from __future__ import annotations

import os
import re
import secrets
import threading
import time

from domain.errors import NotFound

IDENTIFIER = re.compile(r"[0-9a-f]{32}", re.ASCII)
_RANDOM_BITS = 74
_STEP_BITS = 40


class IdentifierSource:
    """Hands out identifiers, each greater than the one before it. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._milliseconds = 0
        self._random = 0

    def new(self) -> str:
        """The next identifier."""
        with self._lock:
            return _format_identifier(*self._advance(time.time_ns() // 1_000_000))

    def _advance(self, now: int) -> tuple[int, int]:
        # A clock that stands still or steps back must not give a smaller identifier.
        stepped = self._random + 1 + secrets.randbits(_STEP_BITS)
        if now > self._milliseconds or stepped >> _RANDOM_BITS:
            self._milliseconds = max(now, self._milliseconds + 1)
            # The upper half is kept free for the steps inside this millisecond.
            self._random = secrets.randbits(_RANDOM_BITS - 1)
        else:
            self._random = stepped
        return self._milliseconds, self._random

    def renew(self) -> None:
        """Forget the state: a forked child must not repeat what its parent hands out."""
        self._lock = threading.Lock()
        self._random = (1 << _RANDOM_BITS) - 1


def _format_identifier(milliseconds: int, random: int) -> str:
    high, low = random >> 62, random & ((1 << 62) - 1)
    value = milliseconds << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low
    return f"{value:032x}"


_SOURCE = IdentifierSource()
os.register_at_fork(after_in_child=_SOURCE.renew)


def new_id() -> str:
    """A new UUIDv7 as 32 lower-case hexadecimal digits, monotonic within this process."""
    return _SOURCE.new()


def known_identifier(identifier: str, noun: str) -> None:
    """Raise NotFound for what cannot be an identifier; nothing is stored under it."""
    if IDENTIFIER.fullmatch(identifier) is None:
        raise NotFound(f"there is no {noun} with this id")
