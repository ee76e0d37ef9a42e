"""The header line of the project's own format of direct measurements.

The column of repetitions may be absent, that of sizes may be called bytes, size, msg_size and the
like, and the last one may be the time of the whole message, which then is no stage.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass

from contract.limits import MAX_NAME_LENGTH, MAX_STAGES
from domain.errors import UnreadableTrace
from fitting.readers.event_rows import EventLayout, event_layout, is_of_events
from fitting.readers.text import is_no_stage, is_repetition, is_size

SIZE_COLUMN = "message_bytes"
REPETITION_COLUMN = "repetition"
TIME_SUFFIX = "_us"

TOTAL = "total"  # the name of total_us without its unit


@dataclass(frozen=True, slots=True)
class Header:
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


HEADER_RULE = f"{SIZE_COLUMN},<stage>{TIME_SUFFIX},..."


def split_fields(line: str, number: int) -> list[str]:
    """Return the fields of a line, quotes taken away. Raises UnreadableTrace."""
    if '"' not in line:
        return line.split(",")
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error:
        raise unreadable(f"line {number}: a quoted field is not closed") from None


def read_header(line: str, number: int) -> Header:
    """Return the columns, in order. Raises UnreadableTrace."""
    columns = [column.strip() for column in split_fields(line, number)]
    for separator, name in ((";", "semicolons"), ("\t", "tabs")):
        if separator in line and len(columns) <= 2:
            raise unreadable(
                f"line {number}: columns are separated by {name}; expected commas, and a point as "
                "the decimal mark"
            )
    if "\r" in line:
        raise unreadable(f"line {number}: expected lines that end in LF or CRLF, not in CR alone")
    if not is_size(columns[0]):
        raise unreadable(f"line {number}: expected the header line {HEADER_RULE}")
    has_repetitions = is_repetition("".join(columns[1:2]))
    first = 1 + has_repetitions
    others = list(enumerate(columns))[first:]
    stages = [(place, column) for place, column in others if not is_of_events(column)]
    if not 1 <= len(stages) <= MAX_STAGES:
        raise unreadable(
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
    return Header(columns[0], has_repetitions, names, events)


def _stage_name(column: str, where: str) -> str:
    name = column.removesuffix(TIME_SUFFIX)
    if name == column or not name:
        raise unreadable(
            f"{where}: expected the name of a stage followed by {TIME_SUFFIX} (times are in µs)"
        )
    if len(name) > MAX_NAME_LENGTH:
        raise unreadable(f"{where}: expected a stage name of at most {MAX_NAME_LENGTH} characters")
    if not name.isprintable():
        raise unreadable(f"{where}: expected a stage name without control characters")
    return name


def _check_total(names: tuple[str, ...], number: int) -> None:
    if TOTAL in names[:-1]:
        raise unreadable(
            f"line {number}: expected {TOTAL}{TIME_SUFFIX}, the time of the whole message, to be "
            "the last column"
        )
    if names == (TOTAL,):
        raise unreadable(
            f"line {number}: expected the column of a stage before {TOTAL}{TIME_SUFFIX}; for "
            f"whole messages alone the header is {SIZE_COLUMN},latency_us"
        )


def _check_stages(names: tuple[str, ...], number: int, places: Sequence[int]) -> None:
    """Refuse statistics and times of whole messages, which tables of other tools have."""
    for place, name in zip(places, names, strict=True):
        if is_no_stage(name):
            raise unreadable(
                f"line {number}, column {place}: {name}{TIME_SUFFIX} may be a statistic or a whole "
                f"message; expected the name of a stage, as in copy{TIME_SUFFIX}. A row is one "
                f"message; for whole messages alone the header is {SIZE_COLUMN},latency_us"
            )


def _refuse_duplicates(names: tuple[str, ...], number: int, places: Sequence[int]) -> None:
    seen: dict[str, int] = {}
    for place, name in zip(places, names, strict=True):
        if name in seen:
            raise unreadable(
                f"line {number}: columns {seen[name]} and {place} have the same name; expected a "
                "name of its own for every stage"
            )
        seen[name] = place


def unreadable(detail: str) -> UnreadableTrace:
    """Return the refusal of a file for this reason."""
    return UnreadableTrace(detail, field="measurements")
