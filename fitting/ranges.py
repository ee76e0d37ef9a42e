"""Where one line ends and another one begins: fit ranges, found by a dynamic programme.

Source    regression with structural changes by dynamic programming (Bai & Perron 2003), their
          number by Schwarz's criterion. Our own choices: relative residuals, bounded costs, both
          parameters >= 0, and ranges that need not meet (protocol switches jump).
Notation  as in fitting/centres.py; v relative variances of centres (m,); C[i, j] cost of one line
          over cells i..j, in units of -2 log likelihood; D[q][j] the least cost of cells 0..j in
          q + 1 ranges; cuts: the last cell of every range but the last one.
Cost      O(m^2) for C and for each number of ranges, m <= 200; then some robust lines.
Exact     the programme finds the optimum over centres. Ranges then have to stand up in the samples
          themselves: ends are moved where these say so, and a range is dropped without which they
          are described as well, or which is there for the sake of one size.
Traps     no stage is a line to the last digit: MODEL of deviation is granted to every centre, or
          enough repetitions would make a range of every wiggle. Each range costs three parameters
          (its line and its end). Prefix sums over sizes cancel across decades: rows of C are summed
          from their own first cell, around its size.
"""

from __future__ import annotations

import numpy as np

from fitting.centres import Centres
from fitting.line import MIN_SCALE, Floats, Line
from fitting.robust import robust_line, scaled, tukey_loss
from fitting.samples import SortedSamples

MIN_SIZES = 3  # in a range
MODEL = 0.01
_PARAMETERS = 3
_BY_OTHERS = 0.5  # of what a range must gain it gains without its best size
_MOVE = 2  # cells an end may move when samples are asked


def find_ends(samples: SortedSamples, centres: Centres, maximum: int) -> tuple[int, ...]:
    """Return the index of the last size of every range but the last one; () for one range."""
    if maximum < 2 or len(centres.x) < 2 * MIN_SIZES or float(samples.y.max()) <= 0.0:
        return ()
    count = max(float(samples.c.sum()), 2.0 * len(centres.x))
    penalty = _PARAMETERS * float(np.log(count))
    found = _cheapest(_costs(centres), maximum)
    best = min(range(len(found)), key=lambda more: found[more][0] + penalty * more)
    return _Evaluator(samples, centres, penalty).settle(found[best][1])


def _costs(centres: Centres) -> Floats:
    """C[i, j], infinite for fewer than MIN_SIZES cells."""
    z = centres.z / float(centres.z.max())
    w = 1.0 / (z * z * (centres.errors() ** 2 + MODEL**2))
    x, m = centres.x / float(centres.x.max()), len(z)
    out = np.full((m, m), np.inf)
    for i in range(m - MIN_SIZES + 1):
        out[i, i + MIN_SIZES - 1 :] = _costs_from(x[i:], z[i:], w[i:])[MIN_SIZES - 1 :]
    return out


def _costs_from(x: Floats, z: Floats, w: Floats) -> Floats:
    """The cost of one line with both parameters >= 0 over the first 1, 2, ... of these cells."""
    unit, t = float(w[0]), x - x[0]
    w = w / unit
    W, WT, WTT, WZ, WTZ, WZZ = (
        np.cumsum(w * part) for part in (np.ones(len(x)), t, t * t, z, t * z, z * z)
    )
    spread = W * WTT - WT * WT
    with np.errstate(divide="ignore", invalid="ignore"):
        b = np.where(spread > 1e-13 * W * WTT, (W * WTZ - WT * WZ) / spread, 0.0)
        b = np.maximum(b, 0.0)
        at = (WZ - b * WT) / W  # the line at the first size
        origin = at - b * x[0] < 0.0
        through = (WTZ + x[0] * WZ) / (WTT + 2.0 * x[0] * WT + x[0] ** 2 * W)
    b, at = np.where(origin, through, b), np.where(origin, through * x[0], at)
    squares = WZZ - 2.0 * (at * WZ + b * WTZ) + at * at * W + 2.0 * at * b * WT + b * b * WTT
    out: Floats = np.maximum(squares, 0.0) * unit
    return out


def _cheapest(C: Floats, maximum: int) -> list[tuple[float, list[int]]]:
    """For 1, 2, ... ranges the least cost and the cuts."""
    D, back = [C[0]], list[np.ndarray[tuple[int], np.dtype[np.int64]]]()
    out = [(float(C[0, -1]), list[int]())]
    for more in range(1, maximum):
        through = D[-1][:-1, None] + C[1:, :]
        back.append(np.argmin(through, axis=0))
        D.append(np.min(through, axis=0))
        if not np.isfinite(D[-1][-1]):
            break
        cuts, at = [], len(C) - 1
        for step in range(more - 1, -1, -1):
            at = int(back[step][at])
            cuts.append(at)
        out.append((float(D[-1][-1]), cuts[::-1]))
    return out


