"""Instructions by class, exactly: counts of them, sums, and what they cost in cycles.

Counts are exact fractions, since words may cost half an instruction: a load or store of two words
(Karamcheti94 Appendix A).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import TypeAlias

from contract.limits import (
    CLASS_RULE,
    MAX_CLASS_COUNT,
    MAX_CLASSES,
    MAX_CLOCK_MHZ,
    MAX_CYCLES,
)
from domain.errors import InconsistentInput, InvalidInput, MissingClassCost

PUBLISHED_CLASSES = ("reg", "mem", "dev")  # registers, memory, memory-mapped devices

Exact: TypeAlias = int | Fraction  # whole numbers as int, whose arithmetic is many times faster


@dataclass(frozen=True, slots=True)
class InstructionCounts:
    """Instructions by class, none of them 0: reg, mem, dev first, then others by name.

    `InstructionCounts.of` makes them of any mapping. Raises InvalidInput.
    """

    by_class: tuple[tuple[str, Exact], ...] = ()

    @classmethod
    def of(cls, counts: Mapping[str, float | Fraction]) -> InstructionCounts:
        """Return these counts, each from 0 to 1e9."""
        if len(counts) > MAX_CLASSES:
            raise InvalidInput(f"expected at most {MAX_CLASSES} classes", field="counts")
        for name, count in counts.items():
            check_class(name, field="counts")
            check_number(f"counts.{name}", count, MAX_CLASS_COUNT)
        return cls(_ordered({name: exact(count) for name, count in counts.items()}))

    @property
    def total(self) -> Exact:
        """Instructions of all classes."""
        return sum(count for _, count in self.by_class)

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of which there are any."""
        return tuple(name for name, _ in self.by_class)

    def in_class(self, name: str) -> Exact:
        """Return the instructions of one class."""
        return dict(self.by_class).get(name, 0)

    def times(self, factor: Exact) -> InstructionCounts:
        """Return as many times these counts."""
        if not factor:
            return InstructionCounts()
        many = tuple((name, exact(count * factor)) for name, count in self.by_class)
        return InstructionCounts(many)


def exact(value: float | Fraction) -> Exact:
    """Return a finite number without error, a whole one as int."""
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    found = Fraction(value)
    return found.numerator if found.denominator == 1 else found


def sum_of(counts: Iterable[InstructionCounts]) -> InstructionCounts:
    """Return the sum of these counts, class by class."""
    found: dict[str, Exact] = {}
    for one in counts:
        for name, count in one.by_class:
            found[name] = found.get(name, 0) + count
    return InstructionCounts(_ordered(found))


def in_order(classes: Iterable[str]) -> tuple[str, ...]:
    """Return these classes in the order of counts: the published ones, then others by name."""
    given = set(classes)
    published = (name for name in PUBLISHED_CLASSES if name in given)
    return (*published, *sorted(given.difference(PUBLISHED_CLASSES)))


def _ordered(counts: Mapping[str, Exact]) -> tuple[tuple[str, Exact], ...]:
    return tuple((name, counts[name]) for name in in_order(counts) if counts[name])


@dataclass(frozen=True, slots=True)
class CycleModel:
    """Cycles of an instruction of each class, and a clock in MHz where there is one.

    Raises InvalidInput.
    """

    cycles: tuple[tuple[str, float], ...]
    clock_mhz: float | None = None

    def __post_init__(self) -> None:
        if len(self.cycles) > MAX_CLASSES:
            raise InconsistentInput(f"expected at most {MAX_CLASSES} classes", field="cycles")
        for name, cycles in self.cycles:
            check_class(name, field="cycles")
            check_number(f"cycles.{name}", cycles, MAX_CYCLES)
        check_clock(self.clock_mhz)

    def cycles_of(self, counts: InstructionCounts) -> Exact:
        """Return the cycles that these instructions take. Raises MissingClassCost."""
        prices = dict(self.cycles)
        if missing := [name for name, _ in counts.by_class if name not in prices]:
            raise MissingClassCost(
                f"expected the cycles of an instruction of class {', '.join(missing)}",
                field="cycles",
            )
        return sum(exact(prices[name]) * count for name, count in counts.by_class)

    def us_of(self, counts: InstructionCounts) -> Fraction:
        """Return the time of these instructions in µs. Raises MissingClassCost, and InvalidInput
        where no clock is known.
        """
        return self.cycles_of(counts) / self.clock()

    def clock(self) -> Fraction:
        """Return the clock in MHz without error. Raises InvalidInput where none is known."""
        if self.clock_mhz is None:
            raise InvalidInput(
                "expected clock_mhz: without a clock cycles are no time", field="clock_mhz"
            )
        return Fraction(self.clock_mhz)


def check_class(name: str, *, field: str) -> None:
    """Raise InvalidInput unless this can be the name of a class of instructions."""
    if not re.fullmatch(CLASS_RULE, name, re.ASCII):
        raise InvalidInput(
            "expected the name of a class of instructions: small letters, digits and _, at most 32 "
            "of them, a letter first",
            field=field,
        )


def check_clock(clock_mhz: float | None) -> None:
    """Raise InvalidInput unless this is a clock in MHz, or none."""
    if clock_mhz is None:
        return
    check_number("clock_mhz", clock_mhz, MAX_CLOCK_MHZ)
    if clock_mhz <= 0.0:
        raise InvalidInput("expected clock_mhz > 0", field="clock_mhz")


def check_number(field: str, value: float | Fraction, maximum: float) -> None:
    """Raise InvalidInput unless this is a finite number from 0 to the maximum."""
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        raise InvalidInput(f"expected {field} to be a number", field=field)
    if not (isfinite(value) and 0 <= value <= maximum):
        raise InvalidInput(f"expected 0 <= {field} <= {maximum:g}, got {value!r}", field=field)
