"""Table files (.slt): a plan table as bytes that are read by memory mapping, without parsing.

Source    docs/format.md, version 1; the numbers are domain.plan_table's.
Cost      linear in the file, in time and in memory.
Exact     deterministic to the byte; `encode` of what `decode` took gives the same bytes.
Traps     a file comes from anywhere: counts are compared with the bytes that are there before
          anything is made of them, and every refusal is InvalidTable.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from domain.errors import InvalidInput, InvalidTable
from domain.plan_table import PlanTable, TableCut, TableRepeat
from domain.problem import FragmentLimits
from exports.table.layout import (
    CHECKED_FROM,
    CUT,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    NAME_BYTES,
    PREFIX,
    REPEAT,
    VERSION,
    Header,
    Sections,
    padded,
)
from exports.table.pipeline import pack_pipeline, positive, unpack_pipeline
from exports.table.stored import StoredTable

_MAX_U32 = 2**32 - 1


def encode(table: PlanTable, *, profile: str, revision: int) -> bytes:
    """The file of this plan table; `profile` "" and `revision` 0 where its pipeline has no name.

    Raises InvalidInput for a bad name and InvalidTable for a stage's name that is no text.
    """
    named = StoredTable(profile, revision, table)
    positions = [ends for cut in table.cuts for ends in _positions(cut, table.limits)]
    width = 4 if max(positions, default=0) <= _MAX_U32 else 8
    pipeline = pack_pipeline(table.pipeline)
    sections = Sections.of(
        cuts=len(table.cuts),
        repeats=len(table.repeats),
        positions=len(positions),
        width=width,
        pipeline_bytes=len(pipeline),
    )
    header = _header_of(named, sections, positions=len(positions), width=width)
    packed = _pack_positions(positions, width)
    rest = b"".join((header.pack(), *_records(table), packed, pipeline))
    checksum = zlib.crc32(rest)
    return PREFIX.pack(MAGIC, VERSION, HEADER_BYTES, sections.file_bytes, checksum, 0) + rest


def decode(data: bytes) -> StoredTable:
    """The plan table of a file, which is checked in everything. Raises InvalidTable."""
    try:
        return _decode(memoryview(data))
    except InvalidTable:
        raise
    except InvalidInput as refusal:
        raise InvalidTable(f"not a valid table file: {refusal.detail}") from None


def digest_of(data: bytes) -> str:
    """What a file is known by: its SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


# --- writing --------------------------------------------------------------------------------------


