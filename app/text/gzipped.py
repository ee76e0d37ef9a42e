"""Gzip files of measurements, expanded within limits."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from domain.errors import BodyTooLarge, UnsupportedMediaType

FREE_EXPANSION_BYTES = 2**18
MAX_EXPANSION = 200  # times the compressed length; text of measurements shrinks by 3 to 20
MAGIC = b"\x1f\x8b"
_PIECE_BYTES = 2**18


class Expander:
    """One gzip file, of one or several members, in pieces of any length.

    What has come out may never be longer than `limit`, nor than MAX_EXPANSION times what was read
    for it, beyond the first FREE_EXPANSION_BYTES.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._given = 0
        self._member = zlib.decompressobj(wbits=31)

    def feed(self, packed: bytes) -> Iterator[bytes]:
        """Yield what these bytes expand to. Raises BodyTooLarge and UnsupportedMediaType."""
        rest = packed
        while rest:
            if self._member.eof:
                rest = rest.lstrip(b"\0")  # members may be padded
                if not rest:
                    return
                self._member = zlib.decompressobj(wbits=31)
            before = len(rest)
            try:
                piece = self._member.decompress(rest, _PIECE_BYTES)
            except zlib.error:
                raise UnsupportedMediaType("the body is not a gzip file") from None
            rest = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            self._taken += before - len(rest)
            self._given += len(piece)
            if self._given > min(self._limit, FREE_EXPANSION_BYTES + MAX_EXPANSION * self._taken):
                raise BodyTooLarge(
                    f"expected a gzip file that expands to at most {self._limit} bytes and at most "
                    f"{MAX_EXPANSION} times its length"
                )
            if piece:
                yield piece

    def finish(self) -> None:
        """Raise UnsupportedMediaType unless the file has come to its end."""
        if not self._member.eof:
            raise UnsupportedMediaType("the gzip file ends too early")


def expand(packed: bytes, limit: int) -> bytes:
    """Return what a gzip file holds. Raises BodyTooLarge for a bomb, else UnsupportedMediaType."""
    expander = Expander(limit)
    content = b"".join(expander.feed(packed))
    expander.finish()
    return content
