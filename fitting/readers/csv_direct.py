"""The project's own format of direct measurements.

    # any comment
    message_bytes,repetition,<stage>_us,<stage>_us,...
    64,0,0.366,1.256

One row is one measured repetition of one unpipelined message; times are in µs. A byte order mark,
CRLF line ends, empty lines and quoted fields are understood. Nothing is guessed: what breaks a rule
is refused with its line, and the text itself is never repeated in the refusal.
"""

from __future__ import annotations

import csv
import re
from array import array
from collections import Counter
from collections.abc import Iterator
from typing import NoReturn

from domain.errors import UnreadableTrace
from domain.measurement import MAX_TIME_US, DirectTrace, Reading, TraceKind
from domain.pipeline import MAX_MESSAGE_BYTES, MAX_NAME_LENGTH, MAX_STAGES
from domain.units import format_bytes
from fitting.contract import ReaderSpec

SIZE_COLUMN = "message_bytes"
REPETITION_COLUMN = "repetition"
TIME_SUFFIX = "_us"
MAX_REPETITION = 2**48
MAX_LINE_LENGTH = 16_384
_FIRST_STAGE_COLUMN = 2
# A row of plain decimal numbers: neither nan, inf and hexadecimal nor 1_000 and foreign digits.
_PLAIN_ROW = re.compile(r"[0-9eE+\-., \t]*", re.ASCII)
_PLAIN_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_WHOLE_NUMBER = re.compile(r"\+?[0-9]{1,20}", re.ASCII)


def read_direct_csv(text: str) -> DirectTrace:
    """The trace in this text, in one pass, 8 bytes a number. Raises UnreadableTrace."""
    lines = _content_lines(text.removeprefix("\ufeff"))
    try:
        number, header = next(lines)
    except StopIteration:
        raise _unreadable("the file is empty: expected a header line " + _HEADER_RULE) from None
    stage_names = _read_header(header, number)
    sizes, repetitions = array("q"), array("q")
    columns = tuple(array("d") for _ in stage_names)
    for number, line in lines:
        _read_row(line, number, (sizes, repetitions), columns)
    if not sizes:
        raise _unreadable("no measurements: expected at least one row after the header")
    return DirectTrace(stage_names, sizes, repetitions, columns)


_HEADER_RULE = f"{SIZE_COLUMN},{REPETITION_COLUMN},<stage>{TIME_SUFFIX},..."


def _content_lines(text: str) -> Iterator[tuple[int, str]]:
    """(line number from 1, line) of all that is neither empty nor a comment.

    Not splitlines(): that copies the whole text and also breaks at rare control characters.
    """
    start, number = 0, 0
    while start < len(text):
        number += 1
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if end - start > MAX_LINE_LENGTH:
            raise _unreadable(f"line {number}: longer than {MAX_LINE_LENGTH} characters")
        line = text[start:end].strip(" \t\r")
        start = end + 1
        if line and not line.startswith("#"):
            yield number, line


def _fields(line: str, number: int) -> list[str]:
    if '"' not in line:
        return line.split(",")
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error:
        raise _unreadable(f"line {number}: a quoted field is not closed") from None


# --- header ---------------------------------------------------------------------------------------


def _read_header(line: str, number: int) -> tuple[str, ...]:
    """The stage names, in order."""
    columns = [column.strip() for column in _fields(line, number)]
    for separator, name in ((";", "semicolons"), ("\t", "tabs")):
        if separator in line and len(columns) <= _FIRST_STAGE_COLUMN:
            raise _unreadable(
                f"line {number}: columns are separated by {name}; expected commas, and a point as "
                "the decimal mark"
            )
    if "\r" in line:
        raise _unreadable(f"line {number}: expected lines that end in LF or CRLF, not in CR alone")
    if columns[:_FIRST_STAGE_COLUMN] != [SIZE_COLUMN, REPETITION_COLUMN]:
        raise _unreadable(f"line {number}: expected the header line {_HEADER_RULE}")
    stages = columns[_FIRST_STAGE_COLUMN:]
    if not 1 <= len(stages) <= MAX_STAGES:
        raise _unreadable(
            f"line {number}: expected 1 to {MAX_STAGES} stage columns, got {len(stages)}"
        )
    names = tuple(
        _stage_name(column, f"line {number}, column {place}")
        for place, column in enumerate(stages, _FIRST_STAGE_COLUMN + 1)
    )
    _refuse_duplicates(names, number)
    return names


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


