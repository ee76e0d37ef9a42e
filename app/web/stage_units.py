"""The units that the stage table's columns and cells may be in, and numbers as text.

What a text names no unit of, or one that is not known here, is asked back: a bandwidth taken for
a time per byte would be wrong without a word.
"""

from __future__ import annotations

import re
from enum import StrEnum
from math import inf, nan
from typing import Any, TypeVar

from domain.errors import UnitMismatch
from domain.units import ns_per_byte_from_mb_per_s, ns_per_byte_from_us_per_kb

_MOST_DIGITS = 40
_MOST_SHOWN = 24
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
# A number, even with signs between its digits that are none of a plain one; then what follows it.
_CELL = re.compile(r"([+-]?[.,]?\d[\d.,'\s]*(?:[eE][+-]?\d{1,3})?)(\D.*)?", re.ASCII)
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+", re.ASCII)

_SECOND = "s(ec(ond)?s?)?"
_PER_SECOND = f"(/|per|p)?{_SECOND}"


class OverheadUnit(StrEnum):
    """Of a fixed time a fragment."""

    US = "us"
    NS = "ns"
    MS = "ms"
    S = "s"
    UNTOLD = "untold"

    @property
    def words(self) -> str:
        """As a page writes it."""
        return {"us": "µs", "untold": "which unit?"}.get(self.value, self.value)

    @property
    def spelling(self) -> str:
        """An expression that matches how a cell or a header writes it, without blanks."""
        return {
            "us": "us|usecs?|micros(ec(ond)?s?)?",
            "ns": "ns|nsecs?|nanos(ec(ond)?s?)?",
            "ms": "ms|msecs?|millis(ec(ond)?s?)?",
            "s": _SECOND,
        }.get(self.value, "")

    def to_us(self, value: float) -> float:
        """A time in this unit as µs. Raises UnitMismatch where the unit was not told."""
        if self is OverheadUnit.UNTOLD:
            raise UnitMismatch("expected a unit")
        return value / 1e3 if self is OverheadUnit.NS else value * _US[self.value]


_US = {"us": 1.0, "ms": 1e3, "s": 1e6}


class CostUnit(StrEnum):
    """Of a cost a byte, or of a bandwidth, whose inverse it is."""

    NS_PER_BYTE = "ns_per_byte"
    US_PER_KB = "us_per_kb"
    US_PER_KIB = "us_per_kib"
    GB_PER_S = "gb_per_s"
    GIB_PER_S = "gib_per_s"
    GBIT_PER_S = "gbit_per_s"
    MB_PER_S = "mb_per_s"
    MIB_PER_S = "mib_per_s"
    MBIT_PER_S = "mbit_per_s"
    TB_PER_S = "tb_per_s"
    UNTOLD = "untold"

    @property
    def words(self) -> str:
        """As a page writes it."""
        return {
            "ns_per_byte": "ns/byte",
            "us_per_kb": "µs/KB (1000)",
            "us_per_kib": "µs/KB (1024)",
            "gb_per_s": "GB/s",
            "gib_per_s": "GiB/s",
            "gbit_per_s": "Gb/s",
            "mb_per_s": "MB/s",
            "mib_per_s": "MiB/s",
            "mbit_per_s": "Mb/s",
            "tb_per_s": "TB/s",
            "untold": "which unit?",
        }[self.value]

    @property
    def spelling(self) -> str:
        """An expression that matches how a cell or a header writes it, without blanks.

        A small b is a bit and a large one a byte; "gb/s", which may be either, is neither.
        """
        return {
            "ns_per_byte": "ns(/|per)(B|[bB]ytes?)",
            "us_per_kb": "us(/|per)[kK]B",
            "us_per_kib": "us(/|per)[kK]iB",
            "gb_per_s": f"[Gg](B|[bB]ytes?){_PER_SECOND}",
            "gib_per_s": f"[Gg]i(B|[bB]ytes?){_PER_SECOND}",
            "gbit_per_s": f"(Gb|[Gg][bB]its?){_PER_SECOND}|gbps|[Gg]bit",
            "mb_per_s": f"[Mm](B|[bB]ytes?){_PER_SECOND}",
            "mib_per_s": f"[Mm]i(B|[bB]ytes?){_PER_SECOND}",
            "mbit_per_s": f"(Mb|[Mm][bB]its?){_PER_SECOND}|mbps|[Mm]bit",
            "tb_per_s": f"[Tt](B|[bB]ytes?){_PER_SECOND}",
        }.get(self.value, "")

    @property
    def is_bandwidth(self) -> bool:
        """Whether more is faster."""
        return self.value in _BYTES

    def to_ns_per_byte(self, value: float) -> float:
        """A cost in this unit as ns a byte.

        Raises UnitMismatch for a bandwidth of 0 or less, and where the unit was not told.
        """
        if self is CostUnit.UNTOLD:
            raise UnitMismatch("expected a unit")
        if self is CostUnit.NS_PER_BYTE:
            return value
        if self is CostUnit.US_PER_KB:
            return ns_per_byte_from_us_per_kb(value, bytes_per_kb=1000)
        if self is CostUnit.US_PER_KIB:
            return ns_per_byte_from_us_per_kb(value, bytes_per_kb=1024)
        if not value > 0.0:
            raise UnitMismatch("expected a bandwidth above 0; leave no time per byte with ns/byte")
        bits = 8.0 if "bit" in self.value else 1.0
        return bits * ns_per_byte_from_mb_per_s(value, bytes_per_mb=_BYTES[self.value])


