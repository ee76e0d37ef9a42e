"""The project's own format of direct measurements.

    # any comment
    message_bytes,repetition,<stage>_us,<stage>_us,...,total_us
    64,0,0.366,1.256,1.7

One row is one measured repetition of one unpipelined message; times are in µs. The last column may
be the time of the whole message, which then is no stage. The column of repetitions may be absent:
they are numbered in the order of the rows of a size; and that of sizes may be called bytes, size,
msg_size and the like. Columns of begins may stand beside (fitting.readers.event_rows). A byte order
mark, CRLF line ends, empty lines and quoted fields are understood. Nothing is guessed: what breaks
a rule is refused with its line, and the text itself is never repeated in the refusal.
"""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from contract.limits import MAX_NAME_LENGTH
from domain.errors import UnreadableTrace
from domain.measurement import DirectTrace, Reading, TraceKind
from domain.traced_events import TracedEvents
from domain.units import format_bytes
from fitting.contract import CSV_BEGINS, FIRST_SIZE, ReaderSpec, mark
from fitting.readers.direct_header import (
    HEADER_RULE,
    SIZE_COLUMN,
    TIME_SUFFIX,
    Header,
    read_header,
    unreadable,
)
from fitting.readers.direct_rows import Columns
from fitting.readers.event_rows import EventRows, is_of_events
from fitting.readers.text import (
    BELOW_ZERO,
    BadRows,
    check_kind,
    first_rows,
    format_reasons,
    is_repetition,
    is_size,
)

MAX_LINE_LENGTH = 16_384
_OF_OTHERS = {"latency_us", "interarrival_us", "round_trip_us", "duration_us"}

_CHUNK_BYTES = 2**18  # more than the longest line that is read, four bytes a character


def _read_file(content: bytes) -> tuple[Header, DirectTrace, int]:
    """The columns and the trace in this file, in one pass, 8 bytes a number; and how many rows with
    a time below 0 were left out.

    A chunk of plain rows is read at once, one with anything else in it row by row: that is where
    every refusal comes from, with its line. Those of several rows are reported together.
    """
    body = content.removeprefix(codecs.BOM_UTF8)
    header, place = _find_header(body, _Place(0, len(content) - len(body), 1))
    columns = Columns(header) if header.events is None else EventRows(header.events)
    bad = BadRows()
    with bad.collected():
        for chunk, where in _chunks(body, place):
            if not columns.take(chunk, where.number):
                for number, line in _content_lines(_decoded(chunk, where.offset), where.number):
                    bad.tried(columns.add, line, number)
    return header, columns.trace(), columns.below_zero


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the file: index into what is read, offset from the file's first byte, line."""

    start: int
    offset: int
    number: int

    def behind(self, piece: bytes) -> _Place:
        """The place after this piece."""
        length = len(piece)
        return _Place(self.start + length, self.offset + length, self.number + piece.count(b"\n"))


def _chunks(body: bytes, place: _Place) -> Iterator[tuple[bytes, _Place]]:
    """Pieces of whole lines, and where each begins."""
    while place.start < len(body):
        end = place.start + _CHUNK_BYTES
        if end < len(body):
            end = body.rfind(b"\n", place.start, end) + 1
            if end == 0:
                raise _too_long(place.number)
        piece = body[place.start : end]
        yield piece, place
        place = place.behind(piece)


def _find_header(body: bytes, place: _Place) -> tuple[Header, _Place]:
    """The header, and the place of the line behind it."""
    while place.start < len(body):
        end = body.find(b"\n", place.start, place.start + _CHUNK_BYTES) + 1
        if end == 0 and len(body) - place.start > _CHUNK_BYTES:
            raise _too_long(place.number)
        line = body[place.start : end or len(body)]
        for number, text in _content_lines(_decoded(line, place.offset), place.number):
            return read_header(text, number), place.behind(line)
        place = place.behind(line)
    raise unreadable("the file is empty: expected a header line " + HEADER_RULE)


def _decoded(piece: bytes, offset: int) -> str:
    try:
        return piece.decode()
    except UnicodeDecodeError as refusal:
        raise unreadable(f"byte {offset + refusal.start} is not UTF-8") from None


