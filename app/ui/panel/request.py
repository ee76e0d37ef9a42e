"""The input panel's texts as a request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.errors import field_problems
from app.text.units import parse_whole
from app.ui.panel.choices import run_of, said_of
from app.ui.panel.state import InputSource, InputState, StageRow
from contract.limits import (
    MAX_MESSAGE_BYTES,
    MAX_NAME_LENGTH,
    MAX_NS_PER_BYTE,
    MAX_OVERHEAD_US,
    MAX_RANGES,
    MAX_STAGES,
    MAX_TIME_LIMIT_S,
)
from domain.errors import InvalidInput, SluiceError, UnitMismatch
from domain.pipeline import stage_name
from domain.units import Unit, parse_bytes, parse_number, parse_quantity, parse_share

_LIMITS = (
    ("min_fragment", "min_fragment_bytes"),
    ("max_fragment", "max_fragment_bytes"),
    ("alignment", "alignment_bytes"),
    ("max_fragments", "max_fragments"),
)
_LIMITS_OF_ITEMS = (
    ("max_fragment", "max_fragment_bytes"),
    ("max_fragments", "max_fragments"),
    ("max_items", "max_fragment_items"),
)
_COUNTS = ("max_fragments", "max_fragment_items")
_ITEM_COLUMNS = {"bytes": "bytes", "ready_us": "ready", "names": "name"}
Row = tuple[int, StageRow]


@dataclass(frozen=True, slots=True)
class InputRequest:
    """The document of an OptimizeIn, the field that each JSON pointer came from, and mistakes.

    The document is whole only where there are no mistakes; those are by the field's name.
    """

    document: Mapping[str, Any]
    places: Mapping[str, str]
    mistakes: Mapping[str, str]

    def mistakes_in(self, error: SluiceError) -> dict[str, str]:
        """Return what an error means for this request, by field; "" for what fits none."""
        found: dict[str, str] = {}
        for problem in field_problems(error):
            which = _item_of(problem.pointer)
            found.setdefault(self._field(problem.pointer), f"{which}{problem.detail}")
        if not found:
            found[self._field(f"/{error.field}") if error.field else ""] = error.detail
        return found

    def _field(self, pointer: str) -> str:
        steps = pointer.split("/")
        while len(steps) > 1:
            if (name := self.places.get("/".join(steps))) is not None:
                return name
            steps.pop()
        return ""


def request_of(entry: InputState) -> InputRequest:
    """Return the request that the panel's texts make."""
    reader = _Reader(entry)
    document = reader.common()
    if entry.source is InputSource.TABLE:
        document["pipeline"] = reader.pipeline()
    elif entry.source is InputSource.PROFILE:
        document["profile"] = reader.profile()
    elif entry.source is InputSource.FIT:
        document["fit_id"] = reader.fit()
    else:
        document |= reader.measurements()
    return InputRequest(document, reader.places, reader.mistakes)


def transfers_asked(entry: InputState) -> tuple[int | None, int | None, dict[str, str]]:
    """Return the message and the size in use as typed, each None where it was not, and mistakes."""
    reader = _Reader(entry)
    message = reader.message()
    current = reader.uncertainty().get("current")
    size = message if current == "whole" else current["repeat"] if current else None
    return message, size, reader.mistakes


def uncertainty_of(entry: InputState) -> dict[str, Any]:
    """Return the setting in use and how well the costs are known, as a request has them. Raises
    InvalidInput.
    """
    reader = _Reader(entry)
    found = reader.uncertainty()
    if reader.mistakes:
        raise InvalidInput(next(iter(reader.mistakes.values())))
    return found