def _refuse_duplicates(names: tuple[str, ...], number: int) -> None:
    seen: dict[str, int] = {}
    for place, name in enumerate(names, _FIRST_STAGE_COLUMN + 1):
        if name in seen:
            raise _unreadable(
                f"line {number}: columns {seen[name]} and {place} have the same name; expected a "
                "name of its own for every stage"
            )
        seen[name] = place


# --- rows -----------------------------------------------------------------------------------------


def _read_row(
    line: str,
    number: int,
    keys: tuple[array[int], array[int]],
    columns: tuple[array[float], ...],
) -> None:
    fields = _fields(line, number)
    if len(fields) != len(columns) + _FIRST_STAGE_COLUMN:
        raise _unreadable(
            f"line {number}: expected {len(columns) + _FIRST_STAGE_COLUMN} fields, as in the "
            f"header, got {len(fields)}"
        )
    try:
        size, repetition = int(fields[0]), int(fields[1])
        times = list(map(float, fields[_FIRST_STAGE_COLUMN:]))
    except ValueError:
        _explain(fields, number)
    if (
        _PLAIN_ROW.fullmatch("".join(fields)) is None
        or not 1 <= size <= MAX_MESSAGE_BYTES
        or not 0 <= repetition <= MAX_REPETITION
        or not 0.0 <= min(times) <= max(times) <= MAX_TIME_US
    ):
        _explain(fields, number)
    keys[0].append(size)
    keys[1].append(repetition)
    for column, time in zip(columns, times, strict=True):
        column.append(time)


def _explain(fields: list[str], number: int) -> NoReturn:
    """Raise for the first field of a refused row that breaks a rule."""
    _explain_whole(fields[0], f"line {number}: {SIZE_COLUMN}", (1, MAX_MESSAGE_BYTES))
    _explain_whole(fields[1], f"line {number}: {REPETITION_COLUMN}", (0, MAX_REPETITION))
    for place, field in enumerate(fields[_FIRST_STAGE_COLUMN:], _FIRST_STAGE_COLUMN + 1):
        if _PLAIN_NUMBER.fullmatch(field.strip()) is None:
            raise _unreadable(
                f"line {number}, column {place}: expected a finite decimal number of µs, as 12.5"
            )
        if not 0.0 <= float(field) <= MAX_TIME_US:
            raise _unreadable(
                f"line {number}, column {place}: expected a time from 0 to {MAX_TIME_US:g} µs"
            )
    raise _unreadable(f"line {number}: expected decimal numbers separated by commas")


def _explain_whole(field: str, where: str, limits: tuple[int, int]) -> None:
    least, greatest = limits
    if _WHOLE_NUMBER.fullmatch(field.strip()) is None or not least <= int(field) <= greatest:
        raise _unreadable(f"{where}: expected a whole number from {least} to {greatest}")


def _unreadable(detail: str) -> UnreadableTrace:
    return UnreadableTrace(detail, field="measurements")


# --- the reader -----------------------------------------------------------------------------------


def _recognises(head: str) -> bool:
    lines = (line.strip() for line in head.removeprefix("\ufeff").splitlines())
    first = next((line for line in lines if line and not line.startswith("#")), "")
    return first.startswith(SIZE_COLUMN)


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    try:
        text = content.decode()
    except UnicodeDecodeError as refusal:
        raise _unreadable(f"byte {refusal.start} is not UTF-8") from None
    trace = read_direct_csv(text)
    return Reading("direct CSV", trace, understood(trace))


def understood(trace: DirectTrace) -> tuple[tuple[str, str], ...]:
    """What was read, said back so that a misreading is seen: (name, value) pairs."""
    repeats = Counter(trace.message_bytes)
    fewest, most = min(repeats.values()), max(repeats.values())
    return (
        ("format", "direct CSV"),
        ("time_unit", "µs"),
        ("size_unit", "bytes"),
        ("rows", str(len(trace))),
        ("sizes", f"{len(repeats)}: {format_bytes(min(repeats))} to {format_bytes(max(repeats))}"),
        ("rows_per_size", str(fewest) if fewest == most else f"{fewest} to {most}"),
        ("stages", ", ".join(trace.stage_names)),
    )


SPEC = ReaderSpec(
    format="direct CSV",
    layout="a header line " + _HEADER_RULE,
    recognises=_recognises,
    read=_read,
)
