"""The columns of a table that no reader knows, as a user would name them.

Looked for is a line of names with rows of numbers below it, split as `read_table` splits lines. The
names tell which column has sizes, and which times or rates; where they do not, it is left to the
user, and so is a unit that no name has: a wrong one would be a wrong answer. A name that the word
of the columns cannot have is given by its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from shlex import quote

from contract.limits import MAX_COLUMNS_LENGTH
from domain.errors import UnreadableTrace
from domain.table_columns import ColumnRole, TableColumn
from fitting.readers.table import RULED, SEPARATORS, cell_number, fields_apart, unit_in_name
from fitting.readers.text import Line

_MAX_LINES, _MAX_LENGTH, _MAX_NAMES = 400, 2000, 64
_MIN_ROWS = 2
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_ .()\[\]/%-]{0,39}", re.ASCII)
_SIZE = re.compile(
    r"(?:^|[\s_(])(?:size|bytes?|(?:chunk|block|part|fragment|message|msg|packet|object|buffer|len"
    r"|length)(?:[\s_]?(?:size|bytes?))?)(?:[\s_)(\[]|$)",
    re.IGNORECASE,
)
_NO_SIZE = re.compile(r"batch|queue|window|count|#|depth|total|file", re.IGNORECASE)
_TIME = re.compile(
    r"time|lat(?:ency)?|duration|elapsed|rtt|seconds?|[nuµm]?sec|p50|median|avg|average|mean",
    re.IGNORECASE,
)
_EXTREME = re.compile(r"min|max|std|dev|p9|99|peak|best|worst", re.IGNORECASE)
_RATE = re.compile(r"bandwidth|throughput|rate|speed|(?:^|[^a-z])bw(?:[^a-z]|$)", re.IGNORECASE)


def columns_word(head: str) -> str | None:
    """Return the word that names the columns of the first table, for a shell; None for no table
    whose names tell.
    """
    lines = [line.strip() for line in islice(head.split("\n"), _MAX_LINES)]
    lines = [line for line in lines if line.strip(RULED) and len(line) <= _MAX_LENGTH]
    for at, line in enumerate(lines):
        below = lines[at + 1 : at + 1 + _MIN_ROWS]
        try:
            words = [word for names in _names(line, below) if (word := _word(names))]
        except UnreadableTrace:  # quotes that are none of a table
            continue
        if words:
            return quote(words[0])
    return None


def _names(line: str, below: Sequence[str]) -> Iterator[list[str]]:
    """Yield the names of a line, if the lines below are rows of numbers under as many columns."""
    if len(below) < _MIN_ROWS:
        return
    header = Line(1, line.lstrip("#").strip())
    for separator in SEPARATORS:
        if separator.strip() and separator not in line:
            continue
        names = fields_apart(header, separator)
        if not 2 <= len(names) <= _MAX_NAMES or any(
            cell_number(name) is not None for name in names
        ):
            continue
        if all(_is_row(row, separator, len(names)) for row in below):
            yield names


def _is_row(row: str, separator: str, count: int) -> bool:
    """Whether a line has so many fields, two of them numbers."""
    line = Line(1, row)
    fields = fields_apart(line, separator)
    if not separator.strip() and len(fields) != count:
        fields = line.fields
    return len(fields) == count and sum(cell_number(field) is not None for field in fields) >= 2


def _word(names: Sequence[str]) -> str | None:
    size = next((at for at, name in enumerate(names) if _is_size(name)), None)
    if size is None:
        return None
    others = [at for at in range(len(names)) if at != size]
    rates = [at for at in others if _RATE.search(names[at]) or _knows(ColumnRole.RATE, names[at])]
    times = [
        at
        for at in others
        if at not in rates and (_TIME.search(names[at]) or _knows(ColumnRole.TIME, names[at]))
    ]
    for role, found in ((ColumnRole.TIME, times), (ColumnRole.RATE, rates)):
        if found:
            usual = [at for at in found if not _EXTREME.search(names[at])] or found
            at = next((at for at in usual if _knows(role, names[at])), usual[0])
            word = f"size={_named(names, size)},{role}={_named(names, at)}"
            return word if len(word) <= MAX_COLUMNS_LENGTH else None
    return None


def _knows(role: ColumnRole, name: str) -> bool:
    """Whether a name ends in a unit of what such a column holds."""
    return TableColumn(role, "any").knows(unit_in_name(name))


def _is_size(name: str) -> bool:
    return _SIZE.search(name) is not None and _NO_SIZE.search(name) is None


def _named(names: Sequence[str], at: int) -> str:
    """A column by its name, or by its place where the word cannot have the name."""
    name = names[at]
    is_plain = _PLAIN.fullmatch(name) is not None
    is_alone = sum(other.casefold() == name.casefold() for other in names) == 1
    return name if is_plain and is_alone else f"#{at + 1}"