def _positions(cut: TableCut, limits: FragmentLimits) -> Iterator[int]:
    unit = limits.alignment_bytes
    return (end // unit for end in accumulate(cut.fragment_bytes[:-1]))


def _header_of(named: StoredTable, sections: Sections, *, positions: int, width: int) -> Header:
    table, name = named.table, named.profile.encode()
    return Header(
        min_message_bytes=table.min_message_bytes,
        max_message_bytes=table.max_message_bytes,
        relative_gap=table.relative_gap,
        min_fragment_bytes=table.limits.min_fragment_bytes,
        max_fragment_bytes=table.limits.max_fragment_bytes or 0,
        alignment_bytes=table.limits.alignment_bytes,
        max_fragments=table.limits.max_fragments or 0,
        fragment_cap=table.fragment_cap,
        cut_count=len(table.cuts),
        repeat_count=len(table.repeats),
        position_count=positions,
        position_width=width,
        cuts_offset=sections.cuts_offset,
        repeats_offset=sections.repeats_offset,
        positions_offset=sections.positions_offset,
        pipeline_offset=sections.pipeline_offset,
        pipeline_bytes=sections.file_bytes - sections.pipeline_offset,
        revision=named.revision,
        name_bytes=len(name),
        name=name,
        reserved=b"",
    )


def _records(table: PlanTable) -> Iterator[bytes]:
    first = 0
    for cut in table.cuts:
        gap = cut.relative_gap + 0.0  # which also turns -0 to 0
        yield CUT.pack(cut.message_bytes, first, cut.fragments, 0, cut.latency_us + 0.0, gap)
        first += cut.fragments - 1
    for repeat in table.repeats:
        gap = repeat.relative_gap + 0.0
        yield REPEAT.pack(repeat.message_bytes, repeat.size_bytes, repeat.latency_us + 0.0, gap)


def _pack_positions(positions: Sequence[int], width: int) -> bytes:
    packed = struct.pack(f"<{len(positions)}{'I' if width == 4 else 'Q'}", *positions)
    return packed.ljust(padded(len(packed)), b"\0")


# --- reading --------------------------------------------------------------------------------------


def _decode(data: memoryview) -> StoredTable:
    _check_prefix(data)
    header = Header(*HEADER.unpack(data[CHECKED_FROM:HEADER_BYTES]))
    _check_sections(header, len(data))
    positions = _unpack_positions(header, data)
    limits = FragmentLimits(
        header.min_fragment_bytes,
        header.max_fragment_bytes or None,
        header.alignment_bytes,
        header.max_fragments or None,
    )
    table = PlanTable(
        unpack_pipeline(data[header.pipeline_offset :]),
        limits,
        header.fragment_cap,
        header.min_message_bytes,
        header.max_message_bytes,
        header.relative_gap,
        tuple(_cuts(header, data, positions)),
        tuple(_repeats(header, data)),
    )
    return StoredTable(_name(header), header.revision, table)


def _check_prefix(data: memoryview) -> None:
    if len(data) < HEADER_BYTES:
        raise InvalidTable(f"a table file has at least {HEADER_BYTES} bytes")
    magic, version, header_bytes, file_bytes, checksum, zero = PREFIX.unpack(data[: PREFIX.size])
    if magic != MAGIC:
        raise InvalidTable("this is not a table file: its first eight bytes are others")
    if version != VERSION:
        raise InvalidTable(f"this table file is of another version than {VERSION}")
    if header_bytes != HEADER_BYTES or zero:
        raise InvalidTable("the header is not that of version 1")
    if file_bytes != len(data):
        raise InvalidTable("the file is shorter or longer than its header says")
    if zlib.crc32(data[CHECKED_FROM:]) != checksum:
        raise InvalidTable("the checksum is wrong: the file was damaged")


def _check_sections(header: Header, length: int) -> None:
    room = length - HEADER_BYTES
    if header.position_width not in (4, 8) or any(header.reserved):
        raise InvalidTable("the header is not that of version 1")
    for name, count, size in (
        ("cuts", header.cut_count, CUT.size),
        ("repeats", header.repeat_count, REPEAT.size),
        ("positions", header.position_count, header.position_width),
        ("pipeline", header.pipeline_bytes, 1),
    ):
        if count > room // size:
            raise InvalidTable(f"the section {name} is longer than the file")
        room -= count * size
    found = (
        header.cuts_offset,
        header.repeats_offset,
        header.positions_offset,
        header.pipeline_offset,
        length,
    )
    sections = Sections.of(
        cuts=header.cut_count,
        repeats=header.repeat_count,
        positions=header.position_count,
        width=header.position_width,
        pipeline_bytes=header.pipeline_bytes,
    )
    if found != tuple(getattr(sections, name) for name in Sections.__slots__):
        raise InvalidTable("the sections are not where version 1 has them")


def _unpack_positions(header: Header, data: memoryview) -> Sequence[int]:
    end = header.positions_offset + header.position_count * header.position_width
    if any(data[end : header.pipeline_offset]):
        raise InvalidTable("expected zeros behind the positions")
    kind = "I" if header.position_width == 4 else "Q"
    positions = struct.unpack_from(f"<{header.position_count}{kind}", data, header.positions_offset)
    if (max(positions, default=0) > _MAX_U32) != (header.position_width == 8):
        raise InvalidTable("positions have 8 bytes exactly where one does not fit 4")
    return positions


def _cuts(header: Header, data: memoryview, positions: Sequence[int]) -> Iterator[TableCut]:
    expected, unit = 0, header.alignment_bytes
    section = data[header.cuts_offset : header.repeats_offset]
    for message, first, fragments, zero, latency_us, gap in CUT.iter_unpack(section):
        if zero or first != expected or not 1 <= fragments <= len(positions) - first + 1:
            raise InvalidTable("the positions of the cuts must follow each other")
        expected = first + fragments - 1
        ends = (0, *(unit * end for end in positions[first:expected]), message)
        sizes = tuple(high - low for low, high in pairwise(ends))
        yield TableCut(message, sizes, positive(latency_us), positive(gap))
    if expected != len(positions):
        raise InvalidTable("expected no position that belongs to no cut")


def _repeats(header: Header, data: memoryview) -> Iterator[TableRepeat]:
    section = data[header.repeats_offset : header.positions_offset]
    for message, size, latency_us, gap in REPEAT.iter_unpack(section):
        yield TableRepeat(message, size, positive(latency_us), positive(gap))


def _name(header: Header) -> str:
    if header.name_bytes > NAME_BYTES or any(header.name[header.name_bytes :]):
        raise InvalidTable("expected zeros behind the profile's name")
    try:
        return header.name[: header.name_bytes].decode("ascii")
    except UnicodeDecodeError:
        raise InvalidTable("expected a profile's name or none") from None
