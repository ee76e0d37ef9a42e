"""Tables of items, as files have them: a row an item, a column of sizes and others of times.

    name,bytes,ready (us),copy (us)
    fc.weight,2 MB,210,5

Exact     columns are `bytes`, `name`, `ready`, and else the names of stages. A time has its unit in
          its cell or in its heading, in brackets or behind `_`: nothing is taken for granted.
Traps     a heading `bytes (MiB)` has sizes in MiB; a size without a unit is of bytes.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

from contract.limits import MAX_ITEMS, MAX_STAGES
from domain.errors import InvalidInput, UnitMismatch
from domain.units import OverheadUnit, parse_bytes, parse_quantity, unit_named

_FIELD = "items"
_HEADING = re.compile(r"(?P<name>.*?)\s*(?:[(\[](?P<unit>[^)\]]*)[)\]]|_(?P<behind>ns|us|ms))?")


@dataclass(frozen=True, slots=True)
class _Column:
    """What a column holds: the name in its heading, and the unit of its cells, "" for their own."""

    name: str
    unit: str

    @classmethod
    def of(cls, heading: str) -> _Column:
        """Read a heading."""
        found = _HEADING.fullmatch(heading.strip())
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


def read_item_table(text: str) -> dict[str, Any]:
    """Return the columns of a table as a request has them: bytes, ready_us, names, stage_us.

    Raises InvalidInput, which names the row and the column.
    """
    rows = [row for row in csv.reader(text.splitlines()) if any(cell.strip() for cell in row)]
    columns = [_Column.of(heading) for heading in rows[0]] if rows else []
    names = [column.name for column in columns]
    if "bytes" not in names:
        raise InvalidInput(
            "expected a table with a header line, of which one column is bytes", field=_FIELD
        )
    if len(set(names)) < len(names):
        raise InvalidInput("expected each column once", field=_FIELD)
    if len(rows) - 1 > MAX_ITEMS or len(columns) > MAX_STAGES + 3:
        raise InvalidInput(
            f"expected at most {MAX_ITEMS} items and {MAX_STAGES} stages", field=_FIELD
        )
    found: dict[str, Any] = {"bytes": []}
    for place, column in enumerate(columns):
        if column.name == "bytes":
            found["bytes"] = _cells(rows, place, column, column.size)
        elif column.name == "name":
            found["names"] = _cells(rows, place, column, str)
        elif column.name == "ready":
            found["ready_us"] = _cells(rows, place, column, column.time_us)
        else:
            stages = found.setdefault("stage_us", {})
            stages[column.name] = _cells(rows, place, column, column.time_us)
    return found


def _cells(
    rows: Sequence[Sequence[str]], place: int, column: _Column, read: Callable[[str], object]
) -> list[object]:
    """The cells of a column, below its heading."""
    found = []
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
    if not _OWN_MEANING.isdisjoint(stages) or not all(
        map(_is_plain, (*stages, *(columns.get("names") or ())))
    ):
        return None
    written = StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow(heads)
    rows.writerows(zip(*cells, strict=True))
    return written.getvalue()


def _number(value: float) -> str:
    """A number of a request, without the point of a whole one."""
    return repr(value).removesuffix(".0")


def _is_plain(name: str) -> bool:
    return name == name.strip() and len(name.splitlines()) == 1
