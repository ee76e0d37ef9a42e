"""Comma-separated files with a header line: what the readers of the project's own formats share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from domain.measurement import MAX_TIME_US
from domain.pipeline import MAX_MESSAGE_BYTES
from fitting.readers.text import Line, lines_of, number_of, refuse, size_of


@dataclass(frozen=True, slots=True)
class Row:
    """The fields of one row, as many as the header has."""

    number: int
    fields: tuple[str, ...]

    def size(self, place: int, *, greatest: int = MAX_MESSAGE_BYTES, least: int = 1) -> int:
        """A whole number in this field. Raises UnreadableTrace."""
        value = size_of(self.fields[place])
        if value is None or not least <= value <= greatest:
            refuse(
                f"line {self.number}, column {place + 1}: expected a whole number from {least} to "
                f"{greatest}"
            )
        return value

    def time_us(self, place: int) -> float | None:
        """A time in µs in this field, None where it is empty. Raises UnreadableTrace."""
        word = self.fields[place]
        if not word:
            return None
        value = number_of(word)
        if value is None or not 0.0 <= value <= MAX_TIME_US:
            refuse(
                f"line {self.number}, column {place + 1}: expected a time from 0 to "
                f"{MAX_TIME_US:g} µs"
            )
        return value


def blocks_of(content: bytes, *, first_column: str) -> Iterator[tuple[Line, list[Row]]]:
    """Each header line, which begins with this column, with the rows below it."""
    header: Line | None = None
    names: list[str] = []
    rows: list[Row] = []
    for line in lines_of(content):
        if line.text.startswith("#"):
            continue
        fields = [field.strip() for field in line.text.split(",")]
        if fields[0] == first_column:
            if header is not None:
                yield header, rows
            header, names, rows = line, fields, []
        elif header is None:
            refuse(f"line {line.number}: expected a header line {first_column},...")
        elif len(fields) != len(names):
            refuse(f"line {line.number}: expected {len(names)} columns, got {len(fields)}")
        else:
            rows.append(Row(line.number, tuple(fields)))
    if header is not None:
        yield header, rows


def header_of(head: str, first_column: str) -> tuple[str, ...]:
    """The first header line's columns in the beginning of a file; empty where it has none."""
    for raw in head.removeprefix("\ufeff").splitlines():
        line = raw.strip()
        if line and not line.startswith("#"):
            names = tuple(name.strip() for name in line.split(","))
            return names if names[0] == first_column else ()
    return ()
