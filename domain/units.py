"""Quantities with units, in and out. Nobody else reads or converts them.

Sizes     "64 KiB", "64K", "1MB", "4096": KiB, MiB, GiB, TiB and K, M, G, T are binary (as dd and
          the suffixes of most tools have them), kB/KB, MB, GB, TB decimal.
Times     "3 µs", "3us", "250 ns", and a cost a byte as a time ("0.08 ns/byte", "85 µs/KB (1024)")
          or as a bandwidth, whose inverse it is ("12 GB/s", "100 Gb/s"). What names no unit, or one
          that is not known, is asked back: a bandwidth taken for a time would be wrong without a
          word.
Shares    "5 %" and "0.05"; a bare number of 1 or more could be either, and is asked back.
"""

from __future__ import annotations

import re
from enum import StrEnum
from math import inf, isfinite
from typing import TypeVar

from domain.errors import InvalidInput, UnitMismatch

MAX_CHARACTERS = 40  # of a quantity as text
_MAX_QUOTED = 24
MAX_SIZE_BYTES = 2**63 - 1  # what 64 bits hold with a sign, as documents have numbers
_NUMBER = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
# A number, even with signs between its digits that are none of a plain one; then what follows it.
_QUANTITY = re.compile(r"([+-]?[.,]?\d[\d.,'\s]*(?:[eE][+-]?\d{1,3})?)(\D.*)?", re.ASCII)
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+", re.ASCII)


def parse_number(text: str) -> float:
    """Return a finite number. Raises InvalidInput, also for one of more than MAX_CHARACTERS."""
    value = float(text) if len(text) <= MAX_CHARACTERS and _NUMBER.fullmatch(text) else inf
    if not isfinite(value):
        raise InvalidInput("expected a finite number")
    return value + 0.0  # also turns -0 to 0


