"""Files of measurements while they are worked on: in memory, or in an open file without a name."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

_PIECE_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class HeldTrace:
    """One file of measurements.

    `digest` is the SHA-256 of its `content_bytes` bytes; `pieces` gives them as often as asked, and
    `content` all at once. `descriptor` is that of the open file, None for one in memory.
    """

    digest: str
    content_bytes: int
    pieces: Callable[[], Iterable[bytes]]
    content: Callable[[], bytes]
    descriptor: int | None = None

    @classmethod
    def of(cls, content: bytes) -> HeldTrace:
        """A file in memory."""
        digest = hashlib.sha256(content).hexdigest()
        return cls(digest, len(content), lambda: (content,), lambda: content)

    @classmethod
    def in_file(cls, descriptor: int, *, content_bytes: int, digest: str) -> HeldTrace:
        """An open file, which stays open for as long as this is used."""
        return cls(
            digest,
            content_bytes,
            lambda: _pieces(descriptor, content_bytes),
            lambda: b"".join(_pieces(descriptor, content_bytes, piece_bytes=content_bytes)),
            descriptor,
        )


def _pieces(
    descriptor: int, content_bytes: int, *, piece_bytes: int = _PIECE_BYTES
) -> Iterator[bytes]:
    # By position: several readers of one descriptor do not get into each other's way.
    place = 0
    while place < content_bytes:
        piece = os.pread(descriptor, min(piece_bytes, content_bytes - place), place)
        if not piece:
            raise OSError("a temporary file is shorter than what was written to it")
        place += len(piece)
        yield piece
