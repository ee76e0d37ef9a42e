"""The units that costs were given in, in the address of what was found, so that a link shows them.

Answers and jobs are stored in µs and ns a byte, whatever was typed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar
from urllib.parse import urlencode

from domain.units import CostUnit, OverheadUnit, format_number

_EXACT_DIGITS = 17

Unit = TypeVar("Unit", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class ShownUnits:
    """A unit of each column of the stage table."""

    overhead: OverheadUnit = OverheadUnit.US
    cost: CostUnit = CostUnit.NS_PER_BYTE

    @classmethod
    def of(cls, given: Mapping[str, str]) -> ShownUnits:
        """As an address has them; what a page never sends counts as nothing."""
        usual = cls()
        return cls(
            _told(given.get("overhead_unit", ""), usual.overhead),
            _told(given.get("cost_unit", ""), usual.cost),
        )

    @property
    def query(self) -> str:
        """As an address has them, without what is usual: "cost_unit=gb_per_s", or ""."""
        usual = ShownUnits()
        pairs = (
            ("overhead_unit", self.overhead, usual.overhead),
            ("cost_unit", self.cost, usual.cost),
        )
        return urlencode([(name, str(unit)) for name, unit, common in pairs if unit != common])

    @property
    def asked(self) -> str:
        """The query with its question mark, or ""."""
        return f"?{self.query}" if self.query else ""

    @property
    def also(self) -> str:
        """The query for an address that has one already, or ""."""
        return f"&{self.query}" if self.query else ""

    def onto(self, address: str) -> str:
        """The address with these units."""
        return address + (self.also if "?" in address else self.asked)

    def overhead_text(self, overhead_us: float) -> str:
        """A fixed time in its unit, as it was typed: the shortest number that means the same."""
        return _typed(self.overhead.to_us, overhead_us / self.overhead.to_us(1.0), overhead_us)

    def cost_text(self, ns_per_byte: float) -> str:
        """A cost a byte in its unit, as it was typed; "" for no cost as a bandwidth."""
        one = self.cost.to_ns_per_byte(1.0)
        if not self.cost.is_bandwidth:
            return _typed(self.cost.to_ns_per_byte, ns_per_byte / one, ns_per_byte)
        if not ns_per_byte > 0.0:
            return ""
        return _typed(self.cost.to_ns_per_byte, one / ns_per_byte, ns_per_byte)


def _typed(read: Callable[[float], float], near: float, value: float) -> str:
    """The shortest number about `near` that is read as this value; `near` where none is."""
    for digits in range(1, _EXACT_DIGITS + 1):
        short = float(f"{near:.{digits}g}")
        if short > 0.0 and read(short) == value:
            return format_number(short)
    return format_number(near)


def _told(given: str, usual: Unit) -> Unit:
    kinds = {str(one): one for one in type(usual) if str(one) != "untold"}
    return kinds.get(given, usual)
