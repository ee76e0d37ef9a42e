"""The time axis of a timeline: from 0 on, linear, in the unit that suits its end."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

from app.plots.scales import Tick, nice_above

_UNITS = (("s", 1e6), ("ms", 1e3), ("µs", 1.0), ("ns", 1e-3))
_LEAST_US = 1e-290  # below it nothing can be divided by reliably; such a picture takes no time


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Times from 0 to `span_us` on pixels from `left` on, `width` of them."""

    span_us: float
    left: float
    width: float

    @property
    def is_empty(self) -> bool:
        """Whether everything takes no time at all, and stands at 0."""
        return self.span_us < _LEAST_US

    def place(self, time_us: float) -> float:
        """Where a moment is drawn."""
        return self.left + self.length(time_us)

    def length(self, time_us: float) -> float:
        """How long a time is drawn."""
        return 0.0 if self.is_empty else self.width * (time_us / self.span_us)

    def duration_us(self, length: float) -> float:
        """The time that is drawn so long."""
        return self.span_us * (length / self.width)

    def ticks(self, most_steps: int) -> list[Tick]:
        """0 and whole multiples of 1, 2 or 5 times a power of ten, all in one unit."""
        if self.is_empty:
            return [Tick(0.0, "0")]
        step_us = nice_above(self.span_us / most_steps)
        unit, factor = unit_of(self.span_us)
        last = floor(self.span_us / step_us * (1 + 1e-12))
        later = [
            Tick(i * step_us, f"{i * step_us / factor:.6g} {unit}") for i in range(1, last + 1)
        ]
        return [Tick(0.0, "0"), *later]


def unit_of(time_us: float) -> tuple[str, float]:
    """The unit that suits a time, and how many µs it has."""
    return next((one for one in _UNITS if time_us >= one[1]), _UNITS[-1])


def duration_text(time_us: float) -> str:
    """A time with six significant digits, in the unit that suits it."""
    if time_us == 0.0:
        return "0 µs"
    unit, factor = unit_of(time_us)
    text = f"{time_us / factor:.6g}"
    return f"{float(text):.0f} {unit}" if "e+" in text and time_us < 1e15 else f"{text} {unit}"
