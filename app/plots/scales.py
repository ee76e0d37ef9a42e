"""Axes: where a value is drawn, and which values are marked and how they are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log2, log10

from app.text.units import format_given_time
from domain.units import format_bytes

_ROOM = 0.05  # of an axis' length is left free at either end
_LEAST_US = 1e-300  # what a logarithm is taken of
_OUTSIDE = 0.5  # of its length beyond an axis everything is drawn at the same place, out of sight
_SIZE_STEPS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 48)


@dataclass(frozen=True, slots=True)
class Axis:
    """Values from `least` to `greatest` on pixels from `start` to `end`."""

    least: float
    greatest: float
    start: float
    end: float
    is_log: bool = True

    def place(self, value: float) -> float:
        """Where a value is drawn: beyond the axis where it lies beyond; 0 on a log axis too."""
        share = (self._scaled(value) - self._scaled(self.least)) / self._length
        return self.start + (self.end - self.start) * min(1 + _OUTSIDE, max(-_OUTSIDE, share))

    def holds(self, value: float) -> bool:
        """Whether a value lies on the axis."""
        return self.least <= value <= self.greatest

    @property
    def _length(self) -> float:
        return self._scaled(self.greatest) - self._scaled(self.least)

    def _scaled(self, value: float) -> float:
        return log10(max(value, _LEAST_US)) if self.is_log else value


def log_axis(values: Iterable[float], *, start: float, end: float) -> Axis:
    """A log axis that holds these values, those above 0, with some room at either end."""
    positive = [value for value in values if value > _LEAST_US]
    least, greatest = min(positive, default=1.0), max(positive, default=10.0)
    room = max(_ROOM * log10(greatest / least), 0.06)
    if least == greatest:
        room = 0.3
    return Axis(least * 10.0**-room, greatest * 10.0**room, start, end)


@dataclass(frozen=True, slots=True)
class Tick:
    """A marked value; minor ones have no label."""

    value: float
    label: str = ""


def size_ticks(axis: Axis, most: int) -> list[Tick]:
    """Powers of two, or the ends of the axis where it holds fewer than two of them."""
    first, last = ceil(log2(axis.least)), floor(log2(axis.greatest))
    for step in _SIZE_STEPS:
        powers = [power for power in range(max(0, first), last + 1) if power % step == 0]
        if len(powers) <= most:
            break
    if len(powers) >= 2:
        return [Tick(2.0**power, format_bytes(2**power)) for power in powers]
    ends = sorted({ceil(axis.least), floor(axis.greatest)})
    return [Tick(float(end), format_bytes(end)) for end in ends if axis.holds(end)]


def time_ticks(axis: Axis, most: int) -> list[Tick]:
    """Powers of ten with minor ticks; 1, 2 and 5; or equal steps, as the axis' length asks for."""
    decades = log10(axis.greatest) - log10(axis.least)
    if decades < 0.8:
        return [Tick(value, format_given_time(value)) for value in _equal_steps(axis, most)]
    first, last = floor(log10(axis.least)), ceil(log10(axis.greatest))
    step = max(1, ceil(decades / most))
    labelled = (1, 2, 5) if decades * 3 <= most + 1 else (1,)
    ticks = []
    for power in range(first, last + 1):
        for digit in range(1, 10) if step == 1 else (1,):
            value = float(f"{digit}e{power}")
            is_major = digit in labelled and power % step == 0
            if axis.holds(value):
                ticks.append(Tick(value, format_given_time(value) if is_major else ""))
    return ticks


def burst_ticks(axis: Axis, most: int) -> list[Tick]:
    """Powers of two as plain numbers, not more than fit."""
    ticks = [Tick(2.0**power, str(2**power)) for power in range(63)]
    held = [tick for tick in ticks if axis.holds(tick.value)]
    return held[:: max(1, ceil(len(held) / most))]


def _equal_steps(axis: Axis, most: int) -> list[float]:
    raw = (axis.greatest - axis.least) / most
    unit = 10.0 ** floor(log10(raw))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= raw * (1 - 1e-9))
    first, last = ceil(axis.least / step), floor(axis.greatest / step)
    return [float(f"{place * step:.12g}") for place in range(first, last + 1)]


def nice_above(value: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is not below the value (above 0)."""
    unit = 10.0 ** floor(log10(value))
    return next(
        (unit * factor for factor in (1, 2, 5) if unit * factor >= value * (1 - 1e-9)), unit * 10
    )


def quantile_of(values: Sequence[float], share: float) -> float:
    """The value that this share of them does not exceed, by rank; there is at least one."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