def _content_lines(text: str, first: int = 1) -> Iterator[tuple[int, str]]:
    """(line number, line) of all that is neither empty nor a comment; `first` is the first number.

    Not splitlines(): that copies the whole text and also breaks at rare control characters.
    """
    start, number = 0, first - 1
    while start < len(text):
        number += 1
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if end - start > MAX_LINE_LENGTH:
            raise _too_long(number)
        line = text[start:end].strip(" \t\r")
        start = end + 1
        if line and not line.startswith("#"):
            yield number, line


def _too_long(number: int) -> UnreadableTrace:
    return unreadable(f"line {number}: longer than {MAX_LINE_LENGTH} characters")


def _detects(head: str) -> bool:
    first = next(iter(first_rows(head, 1)), "")
    columns = [column.strip().strip('"').strip() for column in first.split(",")]
    # Files with these columns are of other formats.
    if columns[1:2] == ["burst"] or not _OF_OTHERS.isdisjoint(columns[1:]):
        return False
    if first.removeprefix('"').startswith(SIZE_COLUMN):
        return True
    times = columns[2:] if is_repetition("".join(columns[1:2])) else columns[1:]
    times = [one for one in times if not is_of_events(one)]
    return is_size(columns[0]) and bool(times) and all(one.endswith(TIME_SUFFIX) for one in times)


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    header, trace, below = _read_file(content)
    check_kind(trace, kind, "direct CSV")
    stated = (
        *understood(trace),
        *_joining_entries(header, trace),
        *_header_entries(header),
        *format_reasons({BELOW_ZERO: below}),
    )
    return Reading("direct CSV", trace, stated)


def _joining_entries(header: Header, trace: DirectTrace) -> Iterator[tuple[str, str]]:
    """How events of a file with begins became fragments."""
    if header.events is None:
        return
    if header.events.fragment is not None:
        yield ("joined", "by message and fragment")
    elif trace.events is None:
        yield ("begins", "of no message are there as often in every stage, and are not used")
    else:
        yield ("joined", "the i-th begin of a message in each stage, where all have as many")


def _header_entries(header: Header) -> tuple[tuple[str, str], ...]:
    """What of the columns is not as the format's own header has it."""
    stated = []
    if header.size != SIZE_COLUMN:
        stated.append(("size_column", header.size[:MAX_NAME_LENGTH]))
    if not header.has_repetitions:
        stated.append(("repetitions", "numbered in the order of the rows of each size"))
    return tuple(stated)


def understood(trace: DirectTrace) -> tuple[tuple[str, str], ...]:
    """Return what was read, said back so that a misreading is seen: (name, value) pairs."""
    repeats = Counter(trace.message_bytes)
    low, high = min(repeats.values()), max(repeats.values())
    return (
        ("format", "direct CSV"),
        ("time_unit", "µs"),
        ("size_unit", "bytes"),
        ("rows", str(len(trace))),
        ("sizes", f"{len(repeats)}: {format_bytes(min(repeats))} to {format_bytes(max(repeats))}"),
        ("rows_per_size", str(low) if low == high else f"{low} to {high}"),
        ("stages", ", ".join(trace.stage_names)),
        *((("total", "measured too, in the last column"),) if trace.total_us is not None else ()),
        *_events_entries(trace.events),
    )


def _events_entries(events: TracedEvents | None) -> Iterator[tuple[str, str]]:
    if events is None:
        return
    messages = len(set(events.message))
    missing = f", without {events.missing} events" if events.missing else ""
    yield ("begins", f"of {len(events)} fragments of {messages} messages{missing}")


SPEC = ReaderSpec(
    format="direct CSV",
    about="the time of every stage of each message",
    layout="a header line " + HEADER_RULE,
    marks=(
        mark("message_bytes as the first column", FIRST_SIZE),
        mark("columns of stages, whose names end in _us", r",[^,]*[^,\s]_us\b"),
    ),
    detects=_detects,
    read=_read,
    begins=CSV_BEGINS,
)
