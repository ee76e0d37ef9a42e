"""Where everything is in a table file, version 1 (docs/format.md of Sluice), and views of it."""

from __future__ import annotations

import struct
import sys
from array import array
from typing import Final, Literal, NamedTuple

MAGIC: Final = b"\x89SLT\r\n\x1a\n"
VERSION: Final = 1
HEADER_BYTES: Final = 256
CHECKED_FROM: Final = 32  # the checksum covers all from here on
NAME_BYTES: Final = 64
CUT_WORDS: Final = 5  # records in words of eight bytes
REPEAT_WORDS: Final = 4
WORD: Final = 8

PREFIX: Final = struct.Struct("<8sIIQII")  # magic, version, header, file, checksum, zero
_HEADER: Final = struct.Struct("<QQdQQQQQQQQQQQQQQII64s16s")


class Header(NamedTuple):
    """The header's fields from byte 32 on, in their order; 0 is "none" for the two maxima."""

    min_message_bytes: int
    max_message_bytes: int
    relative_gap: float
    min_fragment_bytes: int
    max_fragment_bytes: int
    alignment_bytes: int
    max_fragments: int
    fragment_cap: int
    cut_count: int
    repeat_count: int
    position_count: int
    position_width: int
    cuts_offset: int
    repeats_offset: int
    positions_offset: int
    pipeline_offset: int
    pipeline_bytes: int
    revision: int
    name_bytes: int
    name: bytes
    reserved: bytes

    @classmethod
    def read(cls, data: memoryview) -> Header:
        """Return the header of a file that has one."""
        return cls(*_HEADER.unpack(data[CHECKED_FROM:HEADER_BYTES]))

    @property
    def fragment_limit(self) -> int:
        """The cap on the number of fragments of any message."""
        return min(self.max_fragments or self.fragment_cap, self.fragment_cap)


class Columns(NamedTuple):
    """Views into the file, nothing copied: whole sections as numbers of eight or four bytes.

    `cut_messages` and `repeat_messages` are the message sizes of the records, for bisection.
    """

    cuts: memoryview
    cut_messages: memoryview
    repeats: memoryview
    repeat_messages: memoryview
    positions: memoryview

    @classmethod
    def of(cls, data: memoryview, header: Header) -> Columns:
        """Return the views of a file whose sections are where its header says."""
        cuts = numbers(data[header.cuts_offset : header.repeats_offset], "Q")
        repeats = numbers(data[header.repeats_offset : header.positions_offset], "Q")
        end = header.positions_offset + header.position_count * header.position_width
        code: Literal["I", "Q"] = "I" if header.position_width == 4 else "Q"
        positions = numbers(data[header.positions_offset : end], code)
        return cls(cuts, cuts[::CUT_WORDS], repeats, repeats[::REPEAT_WORDS], positions)


def numbers(
    data: memoryview, code: Literal["I", "Q"], *, byteorder: str = sys.byteorder
) -> memoryview:
    """Return little-endian numbers as a view; a copy, turned round, on machines of the other
    order.
    """
    if byteorder == "little":
        return data.cast(code)
    turned = array(code, data.tobytes())
    turned.byteswap()
    return memoryview(turned)


def padded(length: int) -> int:
    """Return the length rounded up to a multiple of eight."""
    return -(-length // WORD) * WORD
