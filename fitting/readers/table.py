"""Any table whose columns the user names: CSV, TSV, semicolons, bars or blanks.

    Block [KiB];Copy [ms];note
    4;0.0125;warm

Source: `domain/table_columns.py` has the word that names the columns. The header line is the first
one that has all of the named columns; what stands before it is passed over. Where all columns are
named by their place, every line with numbers there is a row. A unit is the word's, else a cell's,
else that of the column's name; a time or a rate without any is asked back, for a wrong unit would
be a wrong answer without a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf

from domain.errors import InconsistentInput, UnitMismatch
from domain.measurement import MessageTrace, Reading, TraceKind
from domain.table_columns import ColumnRole, TableColumn, unit_bytes
from domain.units import CostUnit, OverheadUnit, parse_bytes, unit_named
from fitting.readers.columns import fields_of
from fitting.readers.text import (
    Collector,
    Line,
    check_kind,
    format_left_out,
    format_sizes,
    lines_of,
    number_of,
    refuse,
)

FORMAT = "table"
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}
_UNIT_IN_NAME = re.compile(r"^.*?[\s_(\[]([A-Za-zµμ/]{1,12})[)\]]?$")
_EITHER = re.compile(r"[gm]bps", re.IGNORECASE)  # written of bits, and of bytes
_CELL = re.compile(r"([0-9.eE+-]+)\s*([A-Za-zµμ/]{1,12})", re.ASCII)
_MAX_SHOWN = 60
_RULED = "-=+|: \t"  # what a line under a header is drawn with


@dataclass(slots=True)
class _Table:
    """What was found of the table, and its rows so far."""

    columns: Sequence[TableColumn]
    samples: dict[ColumnRole, Collector]
    separator: str = ""
    places: tuple[int, ...] = ()
    width: int = 0

    def take(self, line: Line) -> None:
        """Read one line. Raises UnreadableTrace."""
        may_be_header = any(column.name in line.text for column in self.columns)
        if (may_be_header or not self.separator) and self._header(line):
            return
        if not self.separator:
            return
        if not line.text.strip(_RULED):
            return
        fields = _split(line, self.separator)
        if self.width and len(fields) != self.width:
            self._leave_out("with another number of columns than the header")
            return
        if len(fields) <= max(self.places):
            self._leave_out("with fewer columns than were named")
            return
        if not line.is_whole and fields[-1] in [fields[place] for place in self.places]:
            self._leave_out("without an end of line: perhaps cut off")
            return
        self._row([fields[place] for place in self.places])

    def _leave_out(self, why: str) -> None:
        self.samples[self.columns[1].role].leave_out(why)

    def _header(self, line: Line) -> bool:
        """Whether this line has all columns that are named; those by place need none."""
        named = [column.place is None for column in self.columns]
        for separator in _SEPARATORS:
            bare = replace(line, text=line.text.lstrip("#").strip())
            fields = _split(bare if any(named) else line, separator)
            places = [_place(fields, column) for column in self.columns]
            if any(place is None or place >= len(fields) for place in places):
                continue
            known = tuple(place for place in places if place is not None)
            if not any(named):
                if any(_number(fields[place]) is None for place in known):
                    continue
                self.separator, self.places = separator, known
                return False
            self.separator, self.places, self.width = separator, known, len(fields)
            self.columns = [
                _with_unit(column, fields[place], line)
                for column, place in zip(self.columns, known, strict=True)
            ]
            return True
        return False

    def _row(self, words: Sequence[str]) -> None:
        size = _size(words[0], self.columns[0].unit)
        for column, word in zip(self.columns[1:], words[1:], strict=True):
            samples = self.samples[column.role]
            if not word:
                samples.leave_out("with an empty field")
                continue
            value = _quantity(word, column)
            if size is None or value is None:
                samples.leave_out("cut off or not a number")
            elif column.role is not ColumnRole.RATE:
                samples.add(size, value)
            elif value > 0.0:
                samples.add(size, size * value)
            else:
                samples.leave_out("of a rate that is not above 0 and finite")


def _split(line: Line, separator: str) -> list[str]:
    if separator == "," and '"' in line.text:
        return fields_of(line.text, line.number)
    words = line.fields if separator == " " else line.text.split(separator)
    return [word.strip().strip('"').strip() for word in words]


def _place(fields: Sequence[str], column: TableColumn) -> int | None:
    """The index of a column in a line; None where the line has none, or several, of its name."""
    if column.place is not None:
        return column.place
    for match in (str, str.casefold):
        same: Callable[[str], str] = match
        found = [at for at, name in enumerate(fields) if same(name) == same(column.name)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _with_unit(column: TableColumn, name: str, line: Line) -> TableColumn:
    """The column with the unit that its name has, where the user named none.

    Raises InconsistentInput for one that is written of bits and of bytes.
    """
    if column.unit:
        return column
    found = _UNIT_IN_NAME.match(name)
    unit = found.group(1) if found else name
    if _EITHER.fullmatch(unit):
        raise InconsistentInput(
            f"line {line.number}: {unit} is written of bits and of bytes; say which, as in "
            f"{column.role}={name[:_MAX_SHOWN]}:GB/s or :Gb/s",
            field="columns",
        )
    return replace(column, unit=unit) if column.knows(unit) else column


def _number(word: str) -> float | None:
    """The number of a cell, whatever its unit."""
    found = _CELL.fullmatch(word)
    return number_of(found.group(1) if found else word)


def _size(word: str, unit: str) -> int | None:
    """Whole bytes; None for what is no size."""
    try:
        if word.isascii() and word.isdigit() and len(word) <= 20:
            return int(word) * (unit_bytes(unit) or 1)
        return parse_bytes(word if word[-1:].isalpha() else f"{word}{unit}")
    except UnitMismatch:
        return None


def _quantity(word: str, column: TableColumn) -> float | None:
    """The time in µs, or for a rate µs a byte (0 for a rate that is none); None for no number.

    Raises InconsistentInput where no unit is known.
    """
    value, unit = number_of(word), column.unit
    if value is None and (found := _CELL.fullmatch(word)):
        value, unit = number_of(found.group(1)), found.group(2)
        if not column.knows(unit):
            return None
    if value is None:
        return None
    if not unit:
        example = "GB/s" if column.role is ColumnRole.RATE else "us"
        raise InconsistentInput(
            f"{column.role}: {column.expected}, as in "
            f"{column.role}={column.name[:_MAX_SHOWN]}:{example}",
            field="columns",
        )
    if column.role is ColumnRole.RATE:
        rate = unit_named(unit, CostUnit)
        assert rate is not None
        return rate.to_ns_per_byte(value) / 1e3 if 0.0 < value < inf else 0.0
    time = unit_named(unit, OverheadUnit)
    assert time is not None
    return time.to_us(value)


def read_table(
    content: bytes, columns: Sequence[TableColumn], kind: TraceKind | None = None
) -> Reading:
    """Return the measurements in these columns of a table (`parse_columns` gives them).

    Raises UnreadableTrace for what is no such table; InconsistentInput, naming `columns`, where it
    has no such columns.
    """
    table = _Table(tuple(columns), {column.role: Collector() for column in columns[1:]})
    for line in lines_of(content):
        table.take(line)
    parts = {role: part.samples() for role, part in table.samples.items()}
    if not table.separator:
        raise InconsistentInput(
            f"no line of the table has the columns {', '.join(one.name for one in columns)}"
            if any(one.place is None for one in columns)
            else "no line of the table has numbers at the places of the columns",
            field="columns",
        )
    if not any(parts.values()):
        left_out = "".join(value for _, value in format_left_out(*table.samples.values()))
        refuse(f"no row of the table can be read; left out are {left_out or 'none'}")
    interarrival = parts.get(ColumnRole.INTERARRIVAL) or parts.get(ColumnRole.RATE)
    trace = MessageTrace(parts.get(ColumnRole.TIME), interarrival)
    check_kind(trace, kind, FORMAT)
    return Reading(FORMAT, trace, _understood(trace, table))


def _understood(trace: MessageTrace, table: _Table) -> tuple[tuple[str, str], ...]:
    stated = [("format", FORMAT), ("columns_apart_by", _SEPARATORS[table.separator])]
    for column in table.columns:
        unit = column.unit or ("B" if column.role is ColumnRole.SIZE else "as the cells have it")
        stated.append((f"{column.role}_column", f"{column.name[:_MAX_SHOWN]}, unit {unit}"))
    if ColumnRole.RATE in table.samples:
        stated.append(("interarrival_is", "size / rate"))
    if trace.latency is not None:
        stated.append(("latency_is", "the named column, one way"))
    left_out = format_left_out(*table.samples.values())
    return (*stated, *format_sizes(trace.latency, trace.interarrival), *left_out)
