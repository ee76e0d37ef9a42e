"""All rules of a table file, checked once: what passes may be trusted in every lookup.

Source    docs/format.md of Sluice, "Validation"; the numbers of the comments are its own.
Traps     a file comes from anywhere: counts are compared with the bytes that are there before
          anything is made of them, and every refusal is InvalidTable.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from operator import lt, sub

from sluice_client.errors import InvalidTable
from sluice_client.table_layout import (
    CHECKED_FROM,
    CUT_WORDS,
    HEADER_BYTES,
    MAGIC,
    NAME_BYTES,
    PREFIX,
    REPEAT_WORDS,
    VERSION,
    WORD,
    Columns,
    Header,
    padded,
)

MAX_MESSAGE_BYTES = 2**48
_MAX_U32 = 2**32 - 1
_MAX_REVISION = 2**31 - 1
_MAX_STRETCH = 2**31 - 1  # bytes between two records
_MAX_SHIFT = 2**31 - 1  # units that a position or a repeated size moves between two records
_NOT_FINITE = 0x7FF0_0000_0000_0000  # from here on: infinite, no number, or with a minus sign
_NAME = re.compile(rb"[a-z0-9][a-z0-9._-]{0,63}")


def checked_header(data: memoryview) -> Header:
    """Return the header of a file that keeps rules 1 to 3: its sections may be viewed."""
    _check_prefix(data)
    header = Header.read(data)
    _check_sections(header, len(data))
    _check_ranges(header)
    _check_name(header)
    return header


def check_records(header: Header, columns: Columns, data: memoryview) -> None:
    """Check rules 2 and 4 to 8, but for the pipeline's section. Raises InvalidTable."""
    end = header.positions_offset + header.position_count * header.position_width
    if any(data[end : header.pipeline_offset]):
        raise InvalidTable("expected zeros behind the positions")
    _check_width(header, columns.positions)
    _check_messages("cuts", columns.cut_messages.tolist(), header)
    _check_messages("repeats", columns.repeat_messages.tolist(), header)
    for section, size, first in (
        (columns.cuts, CUT_WORDS, 3),
        (columns.repeats, REPEAT_WORDS, 2),
    ):
        if max(max(section[at::size]) for at in (first, first + 1)) >= _NOT_FINITE:
            raise InvalidTable("latencies and gaps must be finite, without a minus sign")
    _check_cuts(header, columns)
    _check_repeats(header, columns)


# --- the header -----------------------------------------------------------------------------------


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
    if header.position_width not in (4, 8) or any(header.reserved):
        raise InvalidTable("the header is not that of version 1")
    room, at, expected = length - HEADER_BYTES, HEADER_BYTES, []
    for name, count, size in (
        ("cuts", header.cut_count, CUT_WORDS * WORD),
        ("repeats", header.repeat_count, REPEAT_WORDS * WORD),
        ("positions", header.position_count, header.position_width),
        ("pipeline", header.pipeline_bytes, 1),
    ):
        if count > room // size:
            raise InvalidTable(f"the section {name} is longer than the file")
        expected.append(at)
        room, at = room - count * size, padded(at + count * size)
    found = [header.cuts_offset, header.repeats_offset, header.positions_offset]
    if [*found, header.pipeline_offset] != expected:
        raise InvalidTable("the sections are not where version 1 has them")
    if header.pipeline_offset + header.pipeline_bytes != length:
        raise InvalidTable("the sections are not where version 1 has them")


def _check_ranges(header: Header) -> None:
    if not 1 <= header.min_message_bytes <= header.max_message_bytes <= MAX_MESSAGE_BYTES:
        raise InvalidTable("expected 1 <= min_message_bytes <= max_message_bytes <= 2^48")
    if not 1e-6 <= header.relative_gap <= 1.0:
        raise InvalidTable("expected 1e-6 <= relative_gap <= 1")
    for name in ("min_fragment_bytes", "alignment_bytes"):
        if not 1 <= getattr(header, name) <= MAX_MESSAGE_BYTES:
            raise InvalidTable(f"expected 1 <= {name} <= 2^48")
    for name in ("max_fragment_bytes", "max_fragments"):
        if getattr(header, name) > MAX_MESSAGE_BYTES:
            raise InvalidTable(f"expected {name} <= 2^48")
    if header.fragment_cap < 1 or header.cut_count < 1 or header.repeat_count < 1:
        raise InvalidTable("expected fragment_cap, cut_count and repeat_count >= 1")


def _check_name(header: Header) -> None:
    if header.name_bytes > NAME_BYTES or any(header.name[header.name_bytes :]):
        raise InvalidTable("expected zeros behind the profile's name")
    name = header.name[: header.name_bytes]
    if name and _NAME.fullmatch(name) is None:
        raise InvalidTable("expected a profile's name or none")
    minimum, maximum = (1, _MAX_REVISION) if name else (0, 0)
    if not minimum <= header.revision <= maximum:
        raise InvalidTable("expected a revision, 0 where there is no name")


def _check_width(header: Header, positions: memoryview) -> None:
    if header.position_width == 4:
        return
    if not header.position_count or max(positions) <= _MAX_U32:
        raise InvalidTable("positions have 8 bytes exactly where one does not fit 4")


def _check_messages(name: str, messages: Sequence[int], header: Header) -> None:
    if messages[0] != header.min_message_bytes or messages[-1] != header.max_message_bytes:
        raise InvalidTable(f"{name} must span the range of message sizes")
    if any(not 0 < high - low <= _MAX_STRETCH for low, high in zip(messages, messages[1:])):
        raise InvalidTable(f"{name} must ascend by less than 2 GiB")