_BYTES = {
    "gb_per_s": 10**9,
    "gib_per_s": 2**30,
    "gbit_per_s": 10**9,
    "mb_per_s": 10**6,
    "mib_per_s": 2**20,
    "mbit_per_s": 10**6,
    "tb_per_s": 10**12,
}
Unit = TypeVar("Unit", OverheadUnit, CostUnit)


def measured(text: str, unit: Unit) -> tuple[float, Unit]:
    """What a cell holds: its number, 0 or more, and its own unit, else this one of its column.

    Raises UnitMismatch in words for the cell.
    """
    found = _CELL.fullmatch(text) if len(text) <= _MOST_DIGITS else None
    number, name = (found[1].strip(), (found[2] or "").strip()) if found else (text, "")
    if _GROUPED.fullmatch(number):
        raise UnitMismatch(_which_comma(number))
    own = unit_named(name, type(unit)) if name else unit
    value = float(number) if _NUMBER.fullmatch(number) and len(number) <= _MOST_DIGITS else nan
    if own is None or not 0.0 <= value < inf:
        raise UnitMismatch(_rule(text, unit))
    return value + 0.0, own  # also turns -0 to 0


def unit_named(text: str, kind: type[Unit]) -> Unit | None:
    """The unit that a text names, or None."""
    name = re.sub(r"[\s_]", "", text).replace("µ", "u").replace("μ", "u")
    return next((one for one in kind if one.spelling and re.fullmatch(one.spelling, name)), None)


def unit_table() -> dict[str, dict[str, dict[str, Any]]]:
    """All units for the page's script: words, spelling, and what one is in µs or ns a byte.

    Of a bandwidth the `inverse` divided by it is the time.
    """
    times = {
        unit.value: {"words": unit.words, "spelling": unit.spelling, "factor": unit.to_us(1.0)}
        for unit in OverheadUnit
        if unit is not OverheadUnit.UNTOLD
    }
    costs = {
        unit.value: {
            "words": unit.words,
            "spelling": unit.spelling,
            "inverse" if unit.is_bandwidth else "factor": unit.to_ns_per_byte(1.0),
        }
        for unit in CostUnit
        if unit is not CostUnit.UNTOLD
    }
    return {"overhead": times, "cost": costs}


def number_text(value: float) -> str:
    """A number as somebody would type it, and that reads back as the same double."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _rule(text: str, unit: OverheadUnit | CostUnit) -> str:
    told = f" of {unit.words}" if unit.value != "untold" else ""
    rule = f"expected a number{told}, 0 or more, or one with its unit"
    if not text:
        return rule
    shown = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
    return f"{rule}; not “{shown}”"


def _which_comma(number: str) -> str:
    whole = number.replace(",", "")
    if number.count(",") > 1:
        return f"expected a number without commas: {whole}"
    part = float(number.replace(",", "."))
    return f"{whole} or {part:g}? write it without the comma"
