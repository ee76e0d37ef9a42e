"""A file of measurements: as a request has it, in memory, or open."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

_PIECE_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class LoadedTrace:
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
    def of(cls, content: bytes) -> LoadedTrace:
        """Return a file in memory."""
        digest = hashlib.sha256(content).hexdigest()
        return cls(digest, len(content), lambda: (content,), lambda: content)

    @classmethod
    def in_file(cls, descriptor: int, *, content_bytes: int, digest: str) -> LoadedTrace:
        """Return an open file, which stays open for as long as this is used."""
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


@dataclass(frozen=True, slots=True)
class Measurement:
    """One trace, as text or as the bytes of its file; `kind` where it cannot be detected."""

    content: str | bytes
    kind: str | None = None
