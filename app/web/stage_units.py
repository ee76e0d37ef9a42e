"""The units that the stage table's columns may be in, and numbers as text."""

from __future__ import annotations

from enum import StrEnum

from domain.errors import UnitMismatch
from domain.units import ns_per_byte_from_mb_per_s, ns_per_byte_from_us_per_kb


class OverheadUnit(StrEnum):
    """Of a fixed time a fragment."""

    US = "us"
    NS = "ns"
    MS = "ms"

    @property
    def words(self) -> str:
        """As a page writes it."""
        return {"us": "µs", "ns": "ns", "ms": "ms"}[self.value]

    def to_us(self, value: float) -> float:
        """A time in this unit as µs."""
        return {"us": value, "ns": value / 1e3, "ms": value * 1e3}[self.value]


class CostUnit(StrEnum):
    """Of a cost a byte, or of a bandwidth, whose inverse it is."""

    NS_PER_BYTE = "ns_per_byte"
    US_PER_KB = "us_per_kb"
    US_PER_KIB = "us_per_kib"
    GB_PER_S = "gb_per_s"
    GBIT_PER_S = "gbit_per_s"
    MIB_PER_S = "mib_per_s"

    @property
    def words(self) -> str:
        """As a page writes it."""
        return {
            "ns_per_byte": "ns/byte",
            "us_per_kb": "µs/KB (1000)",
            "us_per_kib": "µs/KB (1024)",
            "gb_per_s": "GB/s",
            "gbit_per_s": "Gb/s",
            "mib_per_s": "MiB/s",
        }[self.value]

    @property
    def is_bandwidth(self) -> bool:
        """Whether more is faster."""
        return self in (CostUnit.GB_PER_S, CostUnit.GBIT_PER_S, CostUnit.MIB_PER_S)

    def to_ns_per_byte(self, value: float) -> float:
        """A cost in this unit as ns a byte. Raises UnitMismatch for a bandwidth of 0 or less."""
        if self is CostUnit.NS_PER_BYTE:
            return value
        if self is CostUnit.US_PER_KB:
            return ns_per_byte_from_us_per_kb(value, bytes_per_kb=1000)
        if self is CostUnit.US_PER_KIB:
            return ns_per_byte_from_us_per_kb(value, bytes_per_kb=1024)
        if not value > 0.0:
            raise UnitMismatch("expected a bandwidth above 0; leave no time per byte with ns/byte")
        if self is CostUnit.MIB_PER_S:
            return ns_per_byte_from_mb_per_s(value, bytes_per_mb=2**20)
        bits = 8.0 if self is CostUnit.GBIT_PER_S else 1.0
        return bits * ns_per_byte_from_mb_per_s(value, bytes_per_mb=10**9)


def number_text(value: float) -> str:
    """A number as somebody would type it, and that reads back as the same double."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
