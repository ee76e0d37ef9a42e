"""The middle of the times at every size, and how far single times lie from it, without a line.

Source    scale: the first quartile of pairwise differences (Rousseeuw & Croux 1993, Q_n), pooled
          over neighbouring sizes until there are enough pairs; centre: the time with most others
          around it, refined by Tukey's biweight with that scale.
Notation  x sizes in bytes, y times in µs, c how many samples an entry stands for, (N,); z centres
          (m,); s relative scales (m,); n how many samples are within reach of the centre, (m,); the
          variance of a centre is s^2 / n, times its widening where successive times are alike.
          m cells: sizes, or bins of neighbouring ones where there are more than MAX_CELLS.
Cost      at most 64 samples a cell look at each other; O(N) otherwise.
Exact     no; where outliers are slow ones, centres hold beyond half of them.
Traps     one time a size shows no spread: it is then how far a time lies off the chord of its
          neighbours. Within a bin times grow with the size: they are carried to the bin's own
          size by the slope between its neighbours, in logarithms, which lies between 0 and 1 for
          every line with both parameters >= 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fitting.robust import TUKEY, tukey_weights
from fitting.samples import Floats, Ints, SortedSamples

MAX_CELLS = 200
_LOOK = 64
_PAIRS, FREEDOM = 400, 40  # neighbours are pooled until a scale rests on so many
_MIN_SCALE = 1e-6
_UNKNOWN_SCALE = 0.05  # with one time at each of three sizes or fewer


@dataclass(frozen=True, slots=True)
class Centres:
    """By cell: the notation above, and

    median  of its times (m,)
    count   how many samples it has (m,)
    start   where its entries begin (m,)
    last    the index of the last size in it (m,)
    wide    by how much the variance of a centre is at most above s^2 / n (m,)
    alike   the correlation of the errors of cells 0, 1, ... apart, at most (m,)
    sure_wide, sure_alike
            the former, and the correlation of neighbours, at least (m,)
    """

    x: Floats
    z: Floats
    s: Floats
    n: Floats
    median: Floats
    count: Floats
    start: Ints
    last: Ints
    wide: Floats
    alike: Floats
    sure_wide: Floats
    sure_alike: float

    def errors(self) -> Floats:
        """Return the relative standard error of every centre, (m,)."""
        out: Floats = self.s * np.sqrt(self.wide / self.n)
        return out

    def sure_errors(self) -> Floats:
        """Return what the relative standard error of every centre is at least, (m,)."""
        out: Floats = self.s * np.sqrt(self.sure_wide / self.n)
        return out

    def common(self, where: slice) -> Floats:
        """Return the relative covariance of the errors of these cells, beyond what single times
        explain if all of them were independent, (k, k).
        """
        e, s = self.errors()[where], self.s[where]
        places = np.arange(len(e))
        apart = np.abs(places[:, None] - places[None, :])
        out: Floats = np.outer(e, e) * self.alike[apart]
        np.fill_diagonal(out, s**2 / self.n[where] * (self.wide[where] - 1.0))
        return out


@dataclass(frozen=True, slots=True)
class Cells:
    """The samples by cell: the notation above; entry by entry also the index of its size, (N,)."""

    x: Floats
    y: Floats
    c: Floats
    start: Ints
    last: Ints
    of_size: Ints

    @property
    def group(self) -> Ints:
        """For each entry the index of its cell, (N,)."""
        return np.repeat(np.arange(len(self.start)), self.widths)

    @property
    def widths(self) -> Ints:
        """How many entries each cell has, (m,)."""
        return np.diff(np.append(self.start, len(self.y)))

    def total(self, value: Floats) -> Floats:
        """Return sums over each cell, (m,)."""
        out: Floats = np.add.reduceat(self.c * value, self.start)
        return out


def centres_of(
    samples: SortedSamples, ends: tuple[int, ...] = (), *, resolution_us: float = 0.0
) -> Centres:
    """Return the centre of every size, or of every bin; no bin reaches over one of these sizes by
    index.

    A reading of a clock is as wide as its step: 0 counts as half of it, give or take half. Without
    a step, times of exactly 0 count as next to 0.
    """
    cells = cells_of(samples, ends)
    minimum = max(float(cells.y.max()) * 1e-15, resolution_us / 2.0, 5e-324)
    y = np.maximum(cells.y, minimum)
    s = _pair_scales(cells, y)
    if s is None:
        z = y.copy()
        s = np.full(len(z), _chord_scale(cells.x, z))
        return _centres(samples, cells, z, s, np.ones(len(z)))
    tick = resolution_us / np.maximum(y[cells.start + cells.widths // 2], minimum) / 2.0
    z, n = y[cells.start], np.ones(len(s))
    for _ in range(2):
        s = np.hypot(np.maximum(s, _MIN_SCALE), tick)
        z, n, s = _refined(cells, y, s)
    return _centres(samples, cells, z, np.hypot(np.maximum(s, _MIN_SCALE), tick), n)


def _centres(samples: SortedSamples, cells: Cells, z: Floats, s: Floats, n: Floats) -> Centres:
    low = cells.start + (cells.widths - 1) // 2
    high = cells.start + cells.widths // 2
    median = (cells.y[low] + cells.y[high]) / 2.0
    count = np.round(cells.total(np.ones(len(cells.y))))
    # The sizes of a bin follow each other where the file is in their order.
    known = samples.repetitions
    of_size = float(np.median(samples.count))
    in_a_row = count if known.in_order else np.full(len(z), of_size)
    middle = float(np.median(in_a_row))
    return Centres(
        x=cells.x,
        z=z,
        s=s,
        n=n,
        median=median,
        count=count,
        start=cells.start,
        last=cells.last,
        wide=known.widening(known.at_most, in_a_row),
        alike=known.alike(known.at_most, middle, len(z)),
        sure_wide=known.widening(known.at_least, in_a_row),
        sure_alike=float(known.alike(known.at_least, middle, 2)[1]),
    )


def cells_of(samples: SortedSamples, ends: tuple[int, ...]) -> Cells:
    """Return the cells; no bin reaches over one of these sizes by index."""
    m = len(samples.sizes)
    if m <= MAX_CELLS:
        x = samples.sizes.astype(np.float64)
        return Cells(x, samples.y, samples.c, samples.start, np.arange(m), samples.group)
    reached = (np.cumsum(samples.entries) - 1) * MAX_CELLS // len(samples.x)
    last = np.union1d(np.flatnonzero(np.diff(reached)), [*ends, m - 1]).astype(np.int64)
    begin = np.append(0, last[:-1] + 1)
    start = samples.start[begin]
    widths = np.diff(np.append(start, len(samples.x)))
    cells = np.repeat(np.arange(len(start)), widths)
    x = np.add.reduceat(samples.x, start) / widths
    steep = _elasticity(x, np.array([np.median(part) for part in np.split(samples.y, start[1:])]))
    y = samples.y * (x[cells] / samples.x) ** steep[cells]
    order = np.lexsort((y, cells))
    return Cells(x, y[order], samples.c[order], start, last, samples.group[order])


def _elasticity(x: Floats, y: Floats) -> Floats:
    """d log y / d log x between neighbours, kept within 0 and 1."""
    log_y = np.log(np.maximum(y, max(float(y.max()) * 1e-15, 5e-324)))
    out: Floats = np.clip(np.gradient(log_y, np.log(x)), 0.0, 1.0)
    return out


def _pair_scales(cells: Cells, y: Floats) -> Floats | None:
    """Q_n of relative differences, (m,); None where no size has two times."""
    apart = [_differences(_some(part)) for part in np.split(y, cells.start[1:])]
    pairs = np.array([len(part) for part in apart])
    if not pairs.any():
        return None
    near = windows(pairs.astype(np.float64), _PAIRS)
    return np.array(
        [2.2219 * _first_quartile(np.concatenate(apart[low:high])) for low, high in near]
    )


def _first_quartile(value: Floats) -> float:
    """As numpy.quantile has it, which takes four times as long."""
    place = (len(value) - 1) * 0.25
    low = int(place)
    high, share = min(low + 1, len(value) - 1), place - low
    parted = np.partition(value, (low, high))
    below, above = float(parted[low]), float(parted[high])
    if share < 0.5:
        return below + (above - below) * share
    return above - (above - below) * (1.0 - share)


@lru_cache(maxsize=_LOOK)
def _pairs(count: int) -> tuple[Ints, Ints]:
    return np.triu_indices(count, 1)


def _differences(y: Floats) -> Floats:
    i, j = _pairs(len(y))
    out: Floats = 2.0 * np.abs(y[j] - y[i]) / (y[i] + y[j])
    return out


def _some(y: Floats) -> Floats:
    if len(y) <= _LOOK:
        return y
    out: Floats = y[np.linspace(0, len(y) - 1, _LOOK).astype(np.int64)]
    return out


def windows(have: Floats, wanted: int) -> list[tuple[int, int]]:
    """Return for each cell the smallest window around it that has so many, or all."""
    reached = np.append(0.0, np.cumsum(have))
    out = []
    for place in range(len(have)):
        low, high = place, place + 1
        while reached[high] - reached[low] < wanted and (low > 0 or high < len(have)):
            low, high = max(low - 1, 0), min(high + 1, len(have))
        out.append((low, high))
    return out


def _refined(cells: Cells, y: Floats, s: Floats) -> tuple[Floats, Floats, Floats]:
    """Centres by these scales, how many samples they rest on, and scales around them."""
    parts = np.split(y, cells.start[1:])
    z = np.array([_mode(_some(part), at) for part, at in zip(parts, s, strict=True)])
    group = cells.group
    for _ in range(8):
        w = tukey_weights((y / z[group] - 1.0) / (TUKEY * s[group]))
        total = cells.total(w)
        z = np.where(total > 0.0, cells.total(w * y) / np.maximum(total, 1e-300), z)
    off = y / z[group] - 1.0
    inside = (np.abs(off) < TUKEY * s[group]).astype(np.float64)
    n = cells.total(inside)
    squares, freedom = cells.total(inside * off**2), np.maximum(n - 1.0, 0.0)
    pooled = s.copy()
    for place, (low, high) in enumerate(windows(freedom, FREEDOM)):
        if freedom[low:high].sum() > 0.0:
            pooled[place] = np.sqrt(squares[low:high].sum() / freedom[low:high].sum())
    return z, np.maximum(n, 1.0), pooled


def _mode(y: Floats, s: float) -> float:
    """The time with most others within reach."""
    near = tukey_weights((y[None, :] - y[:, None]) / np.maximum(y[:, None] * (TUKEY * s), 5e-324))
    return float(y[int(np.argmax(near.sum(axis=1)))])


def _chord_scale(x: Floats, z: Floats) -> float:
    """Relative noise of single times, from how far each lies off the chord of its neighbours."""
    if len(x) < 4:
        return _UNKNOWN_SCALE
    off = chord_residuals(x, z)
    return max(_MIN_SCALE, 1.4826 * float(np.median(np.abs(off))))


def chord_residuals(x: Floats, z: Floats) -> Floats:
    """Return each inner time against the chord of its neighbours, (m - 2,), scaled to unit
    variance.
    """
    z = z / float(z.max())  # squares of times next to 0 would be 0
    share = (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
    off = z[1:-1] - ((1.0 - share) * z[:-2] + share * z[2:])
    size = np.hypot(np.hypot(z[1:-1], share * z[2:]), (1.0 - share) * z[:-2])
    out: Floats = off / np.maximum(size, 1e-300)
    return out
