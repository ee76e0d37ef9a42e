"""Times and names as a reader meets them: one rule for terminal, pages, plots and scripts.

Four significant digits in the unit that suits, zeros included: 184.4 µs, 1.000 ms. A latency beside
its proven bound has as many more as show the gap between the two, in one unit; the bound is rounded
down, so that it never claims more than is proven. Scripts follow the same rules
(app/web/assets/numbers.js).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from math import floor, inf, log10
from typing import Any

from app.text.numbers import DIGITS, MIN_SHARE, without_zeros
from domain.solution import relative_excess

MAX_DIGITS = 12
GIVEN_DIGITS = 9  # of times that somebody typed, and of axes
_UNITS = (("s", 6), ("ms", 3), ("µs", 0), ("ns", -3))
_PLAIN_US = (1e-9, 1e21)  # beyond, times have an exponent
_TELLING_US = (1e-9, 1e15)  # beyond, DIGITS do
_READ_OFF = 0.05  # relative, of a gap


@dataclass(frozen=True, slots=True)
class TimeUnit:
    """One unit and so many decimals for times that are read beside each other.

    `power` is the unit in µs, as a power of ten. `decimals` None is an exponent.
    """

    name: str
    power: int
    decimals: int | None

    @classmethod
    def of(cls, time_us: float, bound_us: float | None = None, *, digits: int = DIGITS) -> TimeUnit:
        """Return the unit that suits this time; with a bound, with digits that show their gap."""
        if bound_us is not None:
            digits = agreeing_digits(time_us, bound_us, minimum=digits)
        size = abs(time_us)
        if not size:
            return cls("µs", 0, 0)
        if not _PLAIN_US[0] <= size < _PLAIN_US[1]:
            return cls("s", 6, None) if size > 1.0 else cls("ns", -3, None)
        context = Context(prec=digits, rounding=ROUND_HALF_UP)
        magnitude = context.create_decimal(Decimal(size)).adjusted()
        name, power = next((one for one in _UNITS if magnitude >= one[1]), _UNITS[-1])
        return cls(name, power, max(0, digits - 1 - (magnitude - power)))

    @property
    def us(self) -> float:
        """Return the unit in µs."""
        return 10.0**self.power

    @property
    def step_us(self) -> float:
        """Return what the last decimal counts, in µs; 0 for an exponent."""
        return 0.0 if self.decimals is None else 10.0 ** (self.power - self.decimals)

    def text(self, time_us: float) -> str:
        """Return a time in this unit, without its name."""
        return self._text(Decimal(time_us), ROUND_HALF_UP)

    def named(self, time_us: float) -> str:
        """Return a time in this unit."""
        return f"{self.text(time_us)} {self.name}"

    def bound(self, bound_us: float, latency_us: float | None) -> str:
        """Return a lower bound on this latency in this unit, rounded down unless it is reached."""
        if bound_us == latency_us:
            return self.named(bound_us)
        return f"{self._text(Decimal(repr(bound_us)), ROUND_FLOOR)} {self.name}"

    def _text(self, time_us: Decimal, rounding: str) -> str:
        if not time_us.is_finite():
            return "–"
        value = time_us.scaleb(-self.power)
        if self.decimals is None or abs(value) >= Decimal(_PLAIN_US[1]):
            near = Context(prec=DIGITS, rounding=rounding).create_decimal(value)
            mantissa, _, exponent = f"{near:.{DIGITS - 1}e}".partition("e")
            return f"{mantissa}e{int(exponent):+d}"
        last = Decimal(1).scaleb(-self.decimals)
        return f"{value.quantize(last, rounding, Context(prec=400)):f}"


def format_time(time_us: float, digits: int = DIGITS) -> str:
    """Return a time in the unit that suits it: 184.4 µs, 1.000 ms."""
    return TimeUnit.of(time_us, digits=digits).named(time_us)


def format_given_time(time_us: float, digits: int = GIVEN_DIGITS) -> str:
    """Return a time that somebody gave, or of an axis, without zeros at its end: 5 µs."""
    unit = TimeUnit.of(time_us, digits=digits)
    return f"{without_zeros(unit.text(time_us))} {unit.name}"


def format_proven(latency_us: float, bound_us: float) -> tuple[str, str]:
    """Return a latency and its proven bound in one unit, as far apart as their gap says."""
    unit = TimeUnit.of(latency_us, bound_us)
    return unit.named(latency_us), unit.bound(bound_us, latency_us)


def agreeing_digits(latency_us: float, bound_us: float, *, minimum: int = DIGITS) -> int:
    """Return the digits of a latency with which its bound is as far below it as the gap says.

    The latency is rounded to them, the bound to the same place, down. Gaps as read off are within a
    twentieth of the gap itself, or below the smallest gap that is shown.
    """
    gap = relative_excess(latency_us, bound_us, bound_us)
    if not (0.0 < gap < 1.0 and _TELLING_US[0] < latency_us < _TELLING_US[1]):
        return minimum
    magnitude = floor(log10(latency_us)) + 1
    for digits in range(minimum, MAX_DIGITS):
        scale = 10.0 ** (digits - magnitude)
        shown_bound = floor(bound_us * scale)
        shown = floor(latency_us * scale + 0.5) / shown_bound - 1.0 if shown_bound else inf
        if abs(shown - gap) <= _READ_OFF * gap or max(shown, gap) < MIN_SHARE:
            return digits
    return MAX_DIGITS


Document = Mapping[str, Any]
OF_MODEL = "of this model"  # what every proof is of: never of the machine that was measured
PROVEN_BOUND = f"proven bound {OF_MODEL}"
NOT_OF_MACHINE = "of the model, not of the machine: its costs are fitted"
MAX_QUOTED = 200


def printable(text: str) -> str:
    """Return the text without characters that could steer a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)


def quoted(name: str) -> str:
    """Return a name in quotes, in ASCII and not too long, as messages show it."""
    text = ascii(name)
    return text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - 3] + "..."


def width_of(text: str) -> int:
    """Return the columns that a text takes: East Asian wide characters two, combining ones none."""
    from rich.cells import cell_len  # not before it is needed: the command line starts at once

    return cell_len(printable(text))


def fit_to(text: str, columns: int, *, cut_off: str = "…") -> str:
    """Return the text in exactly so many columns: padded, or cut with a mark."""
    text = printable(text)
    if width_of(text) > columns:
        while text and width_of(text) > columns - 1:
            text = text[:-1]
        text += cut_off
    return text + " " * (columns - width_of(text))
