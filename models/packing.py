"""Files as they are stored: compressed, under the digest of their raw content."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_LEVEL = 1  # columns of digits shrink nearly as much as at level 6, in a quarter of the time
_PIECE_BYTES = 2**18


@dataclass(frozen=True, slots=True)
class PackedTrace:
    """A file in its stored form. `digest` is the SHA-256 of the `content_bytes` raw bytes."""

    digest: str
    content_bytes: int
    compressed: bytes

    def content(self) -> bytes:
        """The raw bytes."""
        return b"".join(self.pieces())

    def pieces(self) -> Iterator[bytes]:
        """The raw bytes in pieces, so that only a part of them is ever held."""
        expander = zlib.decompressobj()
        rest = self.compressed
        while not expander.eof:
            piece = expander.decompress(rest, _PIECE_BYTES)
            rest = expander.unconsumed_tail
            if piece:
                yield piece


def pack(pieces: Iterable[bytes]) -> PackedTrace:
    """The stored form of a file that comes in pieces; one piece at a time is held."""
    digest, packer = hashlib.sha256(), zlib.compressobj(_LEVEL)
    length, packed = 0, bytearray()
    for piece in pieces:
        digest.update(piece)
        length += len(piece)
        packed += packer.compress(piece)
    packed += packer.flush()
    return PackedTrace(digest.hexdigest(), length, bytes(packed))
