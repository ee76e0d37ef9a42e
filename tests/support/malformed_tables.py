"""Table files that no reader may accept, made from a good one; the same are checked in."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

from exports.table.slt import encode
from tests.support.plan_tables import the_worked_example

Change = Callable[[bytes], bytes]
NAN = struct.pack("<d", float("nan"))
CUTS, REPEATS, POSITIONS, PIPELINE = 256, 416, 544, 552  # of the worked example


def good() -> bytes:
    """The file that all of them come from."""
    return encode(the_worked_example(), profile="worked-example", revision=1)


def sealed(data: bytes) -> bytes:
    """The bytes with length and checksum put right, as a hostile writer would."""
    if len(data) < 32:
        return data
    head = struct.pack("<QI", len(data), zlib.crc32(data[32:]))
    return data[:16] + head + data[28:]


def put(offset: int, shape: str, value: int) -> Change:
    """Overwrite an integer, and seal."""
    return lambda data: sealed(
        data[:offset] + struct.pack("<" + shape, value) + data[offset + struct.calcsize(shape) :]
    )


def put_bytes(offset: int, value: bytes) -> Change:
    """Overwrite bytes, and seal."""
    return lambda data: sealed(data[:offset] + value + data[offset + len(value) :])


MALFORMED: dict[str, tuple[Change, str]] = {
    "empty": (lambda data: b"", "at least 256"),
    "header-only": (lambda data: sealed(data[:256]), "longer than the file"),
    "truncated": (lambda data: data[:-1], "shorter or longer"),
    "truncated-and-sealed": (lambda data: sealed(data[:-8]), "longer than the file"),
    "trailing-byte": (lambda data: data + b"\0", "shorter or longer"),
    "trailing-and-sealed": (lambda data: sealed(data + bytes(8)), "not where"),
    "as-text": (lambda data: data.replace(b"\r\n", b"\n"), "not a table file"),
    "json": (lambda data: b'{"format": "sluice-table"}'.ljust(300), "not a table file"),
    "newer-version": (put(8, "I", 2), "another version"),
    "long-header": (put(12, "I", 512), "not that of version 1"),
    "damaged": (lambda data: data[:300] + b"\xff" + data[301:], "checksum"),
    "reserved-not-zero": (put(28, "I", 1), "not that of version 1"),
    "reserved-at-the-end": (put(255, "B", 1), "not that of version 1"),
    "no-message": (put(32, "Q", 0), "min_message_bytes"),
    "range-turned": (put(40, "Q", 0), "max_message_bytes"),
    "greatest-too-great": (put(40, "Q", 2**48 + 1), "max_message_bytes"),
    "tolerance-nan": (put_bytes(48, NAN), "relative_gap"),
    "least-fragment-zero": (put(56, "Q", 0), "min_fragment_bytes"),
    "alignment-zero": (put(72, "Q", 0), "alignment_bytes"),
    "alignment-huge": (put(72, "Q", 2**64 - 1), "alignment_bytes"),
    "alignment-broken": (put(72, "Q", 2**48), "sum"),
    "cap-zero": (put(88, "Q", 0), "fragment_cap"),
    "cap-broken": (put(88, "Q", 1), "cap on fragments"),
    "cuts-countless": (put(96, "Q", 2**64 // 40), "longer than the file"),
    "repeats-countless": (put(104, "Q", 2**59), "longer than the file"),
    "positions-countless": (put(112, "Q", 2**62), "longer than the file"),
    "no-cuts": (put(96, "Q", 0), "not where"),
    "width-three": (put(120, "Q", 3), "not that of version 1"),
    "width-eight": (put(120, "Q", 8), "longer than the file"),
    "cuts-elsewhere": (put(128, "Q", 2**64 - 40), "not where"),
    "repeats-elsewhere": (put(136, "Q", 0), "not where"),
    "positions-elsewhere": (put(144, "Q", 2**63), "not where"),
    "pipeline-elsewhere": (put(152, "Q", 8), "not where"),
    "pipeline-longer": (put(160, "Q", 2**64 - 8), "longer than the file"),
    "revision-zero": (put(168, "I", 0), "revision"),
    "name-too-long": (put(172, "I", 65), "profile's name"),
    "name-cut-short": (put(172, "I", 3), "profile's name"),
    "name-not-one": (put_bytes(176, b"\xc3\xa9"), "profile's name"),
    "name-in-capitals": (put_bytes(176, b"W"), "profile's name"),
    "cut-begins-late": (put(CUTS, "Q", 2), "span"),
    "cut-not-ascending": (put(CUTS + 40, "Q", 1), "ascend"),
    "cut-shares-positions": (put(CUTS + 3 * 40 + 8, "Q", 0), "follow each other"),
    "cut-of-nothing": (put(CUTS + 16, "I", 0), "follow each other"),
    "cut-of-too-many": (put(CUTS + 3 * 40 + 16, "I", 2**32 - 1), "follow each other"),
    "cut-of-too-few": (put(CUTS + 3 * 40 + 16, "I", 1), "belongs to no cut"),
    "cut-reserved": (put(CUTS + 20, "I", 7), "follow each other"),
    "latency-nan": (put_bytes(CUTS + 24, NAN), "finite"),
    "latency-negative-zero": (put(CUTS + 24, "Q", 2**63), "minus"),
    "relative-gap-infinite": (put_bytes(CUTS + 32, struct.pack("<d", float("inf"))), "finite"),
    "repeat-zero": (put(REPEATS + 8, "Q", 0), "at least one byte"),
    "repeat-of-one-byte": (put(REPEATS + 3 * 32 + 8, "Q", 1), "count of fragments"),
    "repeat-loses-its-count": (put(REPEATS + 2 * 32 + 8, "Q", 49), "count of fragments"),
    "position-zero": (put(POSITIONS, "I", 0), "sum"),
    "position-past-the-message": (put(POSITIONS, "I", 100), "sum"),
    "position-far-past-it": (put(POSITIONS, "I", 2**32 - 1), "sum"),
    "pipeline-without-stages": (put(PIPELINE + 8, "I", 0), "stages"),
    "pipeline-of-too-many": (put(PIPELINE + 8, "I", 2**32 - 1), "stages"),
    "pipeline-ends-early": (put(PIPELINE + 8, "I", 3), "too early"),
    "pipeline-goes-on": (put(PIPELINE + 8, "I", 1), "behind the last stage"),
    "stage-without-ranges": (put(PIPELINE + 20, "I", 0), "ranges"),
    "stage-without-name": (put(PIPELINE + 16, "I", 0), "name"),
    "stage-name-endless": (put(PIPELINE + 16, "I", 2**32 - 1), "too early"),
    "stage-name-not-text": (put_bytes(PIPELINE + 48, b"\xff"), "UTF-8"),
    "stage-name-padding": (put(PIPELINE + 55, "B", 1), "zeros"),
    "stage-range-closed": (put(PIPELINE + 24, "Q", 64), "open"),
    "overhead-nan": (put_bytes(PIPELINE + 32, NAN), "overhead_us"),
    "overhead-negative": (put_bytes(PIPELINE + 32, struct.pack("<d", -1.0)), "minus"),
}