class _Evaluator:
    """Asks the samples themselves, under scales that no line had a part in."""

    def __init__(self, samples: SortedSamples, centres: Centres, penalty: float) -> None:
        self._samples, self._centres, self._penalty = samples, centres, penalty
        first = np.append(0, centres.last[:-1] + 1)
        self._first = [int(place) for place in first]
        self._last = [int(place) for place in centres.last]
        self._begin = samples.start[first]
        widths = np.diff(np.append(self._begin, len(samples.x)))
        self._scales = np.repeat(np.hypot(np.maximum(centres.s, MIN_SCALE), MODEL), widths)
        self._known: dict[tuple[int, int], tuple[Floats, Line]] = {}

    def settle(self, cuts: list[int]) -> tuple[int, ...]:
        """Move and drop cuts until nothing changes; then to sizes."""
        while cuts:
            moved = self._moved(cuts)
            weakest = min(range(len(moved)), key=lambda q: self._gain(moved, q))
            if self._gain(moved, weakest) < 1.0:
                cuts = moved[:weakest] + moved[weakest + 1 :]
            elif moved == cuts:
                break
            else:
                cuts = moved
        return tuple(self._exact(cuts, q) for q in range(len(cuts)))

    def _moved(self, cuts: list[int]) -> list[int]:
        cuts = list(cuts)
        for q, cut in enumerate(cuts):
            low, high = self._around(cuts, q)
            minimum, maximum = low + MIN_SIZES - 1, high - MIN_SIZES
            tries = range(max(minimum, cut - _MOVE), min(maximum, cut + _MOVE) + 1)
            here = self._split(low, cut, high)
            best = min(tries, key=lambda at: (self._split(low, at, high), at))
            if self._split(low, best, high) < here - 1e-6 * (1.0 + here):
                cuts[q] = best
        return cuts

    def _gain(self, cuts: list[int], q: int) -> float:
        """What the cut gains over what it must gain: in all, and without its best cell."""
        low, high = self._around(cuts, q)
        split = np.append(self._cost(low, cuts[q])[0], self._cost(cuts[q] + 1, high)[0])
        gain = self._cost(low, high)[0] - split
        total = float(gain.sum())
        return min(total, (total - float(gain.max())) / _BY_OTHERS) / self._penalty

    def _around(self, cuts: list[int], q: int) -> tuple[int, int]:
        low = cuts[q - 1] + 1 if q else 0
        high = cuts[q + 1] if q + 1 < len(cuts) else len(self._last) - 1
        return low, high

    def _split(self, low: int, cut: int, high: int) -> float:
        return float(self._cost(low, cut)[0].sum() + self._cost(cut + 1, high)[0].sum())

    def _cost(self, low: int, high: int) -> tuple[Floats, Line]:
        """The cost of one line at every cell of low..high, and the line."""
        if (low, high) not in self._known:
            self._known[low, high] = self._fitted(low, high)
        return self._known[low, high]

    def _fitted(self, low: int, high: int) -> tuple[Floats, Line]:
        part = self._samples.between(self._first[low], self._last[high])
        begin = int(self._samples.start[self._first[low]])
        scales = self._scales[begin : begin + len(part.x)]
        x, y = part.x / float(self._samples.x.max()), part.y / float(self._samples.y.max())
        line, _, _ = robust_line(part, x, y, scales, 0.0)
        loss = 2.0 * part.c * tukey_loss(scaled(x, y, line, scales))
        return np.add.reduceat(loss, self._begin[low : high + 1] - begin), line

    def _exact(self, cuts: list[int], q: int) -> int:
        """The last size on the left line, where cells hold several sizes."""
        low, high = self._around(cuts, q)
        first, last = self._first[cuts[q]], self._last[cuts[q] + 1]
        if last - first == 1:
            return first
        part = self._samples.between(first, last)
        begin = int(self._samples.start[first])
        scales = self._scales[begin : begin + len(part.x)]
        x, y = part.x / float(self._samples.x.max()), part.y / float(self._samples.y.max())
        lines = self._cost(low, cuts[q])[1], self._cost(cuts[q] + 1, high)[1]
        left, right = (
            np.add.reduceat(part.c * tukey_loss(scaled(x, y, line, scales)), part.start)
            for line in lines
        )
        cost = np.cumsum(left - right)[:-1]
        return first + int(np.argmin(cost))
