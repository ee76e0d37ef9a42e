"""Tables of items, as files have them: a row an item, a column of sizes and others of times.

    name,bytes,ready (us),copy (us)
    fc.weight,2 MB,210,5

Exact     columns are `bytes`, `name`, `ready`, and else the names of stages. A time has its unit in
          its cell or in its heading, in brackets or behind `_`: nothing is taken for granted.
          Several calculations are several columns `ready`, numbered or not: medians count, and by
          how much one calculation differs from the next.
Traps     a heading `bytes (MiB)` has sizes in MiB; a size without a unit is of bytes.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from operator import mul
from statistics import mean, median, stdev
from typing import Any, TypeVar

from contract.limits import MAX_ITEMS, MAX_RELATIVE, MAX_STAGES, MIN_RELATIVE
from domain.errors import InvalidInput, UnitMismatch
from domain.units import OverheadUnit, parse_bytes, parse_quantity, unit_named

T = TypeVar("T")

_FIELD = "items"
_READY = "ready"
_MAX_READY = 100  # calculations
_NUMBERED = re.compile(r"(?P<ready>ready(_(ns|us|ms))?)[ _]?\d+")
_HEADING_OF_BYTES = re.compile(r"bytes(\s*[(\[][^)\]]*[)\]])?")
_HEADING = re.compile(r"(?P<name>.*?)\s*(?:[(\[](?P<unit>[^)\]]*)[)\]]|_(?P<behind>ns|us|ms))?")


@dataclass(frozen=True, slots=True)
class _Column:
    """What a column holds: the name in its heading, and the unit of its cells, "" for their own."""

    name: str
    unit: str

    @classmethod
    def of(cls, heading: str) -> _Column:
        """Read a heading."""
        found = _HEADING.fullmatch(_NUMBERED.sub(r"\g<ready>", heading.strip(), count=1))
        if found is None or not found["name"]:
            raise InvalidInput(
                "expected a heading over each column: bytes, ready (us), name, or the name of a "
                "stage and a unit of times, as copy (us)",
                field=_FIELD,
            )
        return cls(found["name"].strip(), (found["unit"] or found["behind"] or "").strip())

    def size(self, text: str) -> int:
        """Return a cell as bytes. Raises UnitMismatch."""
        is_plain = not re.search(r"[A-Za-z]", text)
        return parse_bytes(f"{text} {self.unit}" if is_plain and self.unit else text)

    def time_us(self, text: str) -> float:
        """Return a cell as µs. Raises UnitMismatch."""
        of_heading = unit_named(self.unit, OverheadUnit) if self.unit else OverheadUnit.UNSPECIFIED
        if of_heading is None:
            raise UnitMismatch("expected a unit of times in the heading: ns, us, ms or s")
        value, unit = parse_quantity(text, of_heading)
        if unit is OverheadUnit.UNSPECIFIED:
            raise UnitMismatch("expected a unit of times, here or in the heading, as ready (us)")
        return unit.to_us(value)


@dataclass(frozen=True, slots=True)
class ItemTable:
    """The columns of a table as a request has them: bytes, ready_us, names, stage_us; and the
    relative deviation from one calculation to the next, None where there is one, or none.
    """

    items: dict[str, Any]
    ready_relative: float | None = None


def read_item_table(text: str) -> ItemTable:
    """Return what a table holds. Raises InvalidInput, which names the row and the column."""
    rows = _rows(text)
    columns = [_Column.of(heading) for heading in rows[0]] if rows else []
    names = [column.name for column in columns]
    if "bytes" not in names:
        raise InvalidInput(
            "expected a table with a header line, of which one column is bytes", field=_FIELD
        )
    once = [name for name in names if name != _READY]
    if len(set(once)) < len(once):
        raise InvalidInput("expected each column once", field=_FIELD)
    if len(rows) - 1 > MAX_ITEMS or len(once) > MAX_STAGES + 2:
        raise InvalidInput(
            f"expected at most {MAX_ITEMS} items and {MAX_STAGES} stages", field=_FIELD
        )
    if len(names) - len(once) > _MAX_READY:
        raise InvalidInput(f"expected at most {_MAX_READY} columns ready", field=_FIELD)
    found: dict[str, Any] = {"bytes": []}
    ready = list[list[float]]()
    for place, column in enumerate(columns):
        if column.name == "bytes":
            found["bytes"] = _cells(rows, place, column, column.size)
        elif column.name == "name":
            found["names"] = _cells(rows, place, column, str)
        elif column.name == _READY:
            ready.append(_cells(rows, place, column, column.time_us))
        else:
            stages = found.setdefault("stage_us", {})
            stages[column.name] = _cells(rows, place, column, column.time_us)
    if ready:
        found["ready_us"] = [median(times) for times in zip(*ready, strict=True)]
    return ItemTable(found, _deviation(ready, found["ready_us"]) if len(ready) > 1 else None)


def _rows(text: str) -> list[list[str]]:
    """The rows that are not blank, their cells parted by that of commas, semicolons and tabs which
    makes a column of bytes. Raises InvalidInput.
    """
    lines = text.splitlines()
    head = next((line for line in lines if line.strip()), "")
    try:
        separator = next((one for one in ",;\t" if _has_bytes(head, one)), ",")
        rows = csv.reader(lines, delimiter=separator)
        return [row for row in rows if any(cell.strip() for cell in row)]
    except csv.Error as refusal:
        raise InvalidInput(
            f"expected a table, its quotes closed and no long cells: {refusal}", field=_FIELD
        ) from None


def _has_bytes(head: str, separator: str) -> bool:
    """Whether a line of headings has several, one of which is bytes."""
    cells = next(csv.reader([head], delimiter=separator), [])
    return len(cells) > 1 and any(_HEADING_OF_BYTES.fullmatch(cell.strip()) for cell in cells)


def _deviation(ready: Sequence[Sequence[float]], medians: Sequence[float]) -> float | None:
    """The standard deviation of the factors that fit each calculation to the medians best; None
    where all are equal.
    """
    square = sum(us * us for us in medians)
    if square == 0.0:
        return None
    factors = [sum(map(mul, times, medians)) / square for times in ready]
    found = stdev(factors) / mean(factors)
    return min(max(found, MIN_RELATIVE), MAX_RELATIVE) if found > 0.0 else None


def _cells(
    rows: Sequence[Sequence[str]], place: int, column: _Column, read: Callable[[str], T]
) -> list[T]:
    """The cells of a column, below its heading."""
    found = list[T]()
    for number, row in enumerate(rows[1:], start=1):
        if len(row) != len(rows[0]):
            raise InvalidInput(
                f"item {number}: expected {len(rows[0])} cells, got {len(row)}", field=_FIELD
            )
        try:
            found.append(read(row[place].strip()))
        except InvalidInput as refusal:
            raise type(refusal)(
                f"item {number}, {column.name}: {refusal.detail}", field=_FIELD
            ) from None
    return found


_OWN_MEANING = frozenset({"bytes", "name", "ready"})  # headings that are no stage


def item_table(columns: Mapping[str, Any]) -> str | None:
    """Return the table of items as a request has them in columns, None where no table says the
    same: a stage is called as another column, or a name has a line break or spaces at its ends.
    """
    heads, cells = ["bytes"], [columns["bytes"]]
    if columns.get("names") is not None:
        heads.insert(0, "name")
        cells.insert(0, columns["names"])
    if columns.get("ready_us") is not None:
        heads.append("ready (us)")
        cells.append(map(_number, columns["ready_us"]))
    stages = columns.get("stage_us") or {}
    for name, column in stages.items():
        heads.append(f"{name} (us)")
        cells.append(map(_number, column))
    if not all(map(_is_stage, stages)) or not all(map(_is_plain, columns.get("names") or ())):
        return None
    written = StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow(heads)
    rows.writerows(zip(*cells, strict=True))
    return written.getvalue()


def _number(value: float) -> str:
    """A number of a request, without the point of a whole one."""
    return repr(value).removesuffix(".0")


def _is_stage(name: str) -> bool:
    """Whether a heading of this name and a unit is that of a stage."""
    heading = _Column.of(f"{name} (us)")
    return heading == _Column(name, "us") and name not in _OWN_MEANING and _is_plain(name)


def _is_plain(name: str) -> bool:
    return name == name.strip() and len(name.splitlines()) == 1