@dataclass(slots=True)
class _Reader:
    """Reads text after text, and notes where it came from and what is wrong with it."""

    entry: InputState
    places: dict[str, str] = field(default_factory=dict)
    mistakes: dict[str, str] = field(default_factory=dict)

    def message(self) -> int | None:
        """Return the message's size, None where it was not given."""
        return self._size("message", "/message_bytes", needed=False)

    def common(self) -> dict[str, Any]:
        """Return all but where the costs come from."""
        entry = self.entry
        document: dict[str, Any] = {
            **(self._items() if entry.asks_items else self._message()),
            "constraints": self._constraints(),
            "relative_gap": self._share("relative_gap", "/relative_gap"),
            "time_limit_s": self._number("time_limit", "/time_limit_s", maximum=MAX_TIME_LIMIT_S),
        }
        self.places["/save_as"] = "save_as"
        if uncertainty := self.uncertainty():
            document["uncertainty"] = {**document.get("uncertainty", {}), **uncertainty}
        if entry.save_as and entry.source is InputSource.TABLE:
            document["save_as"] = entry.save_as
        return document

    def _message(self) -> dict[str, Any]:
        """Return a message that may be cut at any byte, and what is asked of such alone."""
        entry = self.entry
        document: dict[str, Any] = {
            "message_bytes": self._size("message", "/message_bytes", needed=True),
            "strategy": entry.strategy,
            "allow_refragmentation": entry.may_refragment,
        }
        self.places |= {"/strategy": "strategy", "/allow_refragmentation": "may_refragment"}
        if entry.strategy == "static" or entry.static_size:
            document["static_bytes"] = self._size(
                "static_size", "/static_bytes", needed=entry.strategy == "static"
            )
        return document

    def _items(self) -> dict[str, Any]:
        """Return items, and how a cap is filled where that is not as ever."""
        from domain.item_table import read_item_table

        entry, document = self.entry, dict[str, Any]()
        self.places |= {"/items": "items", "/fill": "fill"}
        try:
            table = read_item_table(entry.items)
            document["items"] = table.items
            if table.ready_relative is not None:
                document["uncertainty"] = {"ready_relative": table.ready_relative}
        except InvalidInput as refusal:
            self.mistakes["items"] = refusal.detail
        fill: dict[str, Any] = {"rule": entry.fill} if entry.fill != "until" else {}
        if (size := self._size("first_cap", "/fill/first_bytes", needed=False)) is not None:
            fill = {"rule": entry.fill, "first_bytes": size}
        if fill:
            document["fill"] = fill
        return document

    def uncertainty(self) -> dict[str, Any]:
        """Return the setting in use and how well the costs are known, as far as they were given."""
        found: dict[str, Any] = {}
        self.places["/uncertainty"] = "current"
        if self.entry.current == "whole":
            found["current"] = "whole"
        elif (size := self._size("current", "/uncertainty/current", needed=False)) is not None:
            found["current"] = {"repeat": size}
        if self.entry.relative:
            found["relative"] = self._share("relative", "/uncertainty/relative")
        return found

    def pipeline(self) -> dict[str, Any]:
        """Return the stage table."""
        stages = _stages(self.entry.rows)
        if not stages:
            self.mistakes["overhead.0"] = "expected at least one stage"
        if len(stages) > MAX_STAGES:
            self.mistakes[f"name.{stages[MAX_STAGES][0][0]}"] = (
                f"expected at most {MAX_STAGES} stages; this one is over"
            )
        self.places["/pipeline"] = f"overhead.{stages[0][0][0]}" if stages else "overhead.0"
        return {
            "stages": [self._stage(number, rows) for number, rows in enumerate(stages)],
            "delay_us": self._number("delay", "/pipeline/delay_us", maximum=MAX_OVERHEAD_US),
        }

    def profile(self) -> str:
        """Return the reference to a stored profile."""
        self.places["/profile"] = "profile"
        if not self.entry.profile:
            self.mistakes["profile"] = "expected the name of a stored profile"
        return self.entry.profile

    def fit(self) -> str:
        """Return the identifier of a stored fit."""
        self.places["/fit_id"] = "fit"
        return self.entry.fit

    def measurements(self) -> dict[str, Any]:
        """Return pasted measurements."""
        self.places |= {"/measurements": "trace", "/fit_options": "trace"}
        self.places["/measurements/kind"] = self.places["/kind"] = "kind"
        for name in ("columns", "test", "run", "where", "stages_overlap"):
            self.places[f"/fit_options/{name}"] = name
        if not self.entry.trace:
            self.mistakes["trace"] = "expected measurements: paste them, or drop a file here"
        return {
            "measurements": {"content": self.entry.trace, "kind": self.entry.kind or None},
            "fit_options": {
                "method": self.entry.method,
                "shape": self.entry.shape,
                **{name: said for name, said in self._said_of_overlap() if said is not None},
                **{name: said for name, said in self._said_of_rows() if said},
            },
        }

    def _said_of_overlap(self) -> Iterator[tuple[str, bool | None]]:
        for name in ("stages_overlap", "several_at_once"):
            yield name, said_of(getattr(self.entry, name))

    def _said_of_rows(self) -> Iterator[tuple[str, str | int | None]]:
        """Which columns, test, run and condition of the file are meant."""
        for name in ("columns", "test", "where"):
            yield name, getattr(self.entry, name)
        try:
            yield "run", run_of(self.entry.run)
        except InvalidInput as refusal:
            self.mistakes["run"] = refusal.detail

    def _stage(self, number: int, rows: Sequence[Row]) -> dict[str, Any]:
        place = f"/pipeline/stages/{number}"
        self.places[place] = self.places[f"{place}/name"] = f"name.{rows[0][0]}"
        self.places[f"{place}/ranges"] = f"up_to.{rows[-1][0]}"
        self._check_rows(rows)
        name = self._stage_name(number, rows[0])
        if len(rows) == 1:
            return {"name": name, **self._costs(place, rows[0])}
        ranges = [
            self._range(f"{place}/ranges/{part}", row, is_last=row is rows[-1])
            for part, row in enumerate(rows)
        ]
        return {"name": name, "ranges": ranges}

    def _stage_name(self, number: int, row: Row) -> str:
        name = row[1].name or stage_name(number + 1)
        if len(name) > MAX_NAME_LENGTH:
            self.mistakes[f"name.{row[0]}"] = f"expected at most {MAX_NAME_LENGTH} characters"
        return name

    def _check_rows(self, rows: Sequence[Row]) -> None:
        if len(rows) > MAX_RANGES:
            self.mistakes[f"up_to.{rows[MAX_RANGES][0]}"] = (
                f"expected at most {MAX_RANGES} ranges a stage"
            )
        last, row = rows[-1]
        if row.up_to:
            self.mistakes[f"up_to.{last}"] = (
                "a stage's last range has no end: leave this empty, or add the next range below"
            )
        for place, row in rows[1:]:
            if row.name and row.name != rows[0][1].name:
                self.mistakes[f"name.{place}"] = (
                    "the row above ends at a size, so this row continues its stage: leave the "
                    "name empty, or that size"
                )

    def _range(self, place: str, row: Row, *, is_last: bool) -> dict[str, Any]:
        costs = self._costs(place, row)
        if is_last:
            return {"up_to_bytes": None, **costs}
        name = f"up_to.{row[0]}"
        end = self._read_size(name, f"{place}/up_to_bytes", row[1].up_to)
        if end is not None and row[0] > 0 and end <= self._end_above(row[0]):
            self.mistakes[name] = "expected more than the size at which the range above ends"
        return {"up_to_bytes": end, **costs}

    def _end_above(self, row: int) -> int:
        try:
            return parse_bytes(self.entry.rows[row - 1].up_to)
        except UnitMismatch:
            return 0

    def _costs(self, place: str, row: Row) -> dict[str, Any]:
        number, cells = row
        overhead = self._overhead(f"overhead.{number}", cells.overhead)
        cost = self._cost(f"cost.{number}", cells.cost)
        self.places[f"{place}/overhead_us"] = f"overhead.{number}"
        self.places[f"{place}/ns_per_byte"] = f"cost.{number}"
        return {"overhead_us": overhead, "ns_per_byte": cost}

    def _overhead(self, name: str, text: str) -> float | None:
        found = self._measured(name, text, self.entry.overhead_unit, "overhead-unit")
        if found is None or found[1].to_us(found[0]) <= MAX_OVERHEAD_US:
            return None if found is None else found[1].to_us(found[0])
        self.mistakes[name] = f"expected at most {MAX_OVERHEAD_US:g} µs"
        return None

    def _cost(self, name: str, text: str) -> float | None:
        found = self._measured(name, text, self.entry.cost_unit, "cost-unit")
        if found is None:
            return None
        try:
            cost = found[1].to_ns_per_byte(found[0])
        except UnitMismatch as refusal:
            self.mistakes[name] = refusal.detail
            return None
        if cost <= MAX_NS_PER_BYTE:
            return cost
        self.mistakes[name] = f"expected at most {MAX_NS_PER_BYTE:g} ns/byte"
        return None

    def _measured(
        self, name: str, text: str, unit: Unit, chooser: str
    ) -> tuple[float, Unit] | None:
        """Return a cell's number and unit; an unspecified one is asked for at the chooser."""
        try:
            found = parse_quantity(text, unit)
        except UnitMismatch as refusal:
            self.mistakes[name] = refusal.detail
            return None
        if found[1].value != "unspecified":
            return found
        self.mistakes[chooser] = "expected a unit for the numbers of this column: choose it"
        return None

    def _constraints(self) -> dict[str, int]:
        found = {}
        for name, key in _LIMITS_OF_ITEMS if self.entry.asks_items else _LIMITS:
            pointer = f"/constraints/{key}"
            self.places[f"/{key}"] = name
            read = self._count if key in _COUNTS else self._given_size
            if (value := read(name, pointer)) is not None:
                found[key] = value
        self.places["/constraints"] = "max_fragment" if self.entry.asks_items else "min_fragment"
        return found

    def _given_size(self, name: str, pointer: str) -> int | None:
        return self._size(name, pointer, needed=False)

    def _count(self, name: str, pointer: str) -> int | None:
        text: str = getattr(self.entry, name)
        self.places[pointer] = name
        if not text:
            return None
        try:
            count = parse_whole(text)
        except InvalidInput as refusal:
            self.mistakes[name] = refusal.detail
            return None
        if count < 1:
            self.mistakes[name] = "expected at least 1"
        return count

    def _size(self, name: str, pointer: str, *, needed: bool) -> int | None:
        text: str = getattr(self.entry, name)
        self.places[pointer] = name
        if not text and not needed:
            return None
        return self._read_size(name, pointer, text)

    def _read_size(self, name: str, pointer: str, text: str) -> int | None:
        self.places[pointer] = name
        try:
            size = parse_bytes(text)
        except UnitMismatch as refusal:
            self.mistakes[name] = refusal.detail
            return None
        if 1 <= size <= MAX_MESSAGE_BYTES:
            return size
        self.mistakes[name] = "expected at least 1 and at most 256 TiB"
        return None

    def _number(self, name: str, pointer: str, *, maximum: float) -> float | None:
        self.places[pointer] = name
        rule = f"expected a number from 0 to {maximum:g}"
        value = self._parsed(name, getattr(self.entry, name), rule=rule)
        if value is None or value <= maximum:
            return value
        self.mistakes[name] = rule
        return None

    def _share(self, name: str, pointer: str) -> float | None:
        self.places[pointer] = name
        try:
            value = parse_share(getattr(self.entry, name))
        except InvalidInput as refusal:
            self.mistakes[name] = refusal.detail
            return None
        if value <= 1.0:
            return value
        self.mistakes[name] = "expected at most 100 %"
        return None

    def _parsed(self, name: str, text: str, *, rule: str) -> float | None:
        try:
            value = parse_number(text)
        except InvalidInput:
            value = -1.0
        if value >= 0.0:
            return value
        self.mistakes[name] = rule
        return None


def _stages(rows: Iterable[StageRow]) -> list[list[Row]]:
    """Return the rows of each stage, with their numbers; blank rows count for nothing."""
    stages: list[list[Row]] = []
    goes_on = False
    for number, row in enumerate(rows):
        if row.is_blank:
            continue
        if goes_on:
            stages[-1].append((number, row))
        else:
            stages.append([(number, row)])
        goes_on = bool(row.up_to)
    return stages


def _item_of(pointer: str) -> str:
    """Return which item and column a pointer into a table of items means, as its reader says it."""
    steps = pointer.split("/")[1:]
    if len(steps) < 2 or steps[0] != "items":
        return ""
    column, rest = _ITEM_COLUMNS.get(steps[1]), steps[2:]
    if column is None and rest:
        column, rest = rest[0].replace("~1", "/").replace("~0", "~"), rest[1:]
    if column is None:
        return ""
    return f"item {int(rest[0]) + 1}, {column}: " if rest and rest[0].isdigit() else f"{column}: "
