"""The time axis of a timeline: linear, in the unit that suits its end."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

from app.plots.scales import Tick, nice_above
from app.text.units import TimeUnit

_LEAST_US = 1e-290  # below it nothing can be divided by reliably; such a picture takes no time


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Times from `from_us` to `to_us` on pixels from `left` on, `width` of them."""

    to_us: float
    left: float
    width: float
    from_us: float = 0.0

    @property
    def span_us(self) -> float:
        """How much time is shown."""
        return self.to_us - self.from_us

    @property
    def is_empty(self) -> bool:
        """Whether everything takes no time at all, and stands at 0."""
        return self.span_us < _LEAST_US

    def place(self, time_us: float) -> float:
        """Where a moment is drawn; what is before or after is kept within a picture's width."""
        place = self.left + self.length(time_us - self.from_us)
        return min(max(place, self.left - self.width), self.left + 2.0 * self.width)

    def length(self, time_us: float) -> float:
        """How long a time is drawn."""
        return 0.0 if self.is_empty else self.width * (time_us / self.span_us)

    def duration_us(self, length: float) -> float:
        """The time that is drawn so long."""
        return self.span_us * (length / self.width)

    def ticks(self, most_steps: int) -> list[Tick]:
        """Whole multiples of 1, 2 or 5 times a power of ten, all in one unit."""
        if self.is_empty:
            return [Tick(0.0, "0")]
        step_us = nice_above(self.span_us / most_steps)
        unit = TimeUnit.of(self.to_us)
        first = ceil(self.from_us / step_us * (1 - 1e-12))
        last = floor(self.to_us / step_us * (1 + 1e-12))
        return [
            Tick(i * step_us, f"{i * step_us / unit.us:.9g} {unit.name}" if i else "0")
            for i in range(first, last + 1)
        ]
