"""Where everything is in a table file, version 1: docs/format.md, in code."""

from __future__ import annotations

import struct
from dataclasses import dataclass, fields
from typing import Final

MAGIC: Final = b"\x89SLT\r\n\x1a\n"  # as PNG's: a transfer as text, or cut at 7 bits, spoils it
VERSION: Final = 1
HEADER_BYTES: Final = 256
CHECKED_FROM: Final = 32  # the checksum covers all from here on
NAME_BYTES: Final = 64

PREFIX: Final = struct.Struct("<8sIIQII")  # magic, version, header, file, checksum, zero
HEADER: Final = struct.Struct("<QQdQQQQQQQQQQQQQQII64s16s")
CUT: Final = struct.Struct("<QQIIdd")  # message, first position, fragments, zero, latency, gap
REPEAT: Final = struct.Struct("<QQdd")  # message, size, latency, gap
PIPELINE: Final = struct.Struct("<dII")  # delay, stages, zero
STAGE: Final = struct.Struct("<II")  # name's bytes, ranges
RANGE: Final = struct.Struct("<Qdd")  # up to (0: open), overhead, ns per byte


@dataclass(frozen=True, slots=True)
class Header:
    """The header's fields from byte 32 on, in their order."""

    min_message_bytes: int
    max_message_bytes: int
    relative_gap: float
    min_fragment_bytes: int
    max_fragment_bytes: int  # 0: none
    alignment_bytes: int
    max_fragments: int  # 0: none
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

    def pack(self) -> bytes:
        """Bytes 32 to 255."""
        return HEADER.pack(*(getattr(self, field.name) for field in fields(self)))


@dataclass(frozen=True, slots=True)
class Sections:
    """Where the sections begin, and the length of the file; each follows from the counts."""

    cuts_offset: int
    repeats_offset: int
    positions_offset: int
    pipeline_offset: int
    file_bytes: int

    @classmethod
    def of(
        cls, *, cuts: int, repeats: int, positions: int, width: int, pipeline_bytes: int
    ) -> Sections:
        """The sections without a byte between them, apart from what rounds up to 8."""
        at_repeats = HEADER_BYTES + cuts * CUT.size
        at_positions = at_repeats + repeats * REPEAT.size
        at_pipeline = padded(at_positions + positions * width)
        return cls(
            HEADER_BYTES, at_repeats, at_positions, at_pipeline, at_pipeline + pipeline_bytes
        )


def padded(length: int) -> int:
    """The length rounded up to a multiple of 8."""
    return -(-length // 8) * 8
