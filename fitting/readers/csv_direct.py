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
import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from domain.errors import UnreadableTrace
from domain.measurement import MAX_TIME_US, DirectTrace, Reading, TraceKind
from domain.pipeline import MAX_MESSAGE_BYTES, MAX_NAME_LENGTH, MAX_STAGES
from domain.traced_events import TracedEvents
from domain.units import format_bytes
from fitting.columns import Sizes, Times
from fitting.contract import FIRST_SIZE, ReaderSpec, mark
from fitting.readers.columns import plain_rows
from fitting.readers.event_rows import (
    EventLayout,
    EventRows,
    event_layout,
    is_of_events,
    numbered,
)
from fitting.readers.text import (
    BELOW_ZERO,
    BadRows,
    check_kind,
    format_reasons,
    is_no_stage,
    is_repetition,
    is_size,
    refuse_below_zero,
)

if TYPE_CHECKING:
    from fitting.readers.columns import Matrix

SIZE_COLUMN = "message_bytes"
REPETITION_COLUMN = "repetition"
TIME_SUFFIX = "_us"
MAX_REPETITION = 2**48
MAX_LINE_LENGTH = 16_384
_OF_OTHERS = {"latency_us", "interarrival_us", "round_trip_us", "duration_us"}
_TOTAL = "total"  # the name of total_us without its unit
_CHUNK_BYTES = 2**18  # more than the longest line that is read, four bytes a character
# A row of plain decimal numbers: neither nan, inf and hexadecimal nor 1_000 and foreign digits.
_PLAIN_ROW = re.compile(r"[0-9eE+\-., \t]*", re.ASCII)
_PLAIN_NUMBER = re.compile(r"[+-]?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_WHOLE_NUMBER = re.compile(r"\+?[0-9]{1,20}", re.ASCII)


def _read_file(content: bytes) -> tuple[_Header, DirectTrace, int]:
    """The columns and the trace in this file, in one pass, 8 bytes a number; and how many rows with
    a time below 0 were left out.

    A chunk of plain rows is read at once, one with anything else in it row by row: that is where
    every refusal comes from, with its line. Those of several rows are reported together.
    """
    body = content.removeprefix(codecs.BOM_UTF8)
    header, place = _find_header(body, _Place(0, len(content) - len(body), 1))
    columns = _Columns(header) if header.events is None else EventRows(header.events)
    bad = BadRows()
    with bad.collected():
        for chunk, where in _chunks(body, place):
            if not columns.take(chunk, where.number):
                for number, line in _content_lines(_decoded(chunk, where.offset), where.number):
                    bad.tried(columns.add, line, number)
    return header, columns.trace(), columns.below_zero


@dataclass(frozen=True, slots=True)
class _Header:
    """What the columns of sizes is called, whether there is one of repetitions, and the others.

    `events` says where the columns are in a file with begins.
    """

    size: str
    has_repetitions: bool
    names: tuple[str, ...]
    events: EventLayout | None = None

    @property
    def num_whole(self) -> int:
        """How many columns come before those of times."""
        return 1 + self.has_repetitions

    @property
    def width(self) -> int:
        """How many columns there are."""
        return self.num_whole + len(self.names)


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


_HEADER_RULE = f"{SIZE_COLUMN},<stage>{TIME_SUFFIX},..."


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


def _find_header(body: bytes, place: _Place) -> tuple[_Header, _Place]:
    """The header, and the place of the line behind it."""
    while place.start < len(body):
        end = body.find(b"\n", place.start, place.start + _CHUNK_BYTES) + 1
        if end == 0 and len(body) - place.start > _CHUNK_BYTES:
            raise _too_long(place.number)
        line = body[place.start : end or len(body)]
        for number, text in _content_lines(_decoded(line, place.offset), place.number):
            return _read_header(text, number), place.behind(line)
        place = place.behind(line)
    raise _unreadable("the file is empty: expected a header line " + _HEADER_RULE)


def _decoded(piece: bytes, offset: int) -> str:
    try:
        return piece.decode()
    except UnicodeDecodeError as refusal:
        raise _unreadable(f"byte {offset + refusal.start} is not UTF-8") from None


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
    return _unreadable(f"line {number}: longer than {MAX_LINE_LENGTH} characters")


def _fields(line: str, number: int) -> list[str]:
    if '"' not in line:
        return line.split(",")
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error:
        raise _unreadable(f"line {number}: a quoted field is not closed") from None


# --- header ---------------------------------------------------------------------------------------


def _read_header(line: str, number: int) -> _Header:
    """The columns, in order. Raises UnreadableTrace."""
    columns = [column.strip() for column in _fields(line, number)]
    for separator, name in ((";", "semicolons"), ("\t", "tabs")):
        if separator in line and len(columns) <= 2:
            raise _unreadable(
                f"line {number}: columns are separated by {name}; expected commas, and a point as "
                "the decimal mark"
            )
    if "\r" in line:
        raise _unreadable(f"line {number}: expected lines that end in LF or CRLF, not in CR alone")
    if not is_size(columns[0]):
        raise _unreadable(f"line {number}: expected the header line {_HEADER_RULE}")
    has_repetitions = is_repetition("".join(columns[1:2]))
    first = 1 + has_repetitions
    others = list(enumerate(columns))[first:]
    stages = [(place, column) for place, column in others if not is_of_events(column)]
    if not 1 <= len(stages) <= MAX_STAGES:
        raise _unreadable(
            f"line {number}: expected 1 to {MAX_STAGES} stage columns, got {len(stages)}"
        )
    places = [place + 1 for place, _ in stages]
    names = tuple(_stage_name(column, f"line {number}, column {at + 1}") for at, column in stages)
    _refuse_duplicates(names, number, places)
    _check_total(names, number)
    if not has_repetitions:
        _check_stages(names, number, places)
    events = None
    if len(stages) < len(others):
        timed = [(place - 1, name) for place, name in zip(places, names, strict=True)]
        events = event_layout(columns, timed, number, has_repetitions=has_repetitions)
    return _Header(columns[0], has_repetitions, names, events)


def _stage_name(column: str, where: str) -> str:
    name = column.removesuffix(TIME_SUFFIX)
    if name == column or not name:
        raise _unreadable(
            f"{where}: expected the name of a stage followed by {TIME_SUFFIX} (times are in µs)"
        )
    if len(name) > MAX_NAME_LENGTH:
        raise _unreadable(f"{where}: expected a stage name of at most {MAX_NAME_LENGTH} characters")
    if not name.isprintable():
        raise _unreadable(f"{where}: expected a stage name without control characters")
    return name


def _check_total(names: tuple[str, ...], number: int) -> None:
    if _TOTAL in names[:-1]:
        raise _unreadable(
            f"line {number}: expected {_TOTAL}{TIME_SUFFIX}, the time of the whole message, to be "
            "the last column"
        )
    if names == (_TOTAL,):
        raise _unreadable(
            f"line {number}: expected the column of a stage before {_TOTAL}{TIME_SUFFIX}; for "
            f"whole messages alone the header is {SIZE_COLUMN},latency_us"
        )


def _check_stages(names: tuple[str, ...], number: int, places: Sequence[int]) -> None:
    """Refuse statistics and times of whole messages, which tables of other tools have."""
    for place, name in zip(places, names, strict=True):
        if is_no_stage(name):
            raise _unreadable(
                f"line {number}, column {place}: {name}{TIME_SUFFIX} may be a statistic or a whole "
                f"message; expected the name of a stage, as in copy{TIME_SUFFIX}. A row is one "
                f"message; for whole messages alone the header is {SIZE_COLUMN},latency_us"
            )


def _refuse_duplicates(names: tuple[str, ...], number: int, places: Sequence[int]) -> None:
    seen: dict[str, int] = {}
    for place, name in zip(places, names, strict=True):
        if name in seen:
            raise _unreadable(
                f"line {number}: columns {seen[name]} and {place} have the same name; expected a "
                "name of its own for every stage"
            )
        seen[name] = place


# --- rows -----------------------------------------------------------------------------------------


class _Columns:
    """The numbers read so far, by column."""

    def __init__(self, header: _Header) -> None:
        self._header = header
        self._sizes, self._repetitions = Sizes("q"), Sizes("q")
        self._times = tuple(Times("d") for _ in header.names)
        self.below_zero = 0

    def take(self, chunk: bytes, _first: int) -> bool:
        """Take all rows of this chunk at once; False, and nothing taken, where that cannot be."""
        rows = plain_rows(chunk, self._header.width, num_whole=self._header.num_whole)
        if rows is None:
            return False
        if not len(rows):
            return True
        if not self._are_within(rows):
            return False
        is_below = (rows < 0.0).any(axis=1)
        if is_below.any():
            self.below_zero += int(is_below.sum())
            rows = rows[~is_below]
        by_column, first = rows.T, self._header.num_whole
        self._sizes.frombytes(by_column[0].astype("q").data.cast("B"))
        if self._header.has_repetitions:
            self._repetitions.frombytes(by_column[1].astype("q").data.cast("B"))
        for column, times in zip(self._times, by_column[first:], strict=True):
            column.frombytes(times.copy().data.cast("B"))
        return True

    def _are_within(self, rows: Matrix) -> bool:
        low, high = rows.min(axis=0), rows.max(axis=0)
        first = self._header.num_whole
        return bool(
            low[0] >= 1
            and high[0] <= MAX_MESSAGE_BYTES
            and high[1:first].max(initial=0) <= MAX_REPETITION
            and low[:first].min() >= 0.0
            and low[first:].min() >= -MAX_TIME_US
            and high[first:].max() <= MAX_TIME_US
        )

    def add(self, line: str, number: int) -> None:
        """Read one row. Raises UnreadableTrace."""
        fields, expected = _fields(line, number), self._header.width
        if len(fields) != expected:
            raise _unreadable(
                f"line {number}: expected {expected} fields, as in the header, got {len(fields)}"
            )
        wholes, times = _numbers(fields, number, self._header.num_whole)
        if min(times) < 0.0:  # a difference of noisy times
            self.below_zero += 1
            return
        self._sizes.append(wholes[0])
        self._repetitions.extend(wholes[1:])
        for column, time in zip(self._times, times, strict=True):
            column.append(time)

    def trace(self) -> DirectTrace:
        """The trace of these columns. Raises UnreadableTrace where there is no row."""
        if self.below_zero and not self._sizes:
            refuse_below_zero(self.below_zero, self.below_zero)
        if not self._sizes:
            raise _unreadable("no measurements: expected at least one row after the header")
        names, times, total = self._header.names, self._times, None
        if names[-1] == _TOTAL:
            names, times, total = names[:-1], times[:-1], times[-1]
        if not self._header.has_repetitions:
            self._repetitions = _numbered(self._sizes)
        return DirectTrace(names, self._sizes, self._repetitions, times, total)


def _numbered(sizes: Sizes) -> Sizes:
    """For each row how many rows of its size come before it."""
    import numpy as np

    found = Sizes("q")
    found.frombytes(numbered(np.frombuffer(sizes, np.int64)).data.cast("B"))
    return found


def _numbers(fields: list[str], number: int, num_whole: int) -> tuple[list[int], list[float]]:
    """Size, repetition where it is given, and times of a row. Raises UnreadableTrace."""
    try:
        wholes = list(map(int, fields[:num_whole]))
        times = list(map(float, fields[num_whole:]))
    except ValueError:
        _explain(fields, number, num_whole)
    if (
        _PLAIN_ROW.fullmatch("".join(fields)) is None
        or not 1 <= wholes[0] <= MAX_MESSAGE_BYTES
        or not all(0 <= repetition <= MAX_REPETITION for repetition in wholes[1:])
        or not -MAX_TIME_US <= min(times) <= max(times) <= MAX_TIME_US
    ):
        _explain(fields, number, num_whole)
    return wholes, times


def _explain(fields: list[str], number: int, num_whole: int) -> NoReturn:
    """Raise for the first field of a refused row that breaks a rule."""
    _explain_whole(fields[0], f"line {number}: {SIZE_COLUMN}", (1, MAX_MESSAGE_BYTES))
    for field in fields[1:num_whole]:
        _explain_whole(field, f"line {number}: {REPETITION_COLUMN}", (0, MAX_REPETITION))
    for place, field in enumerate(fields[num_whole:], num_whole + 1):
        if _PLAIN_NUMBER.fullmatch(field.strip()) is None:
            raise _unreadable(
                f"line {number}, column {place}: expected a finite decimal number of µs, as 12.5"
            )
        if not -MAX_TIME_US <= float(field.strip()) <= MAX_TIME_US:
            raise _unreadable(
                f"line {number}, column {place}: expected a time from 0 to {MAX_TIME_US:g} µs"
            )
    raise _unreadable(f"line {number}: expected decimal numbers separated by commas")


def _explain_whole(field: str, where: str, limits: tuple[int, int]) -> None:
    minimum, maximum = limits
    word = field.strip()  # which takes away more than int() and float() do
    if _WHOLE_NUMBER.fullmatch(word) is None or not minimum <= int(word) <= maximum:
        raise _unreadable(f"{where}: expected a whole number from {minimum} to {maximum}")


def _unreadable(detail: str) -> UnreadableTrace:
    return UnreadableTrace(detail, field="measurements")


# --- the reader -----------------------------------------------------------------------------------


def _detects(head: str) -> bool:
    lines = (line.strip() for line in head.removeprefix("\ufeff").splitlines())
    first = next((line for line in lines if line and not line.startswith("#")), "")
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


def _joining_entries(header: _Header, trace: DirectTrace) -> Iterator[tuple[str, str]]:
    """How events of a file with begins became fragments."""
    if header.events is None:
        return
    if header.events.fragment is not None:
        yield ("joined", "by message and fragment")
    elif trace.events is None:
        yield ("begins", "of no message are there as often in every stage, and are not used")
    else:
        yield ("joined", "the i-th begin of a message in each stage, where all have as many")


def _header_entries(header: _Header) -> tuple[tuple[str, str], ...]:
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
    layout="a header line " + _HEADER_RULE,
    marks=(
        mark("message_bytes as the first column", FIRST_SIZE),
        mark("columns of stages, whose names end in _us", r",[^,]*[^,\s]_us\b"),
    ),
    detects=_detects,
    read=_read,
)
