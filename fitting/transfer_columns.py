"""The columns of a file of own transfers: which tell sizes, which tells how long, and what is left.

A column tells how long by a time with its unit (time_s, total_ms), or by a rate (rate_MB/s,
"bandwidth (Gb/s)"): the time is then the message over the rate. Any column that is not known is a
condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import NoReturn

from contract.limits import MAX_TIME_US
from domain.errors import InvalidInput, UnreadableTrace
from domain.units import CostUnit, OverheadUnit, parse_ns_per_byte, parse_time_us, unit_named
from fitting.readers.text import is_repetition, number_of

MESSAGE, FRAGMENT, LATENCY = "message_bytes", "fragment_bytes", "latency_us"
OPTIONAL = ("block", "began_s", "status", "challenge", "reason")
_UNUSED = frozenset({"preempted", "timestamp", "date", "note", "notes", "comment"})
_TIMES = frozenset({"", "latency", "time", "duration", "elapsed", "total", "total_time", "wall"})
_RATES = frozenset({"", "rate", "bandwidth", "bw", "throughput", "speed"})
_EITHER = frozenset({"gbps", "mbps"})  # written of bits, and of bytes

MAX_COLUMNS = 64

MAX_NAME, MAX_VALUE, MAX_REASON = 60, 100, 300

COLUMNS_RULE = f"expected the columns {MESSAGE},{FRAGMENT},{LATENCY} or, for the last, a rate"


@dataclass(frozen=True, slots=True)
class Measure:
    """How a column tells how long a transfer took; without a unit each cell has its own."""

    is_rate: bool
    unit: OverheadUnit | CostUnit | None

    def latency_us(self, word: str, message_bytes: int) -> float:
        """Return the time in µs. Raises InvalidInput."""
        value = self._value(word)
        latency_us = message_bytes * value / 1e3 if self.is_rate else value
        if not 0.0 < latency_us <= MAX_TIME_US:
            raise InvalidInput(f"expected a time above 0, of at most {MAX_TIME_US:g} µs")
        return latency_us

    def _value(self, word: str) -> float:
        """The time in µs, or the rate in ns a byte."""
        if self.unit is None:
            return parse_ns_per_byte(word) if self.is_rate else parse_time_us(word)
        value = number_of(word)
        if value is None or not isfinite(value):
            raise InvalidInput("expected a finite decimal number")
        if isinstance(self.unit, CostUnit):
            return self.unit.to_ns_per_byte(value)
        return self.unit.to_us(value)


def measure_of(name: str) -> Measure | None:
    """Return what a column of this name tells of a transfer's length; None for nothing."""
    lowered = name.casefold()
    if lowered in _TIMES and name:
        return Measure(is_rate=False, unit=None)
    if lowered in _RATES and name:
        return Measure(is_rate=True, unit=None)
    for base, unit in _split_units(name):
        time = unit_named(unit, OverheadUnit)
        if base in _TIMES and time is not None:
            return Measure(is_rate=False, unit=time)
        cost = unit_named(unit, CostUnit)
        if base in _RATES and cost is not None and cost.is_bandwidth:
            return Measure(is_rate=True, unit=cost)
    return None


def _split_units(name: str) -> Iterator[tuple[str, str]]:
    """Every way to part a name into what it names and a unit: rate_MB/s is ("rate", "MB/s")."""
    yield "", name
    for at, letter in enumerate(name):
        if letter in "_ ([":
            base = name[:at].strip().casefold().replace(" ", "_").rstrip("_")
            yield base, name[at + 1 :].strip(" ([)]_")


def _has_unit_of_time(name: str) -> bool:
    """Whether this is a further time, as that of a stage."""
    return any(base and unit_named(unit, OverheadUnit) for base, unit in _split_units(name))


@dataclass(slots=True)
class Columns:
    """The columns of the header line, by place."""

    width: int
    message: int
    fragment: int
    latency: int
    measure: Measure
    optional: dict[str, int] = field(default_factory=dict)
    conditions: dict[str, int] = field(default_factory=dict)
    unused: list[str] = field(default_factory=list)


def columns_of(fields: Sequence[str], number: int) -> Columns:
    """Return the columns that a header line names. Raises UnreadableTrace."""
    if len(fields) > MAX_COLUMNS:
        refuse(f"line {number}: expected at most {MAX_COLUMNS} columns, got {len(fields)}")
    for place, name in enumerate(fields, 1):
        if not name or len(name) > MAX_NAME or not name.isprintable():
            refuse(
                f"line {number}, column {place}: expected a name of 1 to {MAX_NAME} printable "
                "characters"
            )
        if name in fields[: place - 1]:
            refuse(f"line {number}, column {place}: {name} is there twice")
    missing = [name for name in (MESSAGE, FRAGMENT) if name not in fields]
    if missing:
        refuse(f"line {number} lacks {' and '.join(missing)}: {COLUMNS_RULE}")
    at, measure = _latency_of(fields, number)
    columns = Columns(len(fields), fields.index(MESSAGE), fields.index(FRAGMENT), at, measure)
    for place, name in enumerate(fields):
        if place in (columns.message, columns.fragment, columns.latency):
            continue
        if name in OPTIONAL:
            columns.optional[name] = place
        elif _is_unused(name):
            columns.unused.append(name)
        else:
            columns.conditions[name] = place
    return columns


def _is_unused(name: str) -> bool:
    is_measure = measure_of(name) is not None or _has_unit_of_time(name)
    return is_measure or is_repetition(name) or name.casefold() in _UNUSED


def _latency_of(fields: Sequence[str], number: int) -> tuple[int, Measure]:
    """The place of the column that tells how long: latency_us, else the only one that does."""
    if LATENCY in fields:
        return fields.index(LATENCY), Measure(is_rate=False, unit=OverheadUnit.US)
    measures = {at: one for at, name in enumerate(fields) if (one := measure_of(name)) is not None}
    if len(measures) > 1:
        names = " and ".join(fields[at] for at in measures)
        refuse(f"line {number}: {names} each tell how long a transfer took: leave one of them")
    if not measures:
        refuse(f"line {number} lacks a time or a rate with its unit: {COLUMNS_RULE}, as rate_MB/s")
    at, measure = next(iter(measures.items()))
    words = fields[at].casefold().replace("_", " ").replace("(", " ").replace(")", " ").split()
    if not _EITHER.isdisjoint(words):
        refuse(
            f"line {number}, column {fields[at]}: this is written of bits and of bytes; name it "
            "rate_GB/s or rate_Gb/s"
        )
    return at, measure


def refuse(detail: str) -> NoReturn:
    """Raise UnreadableTrace of the field `transfers`."""
    raise UnreadableTrace(detail, field="transfers")
