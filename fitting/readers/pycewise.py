"""pycewise's input: a header line with `size` and `duration`, one row a measurement.

    size,duration
    4096,0.0001156

Other columns (start, index) are left out. The file says neither its unit nor what was timed:
pycewise comes from SimGrid's calibration, whose times are seconds, so seconds are assumed and a
notice says so; a column `duration_us` is taken at its word. The durations are taken as one-way
latencies, and as inter-arrival times where the user's kind is indirect. Where a column names the
operation, all rows have to be of the same one.

Two columns of numbers without a header line are the same to this reader, except that the user has
to say what was timed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from domain.errors import UnreadableTrace
from domain.measurement import MessageTrace, Reading, Samples, TraceKind
from domain.solution import Notice
from fitting.contract import ReaderSpec, mark
from fitting.readers.columns import fields_of
from fitting.readers.simgrid import is_calls
from fitting.readers.text import (
    MAX_LINE_LENGTH,
    Collector,
    check_kind,
    decoded,
    first_rows,
    format_left_out,
    format_sizes,
    number_of,
    refuse,
    size_of,
)

FORMAT = "pycewise CSV"
_SIZE, _SECONDS, _MICROSECONDS = "size", "duration", "duration_us"
_OPERATIONS = ("op", "operation", "function", "call")
_SECOND_US = 1e6
_BEGINS = re.compile(
    r"^(?=[^\n]{0,400}?\bsize\b)(?=[^\n]{0,400}?\bduration(?:_us)?\b)[^,\n]{1,60},",
    re.MULTILINE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the columns are and what they mean."""

    size: int
    time: int
    scale: float
    operation: int | None = None
    has_header: bool = True


_WITHOUT_HEADER = _Layout(0, 1, _SECOND_US, has_header=False)


def _detects(head: str) -> bool:
    for line in first_rows(head, 1):
        try:
            return _layout(fields_of(line, 1)) is not None and not is_calls(head)
        except UnreadableTrace:
            return False
    return False


def _layout(fields: list[str]) -> _Layout | None:
    """What the first line says; None where it is no such file."""
    if len(fields) == 2 and size_of(fields[0]) is not None and number_of(fields[1]) is not None:
        return _WITHOUT_HEADER
    names = [name.lower() for name in fields]
    unit = next((name for name in (_MICROSECONDS, _SECONDS) if name in names), None)
    if _SIZE not in names or unit is None:
        return None
    return _Layout(
        names.index(_SIZE),
        names.index(unit),
        1.0 if unit == _MICROSECONDS else _SECOND_US,
        next((names.index(name) for name in _OPERATIONS if name in names), None),
    )


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    rows = _rows(decoded(content))
    number, first = next(rows, (1, []))
    layout = _layout(first)
    if layout is None:
        refuse(f"line {number}: expected a header line with {_SIZE} and {_SECONDS}")
    if not layout.has_header:
        _check_kind(kind)
        rows = _rows(decoded(content))
    samples, operations = Collector(), dict[str, int]()
    for number, fields in rows:
        _row(number, fields, layout, samples, operations)
    _check_operations(operations)
    found = samples.samples()
    if found is None:
        refuse("no rows with a size of more than 0 bytes and a duration from 0 up")
    trace = _trace(found, kind)
    check_kind(trace, kind, FORMAT)
    understood = _understood(layout, trace, operations)
    notices = () if layout.scale == 1.0 else (_unit_assumed(layout),)
    return Reading(
        FORMAT, trace, (*understood, *format_sizes(found), *format_left_out(samples)), notices
    )


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """(line number, fields) of all that is neither empty nor a comment."""
    start, number = 0, 0
    while start < len(text):
        number += 1
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if end - start > MAX_LINE_LENGTH:
            refuse(f"line {number}: longer than {MAX_LINE_LENGTH} characters")
        line = text[start:end].strip()
        start = end + 1
        if line and not line.startswith("#"):
            yield number, fields_of(line, number)


def _row(
    number: int,
    fields: list[str],
    layout: _Layout,
    samples: Collector,
    operations: dict[str, int],
) -> None:
    if len(fields) <= max(layout.size, layout.time, layout.operation or 0):
        samples.leave_out("with too few columns")
        return
    size, value = size_of(fields[layout.size]), number_of(fields[layout.time])
    if size is None or value is None:
        if layout.has_header and _layout(fields) == layout:
            return  # the header line again, where files were put together
        refuse(f"line {number}: expected a whole number of bytes and a duration")
    if layout.operation is not None:
        operations.setdefault(fields[layout.operation], number)
    samples.add(size, value * layout.scale)


def _check_kind(kind: TraceKind | None) -> None:
    if kind not in (TraceKind.END_TO_END, TraceKind.INDIRECT):
        refuse(
            "two columns of numbers without a header line do not say what was timed: pass kind "
            "end_to_end for sizes and latencies or indirect for sizes and inter-arrival times, in "
            "bytes and seconds; or put a header line message_bytes,repetition,latency_us"
        )


def _check_operations(operations: dict[str, int]) -> None:
    if len(operations) > 1:
        second = list(operations.values())[1]
        refuse(
            f"line {second}: a second operation; expected durations of one, since those of "
            "different operations lie on different lines"
        )


def _trace(found: Samples, kind: TraceKind | None) -> MessageTrace:
    if kind is TraceKind.INDIRECT:
        return MessageTrace(interarrival=found)
    return MessageTrace(latency=found)


def _understood(
    layout: _Layout, trace: MessageTrace, operations: dict[str, int]
) -> tuple[tuple[str, str], ...]:
    is_seconds = layout.scale != 1.0
    return (
        ("format", FORMAT if layout.has_header else f"{FORMAT}, without a header line"),
        ("time_unit", "s (assumed), turned into µs" if is_seconds else "µs"),
        ("size_unit", "bytes (assumed)"),
        ("latency_is", "one way (assumed)")
        if trace.interarrival is None
        else ("interarrival_is", "between arrivals, as kind says"),
        *(("operation", operation[:60]) for operation in operations),
        ("statistic", "every sample"),
    )


def _unit_assumed(layout: _Layout) -> Notice:
    advice = "name the column duration_us where they are µs"
    if not layout.has_header:
        advice = "put a header line size,duration_us where they are µs"
    return Notice(
        "unit_assumed",
        f"the file does not say its unit: durations are taken as seconds; {advice}",
    )


SPEC = ReaderSpec(
    format=FORMAT,
    about="sizes and durations in seconds",
    layout="a header line with the columns size and duration, or two columns of numbers and a kind",
    marks=(
        mark("a column size", r'(^|,)\s*"?size"?\s*(,|$)'),
        mark("a column duration or duration_us", r'(^|,)\s*"?duration(_us)?"?\s*(,|$)'),
    ),
    detects=_detects,
    read=_read,
    begins=_BEGINS,
)