# --- cuts -----------------------------------------------------------------------------------------


def _check_cuts(header: Header, columns: Columns) -> None:
    """Rules 4 and 5, record by record."""
    expected = before = 0
    last: list[int] = []
    cuts, messages = columns.cuts, columns.cut_messages.tolist()
    for message, first, packed in zip(
        messages, cuts[1::CUT_WORDS].tolist(), cuts[2::CUT_WORDS].tolist()
    ):
        if first != expected or not 1 <= packed <= header.position_count - first + 1:
            raise InvalidTable("the positions of the cuts must follow each other")
        expected = first + packed - 1
        ends = columns.positions[first:expected].tolist()
        _check_cut(message, ends, header)
        if before and message - before > 1:
            _check_stretch((before, last), (message, ends), header)
        before, last = message, ends
    if expected != header.position_count:
        raise InvalidTable("expected no position that belongs to no cut")


def _check_cut(message: int, ends: list[int], header: Header) -> None:
    unit, maximum = header.alignment_bytes, header.max_fragment_bytes or message
    if len(ends) + 1 > header.fragment_limit:
        raise InvalidTable("a cut must keep the cap on fragments")
    if not ends:
        if message > maximum:
            raise InvalidTable("a cut must keep max_fragment_bytes")
        return
    final = message - unit * ends[-1]
    if ends[0] < 1 or final < 1 or not all(map(lt, ends, ends[1:])):
        raise InvalidTable("a cut must sum to its message")
    inner = list(map(sub, ends, [0, *ends]))
    if min(unit * min(inner), final) < header.min_fragment_bytes:
        raise InvalidTable("a cut must keep min_fragment_bytes")
    if max(unit * max(inner), final) > maximum:
        raise InvalidTable("a cut must keep max_fragment_bytes")


def _check_stretch(low: tuple[int, list[int]], high: tuple[int, list[int]], header: Header) -> None:
    """What is computed between these two keeps the limits and fits 64 bits."""
    (message, ends), (after, others) = low, high
    if len(ends) != len(others):
        raise InvalidTable("cuts of different counts must be neighbours")
    if not ends:
        return
    if max(ends[-1], others[-1]) > _MAX_SHIFT and any(
        abs(shift) > _MAX_SHIFT for shift in map(sub, others, ends)
    ):
        raise InvalidTable("positions must shift by less than 2^31 units")
    unit = header.alignment_bytes
    if unit > 1 and others[-1] != ends[-1]:
        shift = unit * abs(others[-1] - ends[-1])
        lasts = (message - unit * ends[-1], after - unit * others[-1])
        _check_last(min(lasts), max(lasts), shift, header)


def _check_last(minimum: int, maximum: int, shift: int, header: Header) -> None:
    twice_margin = header.alignment_bytes - (-shift >> 31)
    if 2 * (minimum - header.min_fragment_bytes) < twice_margin:
        raise InvalidTable("a last fragment may become too small between entries")
    limit = header.max_fragment_bytes
    if limit and 2 * (limit - maximum) < twice_margin:
        raise InvalidTable("a last fragment may become too large between entries")


# --- repeats --------------------------------------------------------------------------------------


def _check_repeats(header: Header, columns: Columns) -> None:
    """Rules 6 and 7, record by record."""
    repeats, messages = columns.repeats, columns.repeat_messages.tolist()
    words = (repeats[at::REPEAT_WORDS].tolist() for at in (1, 2, 3))
    before, last = 0, 0
    for message, size, latency, certificate in zip(messages, *words):
        if size:
            _check_repeat(message, size, header)
        elif latency or certificate:
            raise InvalidTable("a repeated size must be at least one byte, or 0 alone")
        if last and message - before > 1:
            _check_growth((before, last), (message, size), header)
        before, last = message, size


def _check_repeat(message: int, size: int, header: Header) -> None:
    fragments = -(-message // size)
    if min(size, message) > (header.max_fragment_bytes or message):
        raise InvalidTable("a repeated size must keep max_fragment_bytes")
    if fragments > header.fragment_limit:
        raise InvalidTable("a repeated size must keep the cap on fragments")
    if fragments == 1:
        return
    if size % header.alignment_bytes:
        raise InvalidTable("a repeated size must keep the alignment")
    if min(size, message - (fragments - 1) * size) < header.min_fragment_bytes:
        raise InvalidTable("a repeated size must keep min_fragment_bytes")


def _check_growth(one: tuple[int, int], other: tuple[int, int], header: Header) -> None:
    (message, size), (after, grown_size) = one, other
    fragments = -(-message // size)
    if not grown_size or fragments != -(-after // grown_size):
        if fragments != -(-(after - 1) // size):
            raise InvalidTable("a repeated size must keep its count of fragments")
        if min(size, after - 1) > (header.max_fragment_bytes or after):
            raise InvalidTable("a repeated size must keep max_fragment_bytes")
        return
    grown, rest = divmod(grown_size - size, header.alignment_bytes)
    if rest or not 0 <= grown <= _MAX_SHIFT:
        raise InvalidTable("repeated sizes must grow by whole units below 2^31")
    if grown and fragments > 1 and header.min_fragment_bytes > 1:
        remainders = (message - (fragments - 1) * size, after - (fragments - 1) * grown_size)
        twice_margin = 3 * header.alignment_bytes * (fragments - 1)
        if 2 * (min(remainders) - header.min_fragment_bytes) < twice_margin:
            raise InvalidTable("a remainder may become too small between entries")