def format_number(value: float) -> str:
    """Return a number as somebody would type it, and that reads back as the same double."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


# --- sizes ----------------------------------------------------------------------------------------

_SIZE_UNITS = {
    "": 1,
    "B": 1,
    "K": 2**10,
    "M": 2**20,
    "G": 2**30,
    "T": 2**40,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}
_SIZE = re.compile(r"([0-9]+)(?:\.([0-9]+))?\s*([A-Za-z]*)", re.ASCII)


def parse_bytes(text: str) -> int:
    """Return a size in bytes from text such as "64 KiB". Raises UnitMismatch, also for one that
    64 bits do not hold.
    """
    match = _SIZE.fullmatch(text.strip(" \t\n\r\f\v")) if len(text) <= MAX_CHARACTERS else None
    if match is None or match[3].upper() not in _SIZE_UNITS:
        raise UnitMismatch(
            "expected a size such as 4096, 64K, 64KiB or 1MB (K, M, G, T and KiB, MiB, GiB, TiB "
            "are powers of 1024; KB, MB, GB, TB powers of 1000)"
        )
    unit = _SIZE_UNITS[match[3].upper()]
    fraction = match[2] or ""
    scaled = int(match[1] + fraction) * unit
    size, rest = divmod(scaled, int(10 ** len(fraction)))
    if rest:
        raise UnitMismatch("expected a whole number of bytes")
    if size > MAX_SIZE_BYTES:
        raise UnitMismatch("expected a size below 8192 PiB")
    return size


def format_bytes(size: int) -> str:
    """Return a size in the largest binary unit that divides it: 65536 -> "64 KiB"; in a decimal one
    where that would be seven digits or more: 6000000000 -> "6 GB".
    """
    number, unit = _in_largest(size, _BINARY)
    if number >= _LONG:
        decimal, decimal_unit = _in_largest(size, _DECIMAL)
        number, unit = (decimal, decimal_unit) if decimal < _LONG else (number, unit)
    return f"{number} {unit}"


def _in_largest(size: int, units: tuple[tuple[int, str], ...]) -> tuple[int, str]:
    for unit_bytes, unit in units:
        if size >= unit_bytes and size % unit_bytes == 0:
            return size // unit_bytes, unit
    return size, "B"


_LONG = 1_000_000
_BINARY = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_DECIMAL = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"))


def format_byte_range(low: int, high: int) -> str:
    """Return two sizes as a range: "4 KiB to 64 KiB"."""
    return f"{format_bytes(low)} to {format_bytes(high)}"


# --- times and costs a byte -----------------------------------------------------------------------


def ns_per_byte_from_us_per_kb(us_per_kb: float, *, bytes_per_kb: int) -> float:
    """Return the per-byte cost in ns of a time per KB, which has 1000 or 1024 bytes."""
    return us_per_kb * 1000.0 / bytes_per_kb


def ns_per_byte_from_mb_per_s(mb_per_s: float, *, bytes_per_mb: int) -> float:
    """Return the per-byte cost in ns of a bandwidth in MB/s of this many bytes a MB."""
    return 1e9 / (mb_per_s * bytes_per_mb)


_SECOND = "s(ec(ond)?s?)?"
_PER_SECOND = f"(/|per|p)?{_SECOND}"


class OverheadUnit(StrEnum):
    """Of a fixed time a fragment."""

    US = "us"
    NS = "ns"
    MS = "ms"
    S = "s"
    UNSPECIFIED = "unspecified"

    @property
    def words(self) -> str:
        """As a page writes it."""
        return {"us": "µs", "unspecified": "which unit?"}.get(self.value, self.value)

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
        """Return a time in this unit as µs. Raises UnitMismatch where the unit is unspecified."""
        if self is OverheadUnit.UNSPECIFIED:
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
    UNSPECIFIED = "unspecified"

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
            "unspecified": "which unit?",
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
        """Return a cost in this unit as ns a byte.

        Raises UnitMismatch for a bandwidth of 0 or less, and where the unit is unspecified.
        """
        if self is CostUnit.UNSPECIFIED:
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


def parse_quantity(text: str, unit: Unit) -> tuple[float, Unit]:
    """Return a number, 0 or more, and its own unit, else this one. Raises UnitMismatch."""
    found = _QUANTITY.fullmatch(text) if len(text) <= MAX_CHARACTERS else None
    number, name = (found[1].strip(), (found[2] or "").strip()) if found else (text, "")
    if _GROUPED.fullmatch(number):
        raise UnitMismatch(_which_comma(number))
    own = unit_named(name, type(unit)) if name else unit
    try:
        value = parse_number(number)
    except InvalidInput:
        raise UnitMismatch(_rule(text, unit)) from None
    if own is None or value < 0.0:
        raise UnitMismatch(_rule(text, unit))
    return value, own


def parse_time_us(text: str) -> float:
    """Return a time in µs from text such as "250 ns". Raises UnitMismatch, also without a unit."""
    value, unit = parse_quantity(text, OverheadUnit.UNSPECIFIED)
    return unit.to_us(value)


def parse_clock_mhz(text: str) -> float:
    """Return a clock in MHz from text such as "33 MHz". Raises UnitMismatch, also without a
    unit.
    """
    found = _CLOCK.fullmatch(text.strip().lower()) if len(text) <= MAX_CHARACTERS else None
    if found is None:
        raise UnitMismatch("expected a clock with its unit, such as 33 MHz or 2.6 GHz")
    return parse_number(found[1]) * _MHZ[found[2]]


_CLOCK = re.compile(r"([0-9.]+)\s*([kmg]?hz)", re.ASCII)
_MHZ = {"hz": 1e-6, "khz": 1e-3, "mhz": 1.0, "ghz": 1e3}


def parse_ns_per_byte(text: str) -> float:
    """Return a cost in ns a byte from text such as "12 GB/s". Raises UnitMismatch, as above."""
    value, unit = parse_quantity(text, CostUnit.UNSPECIFIED)
    return unit.to_ns_per_byte(value)


def unit_named(text: str, kind: type[Unit]) -> Unit | None:
    """Return the unit that a text names, or None."""
    name = re.sub(r"[\s_]", "", text).replace("µ", "u").replace("μ", "u")
    return next((one for one in kind if one.spelling and re.fullmatch(one.spelling, name)), None)


def _rule(text: str, unit: OverheadUnit | CostUnit) -> str:
    of_unit = f" of {unit.words}" if unit.value != "unspecified" else ""
    rule = f"expected a number{of_unit}, 0 or more, or one with its unit"
    if not text:
        return rule
    shown = text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}…"
    return f"{rule}; not “{shown}”"


def _which_comma(number: str) -> str:
    whole = number.replace(",", "")
    if number.count(",") > 1:
        return f"expected a number without commas: {whole}"
    part = float(number.replace(",", "."))
    return f"{whole} or {part:g}? write it without the comma"


# --- shares ---------------------------------------------------------------------------------------

SHARE_RULE = "expected a share, as 5 % or 0.05"


def parse_share(text: str) -> float:
    """Return a share of 0 or more: "5 %", "5%" and "0.05" are the same.

    Raises InvalidInput, also for a bare "5": someone who types it hardly means 500 %, and what was
    meant is not guessed.
    """
    plain = text.strip()
    number = plain.removesuffix("%").strip()
    try:
        value = parse_number(number)
    except InvalidInput:
        raise InvalidInput(SHARE_RULE) from None
    if number.startswith("-") or len(plain) > MAX_CHARACTERS:
        raise InvalidInput(SHARE_RULE)
    if plain.endswith("%"):
        return value / 100.0
    if value >= 1.0:
        raise InvalidInput(f"{number} alone could be a share or per cent: write 5 % or 0.05")
    return value


def format_seconds(time_s: float) -> str:
    """Return how long something took, to two digits: "221 s", "0.12 s", "6.9 ms", "26 µs"."""
    if time_s >= 0.00995:
        return f"{time_s:.2g} s" if time_s < 99.5 else f"{time_s:.0f} s"
    for unit, name in ((1e-3, "ms"), (1e-6, "µs")):
        if time_s >= 0.0995 * unit:
            return f"{time_s / unit:.2g} {name}"
    return "less than 0.1 µs" if time_s > 0.0 else "0 s"


def format_share(share: float) -> str:
    """Return a share as `parse_share` reads it, exactly: of 1 and more with its sign."""
    return f"{share!r}" if share < 1.0 else f"{100.0 * share:.12g} %"
