"""Which columns of a table hold what, in one word: `size=Block:KiB,time=Copy:ms`.

Each part is role=column or role=column:unit. A column is named as the header line names it, or by
its place from 1 (`#2`), which a table without a header line needs. `size` is one of them, and one
or two more: `time` of a message, `interarrival` between back-to-back messages, or their `rate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from contract.limits import MAX_COLUMNS_LENGTH
from domain.errors import InvalidInput, UnitMismatch
from domain.units import CostUnit, OverheadUnit, parse_bytes, unit_named

MAX_PLACE = 999
_FIELD = "columns"
_EXAMPLE = "as in size=bytes,time=copy:ms or size=#1,rate=#3:GB/s"


class ColumnRole(StrEnum):
    """What a column holds.

    size          of the message, a whole number of bytes
    time          one way of an unpipelined message, or of the one stage that the fit is told of
    interarrival  time between arrivals of back-to-back messages of one size
    rate          bandwidth of back-to-back messages, or of the one stage
    """

    SIZE = "size"
    TIME = "time"
    INTERARRIVAL = "interarrival"
    RATE = "rate"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column by its name or its place ("#2"), and its unit; without one its name has to say it.

    Raises InvalidInput.
    """

    role: ColumnRole
    name: str
    unit: str = ""

    def __post_init__(self) -> None:
        if not self.name or not self.name.isprintable():
            raise InvalidInput(f"expected the name of a column, {_EXAMPLE}", field=_FIELD)
        if self.name.startswith("#") and self.name[1:].isdigit() and self.place is None:
            raise InvalidInput(f"expected a place from #1 to #{MAX_PLACE}", field=_FIELD)
        if self.unit and not self.knows(self.unit):
            raise InvalidInput(f"{self.role}: {self.expected}", field=_FIELD)

    @property
    def place(self) -> int | None:
        """The index from 0 where the column is named by its place; None for a name."""
        digits = self.name.removeprefix("#")
        if digits == self.name or not (digits.isascii() and digits.isdigit() and len(digits) < 4):
            return None
        return int(digits) - 1 if 1 <= int(digits) <= MAX_PLACE else None

    @property
    def expected(self) -> str:
        """Which units this role has."""
        if self.role is ColumnRole.SIZE:
            return "expected a unit of sizes: B, KB, KiB, MB, MiB, GB or GiB"
        if self.role is ColumnRole.RATE:
            return "expected a unit of rates: GB/s, GiB/s, MB/s, MiB/s, Gb/s, Mb/s or TB/s"
        return "expected a unit of times: ns, us, ms or s"

    def knows(self, unit: str) -> bool:
        """Return whether this is a unit of what the column holds."""
        if self.role is ColumnRole.SIZE:
            return unit_bytes(unit) is not None
        if self.role is ColumnRole.RATE:
            found = unit_named(unit, CostUnit)
            return found is not None and found.is_bandwidth
        return unit_named(unit, OverheadUnit) is not None


def unit_bytes(unit: str) -> int | None:
    """Return how many bytes a unit of sizes has; None for what is none."""
    if not unit.isalpha():
        return None
    if unit.lower() in ("byte", "bytes"):
        return 1
    try:
        return parse_bytes(f"1{unit}")
    except UnitMismatch:
        return None


def parse_columns(text: str) -> tuple[TableColumn, ...]:
    """Return the columns of this word, that of sizes first. Raises InvalidInput."""
    if len(text) > MAX_COLUMNS_LENGTH:
        raise InvalidInput(f"expected at most {MAX_COLUMNS_LENGTH} characters", field=_FIELD)
    found: dict[ColumnRole, TableColumn] = {}
    for part in text.split(","):
        word, has_name, rest = part.partition("=")
        if word.strip() not in tuple(ColumnRole) or not has_name:
            raise InvalidInput(
                f"expected role=column, the roles being {', '.join(ColumnRole)}, {_EXAMPLE}",
                field=_FIELD,
            )
        role = ColumnRole(word.strip())
        if role in found:
            raise InvalidInput(f"expected one column for {role}", field=_FIELD)
        name, has_unit, unit = rest.rpartition(":")
        if has_unit and not unit.strip():
            raise InvalidInput(f"expected a unit behind the colon, {_EXAMPLE}", field=_FIELD)
        found[role] = TableColumn(
            role, (name if has_unit else rest).strip(), unit.strip() if has_unit else ""
        )
    _check_roles(found)
    return tuple(found[role] for role in ColumnRole if role in found)


def _check_roles(found: dict[ColumnRole, TableColumn]) -> None:
    if ColumnRole.SIZE not in found or len(found) == 1:
        raise InvalidInput(f"expected size and a time or a rate, {_EXAMPLE}", field=_FIELD)
    if ColumnRole.INTERARRIVAL in found and ColumnRole.RATE in found:
        raise InvalidInput(
            "expected interarrival or rate, not both: each is the other's inverse", field=_FIELD
        )
