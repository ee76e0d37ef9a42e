"""Measured sizes that lie on one line: the fewest lines that explain medians with known errors.

Source    dynamic programme over neighbours, as in fitting/ranges.py, on medians and their errors
          instead of samples; theory.md sec. 7 says what the lines are for.
Notation  x_i: measured size; y_i: median of its times; s_i: standard error of y_i, from the noise
          of all sizes together and from the clock's resolution. P: what one line more must save.
Cost      O(m^2) for m sizes, m <= MAX_SIZES; sorting N samples.
Exact     minimises sum ((y_i - line) / s_i)^2 + P times the number of runs over all divisions of
          the sizes into runs of neighbours. A run of two must be close: two far points are no line.
Traps     times printed with few digits have no scatter and are still not exact: half a unit of the
          last digit counts as an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, sqrt

import numpy as np
from numpy.typing import NDArray

from domain.measurement import Samples
from domain.pipeline import Line

Floats = NDArray[np.float64]
CLOSE = 2.5  # two neighbours further apart than this make no line by themselves
MAX_SIZES = 128
SPREADS = 3.0
_EXACT = 1e-6  # relative error of a time without any noise
_LINE_COSTS = 16.0  # P: chance alone saves that much in about one plan of 300
_MAX_DIGITS = 6
_MIN_US = 1e-12  # less than any clock tells: as good as 0
_MIN_SAMPLES = 3  # of one size, to tell its spread


@dataclass(frozen=True, slots=True)
class Noise:
    """Relative standard deviation of one time, None where too few tell; the clock's unit in µs."""

    spread: float | None
    unit_us: float

    def error_us(self, time_us: float, samples: int, unknown: float) -> float:
        """Return the standard error of a median; `unknown` is the relative one where the spread is
        not known.

        A median's is 1.25 times that of a mean.
        """
        spread = unknown if self.spread is None else 1.2533 * self.spread / sqrt(samples)
        return hypot(spread * time_us, 0.3 * self.unit_us, _EXACT * time_us)


@dataclass(frozen=True, slots=True)
class Point:
    """A measured size: the median time, its standard error, and how many samples it is of."""

    x: int
    y: float
    error: float
    samples: int


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring sizes on one line; that of a single one is level and means nothing."""

    points: tuple[Point, ...]
    line: Line

    @property
    def is_line(self) -> bool:
        """Whether it has sizes enough to have a line."""
        return len(self.points) > 1

    @property
    def first(self) -> int:
        """Its least size."""
        return self.points[0].x

    @property
    def last(self) -> int:
        """Its greatest size."""
        return self.points[-1].x


def points_of(
    samples: Samples | None, minimum: int, maximum: int, unknown: float
) -> tuple[list[Point], Noise]:
    """Return the sizes in these limits, ascending, at most MAX_SIZES of them, and the noise of
    all.
    """
    if samples is None:
        return [], Noise(None, 0.0)
    sizes, medians, spreads, counts = _by_size(samples)
    usable = (counts >= _MIN_SAMPLES) & (medians > _MIN_US)
    spread = float(np.median(spreads[usable])) if usable.any() else None
    noise = Noise(spread, _unit_us(medians))
    inside = np.flatnonzero((sizes >= minimum) & (sizes <= maximum))
    if len(inside) > MAX_SIZES:
        inside = inside[_spread_out(sizes[inside])]
    floor = float(medians.max(initial=0.0)) * 1e-12 + _MIN_US
    points = [
        Point(
            int(sizes[i]),
            float(medians[i]),
            max(floor, noise.error_us(float(medians[i]), int(counts[i]), unknown)),
            int(counts[i]),
        )
        for i in inside
    ]
    return points, noise


def _spread_out(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Places of at most MAX_SIZES of them, evenly on a log axis, both ends included."""
    even = np.geomspace(sizes[0], sizes[-1], MAX_SIZES)
    return np.unique(np.clip(np.searchsorted(sizes, even), 0, len(sizes) - 1))


def _by_size(samples: Samples) -> tuple[NDArray[np.int64], Floats, Floats, NDArray[np.int64]]:
    """Distinct sizes, and of each the median, the relative spread and the number of its times."""
    x = np.asarray(samples.message_bytes, dtype=np.int64)
    y = np.asarray(samples.times_us, dtype=np.float64)
    sizes, group, counts = np.unique(x, return_inverse=True, return_counts=True)
    medians = _medians(group, counts, y)
    middle = medians[group]
    apart = np.divide(np.abs(y - middle), middle, out=np.zeros_like(y), where=middle > _MIN_US)
    return sizes, medians, 1.4826 * _medians(group, counts, apart), counts


def _medians(group: NDArray[np.intp], counts: NDArray[np.int64], values: Floats) -> Floats:
    """The median of each group, all at once: there may be as many groups as values."""
    ordered = values[np.lexsort((values, group))]
    ends = np.cumsum(counts)
    starts = ends - counts
    out: Floats = 0.5 * (ordered[starts + (counts - 1) // 2] + ordered[starts + counts // 2])
    return out


def _unit_us(times: Floats) -> float:
    """The unit of the last digit that these times have; 0 where they have more than a few."""
    for digits in range(_MAX_DIGITS + 1):
        if np.allclose(times, np.round(times, digits), rtol=1e-14, atol=0.0):
            return float(10.0**-digits)
    return 0.0


def runs_of(points: list[Point]) -> list[Run]:
    """Return the division of all points into runs on one line each that costs least."""
    best, before = [0.0], [0]
    sums = _Sums(points)
    for end in range(1, len(points) + 1):
        costs = [best[start] + _LINE_COSTS + sums.misfit(start, end) for start in range(end)]
        before.append(int(np.argmin(costs)))
        best.append(costs[before[-1]])
    runs, end = [], len(points)
    while end > 0:
        part = tuple(points[before[end] : end])
        runs.append(Run(part, sums.line(before[end], end)))
        end = before[end]
    return runs[::-1]


class _Sums:
    """Weighted lines through any run of neighbours."""

    def __init__(self, points: list[Point]) -> None:
        self.x = np.array([point.x for point in points], dtype=np.float64)
        self.y = np.array([point.y for point in points])
        self.error = np.array([point.error for point in points])

    def _centred(self, start: int, end: int) -> tuple[float, float, float]:
        x, y = self.x[start:end], self.y[start:end]
        w = (float(self.error[start:end].min()) / self.error[start:end]) ** 2
        centre = float(w @ x / w.sum())
        middle = float(w @ y / w.sum())
        slope = float(w @ ((x - centre) * (y - middle))) / float(w @ (x - centre) ** 2)
        return centre, middle, slope

    def misfit(self, start: int, end: int) -> float:
        """Squared errors around the line of this run; infinite where there is none."""
        if end - start == 1:
            return 0.0
        if end - start == 2:
            return 0.0 if self.x[start + 1] <= CLOSE * self.x[start] else np.inf
        centre, middle, slope = self._centred(start, end)
        rest = self.y[start:end] - middle - slope * (self.x[start:end] - centre)
        return float(np.sum((rest / self.error[start:end]) ** 2))

    def line(self, start: int, end: int) -> Line:
        """The line of this run; a level one for a single size."""
        if end - start == 1:
            return Line(float(self.y[start]), 0.0)
        centre, middle, slope = self._centred(start, end)
        return Line(middle - slope * centre, 1000.0 * slope)
