"""Where one line ends and another one begins: fit ranges, found by a dynamic programme.

Source    regression with structural changes by dynamic programming (Bai & Perron 2003); their
          number by a penalised likelihood in which the deviation between sizes is estimated too
          (profile likelihood of a random effect). Our own choices: relative residuals, both
          parameters >= 0, and ranges that need not meet (protocol switches jump).
Notation  as in fitting/centres.py; t the relative deviations between sizes (m,),
          v = t^2 + e^2 relative variances of centres (m,); C[i, j] cost of one line over cells
          i..j, in units of -2 log likelihood; D[q][j] the least cost of cells 0..j in q + 1 ranges;
          cuts: the last cell of every range but the last one.
Cost      O(m^2) for C and for each number of ranges, m <= 200, for each t tried.
Exact     the programme finds the optimum over centres for every t tried; t steps by a factor.
          A range is dropped which is there for the sake of one size. The samples beside an
          end say at which size it lies.
Traps     sizes deviate on their own, and how far is not known before the ranges are: more ranges
          leave less deviation, and fewer more. -2 log L = sum log v + r^2 / v, least over t, weighs
          the two; neighbouring sizes bound t, or one line with large deviations would do for every
          stage. What a range must gain is set by simulation: with nothing but deviations between
          sizes, 6 to 150 sizes gain as much a range in 1 to 5 % of draws. Where successive times
          are alike, so are the errors of neighbouring sizes: within a range each cell is freed of
          what it shares with the one before. Prefix sums over sizes cancel across decades: rows of
          C are summed from their own first cell, around its size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fitting.between import CONSTANT, Shape, parts_of_scatter
from fitting.centres import Centres, chord_residuals
from fitting.end_pairs import PAIR, end_pairs
from fitting.line import MIN_SCALE, Floats, Line, solve
from fitting.robust import scaled, tukey_loss
from fitting.samples import SortedSamples

MIN_SIZES = 3  # in a range
_ASKED = 2  # cells on both sides of an end whose samples are asked
_BY_OTHERS = 0.5  # of what a range must gain it gains without its best size
_BEYOND = 3  # ranges more than allowed are tried, to see whether the limit binds
# -2 log L that a range must gain: this, and so much times the correlation of neighbours more
_PENALTY, _PENALTY_OF_ALIKE = 17.0, 12.5
_MIN_DEVIATION, _STEP = 0.005, 1.6  # the least deviation between sizes that is tried
_BY_ITSELF = 6.0  # standard errors from what neighbours say
_USUAL = 0.05  # a deviation that is tried whatever neighbours show


@dataclass(frozen=True, slots=True)
class FoundEnds:
    """The index of the last size of every range but the last one, and how they were found.

    `wanted` is the number of ranges that the data support when more than the maximum are allowed;
    `shape` is that of the deviation between sizes.
    """

    places: tuple[int, ...] = ()
    wanted: int = 1
    shape: Shape = CONSTANT


def find_ends(samples: SortedSamples, centres: Centres, maximum: int) -> FoundEnds:
    """Return the ends of ranges, at most `maximum` of these; none for one range."""
    m = len(centres.x)
    if maximum < 2 or m < 2 * MIN_SIZES or float(samples.y.max()) <= 0.0:
        return FoundEnds()
    penalty = _PENALTY + _PENALTY_OF_ALIKE * centres.sure_alike
    off = _neighbours_deviation(centres)
    errors = _errors(centres, off)
    found = _by_number(centres, errors, off, maximum + _BEYOND)
    cost = [one.cost + penalty * more for more, one in enumerate(found)]
    wanted = int(np.argmin(cost))
    best = int(np.argmin(cost[:maximum]))
    chosen = found[best]
    asked = _Cuts(samples, centres, errors, chosen)
    places = asked.to_sizes(asked.kept(list(chosen.cuts), penalty))
    if m < len(samples.sizes):  # a bin holds several sizes
        return FoundEnds(places, wanted + 1, chosen.shape)
    every = end_pairs(centres, np.maximum(centres.errors(), errors), places, chosen.shape)
    pairs = [end for end in every if end not in places]
    allowed = pairs[max(0, len(every) + 1 - maximum) :]  # the one of the greatest sizes before
    return FoundEnds(tuple(sorted((*places, *allowed))), wanted + 1 + len(pairs), chosen.shape)


@dataclass(frozen=True, slots=True)
class _Choice:
    """The best cuts for a number of ranges: -2 log L, and the deviation between sizes."""

    cost: float
    cuts: tuple[int, ...]
    shape: Shape


def _by_number(centres: Centres, errors: Floats, off: float, maximum: int) -> list[_Choice]:
    """For 1, 2, ... ranges the best choice over all deviations between sizes; `off` is that of
    neighbours.
    """
    best: list[_Choice] = []
    for part in parts_of_scatter(centres.s):
        # What neighbours show is the sum of both.
        constant_off = max(0.0, off**2 - (part * float(np.median(centres.s))) ** 2) ** 0.5
        for one in _deviations(max(_USUAL, constant_off)):
            shape = Shape(one, part)
            v = errors**2 + shape.at(centres.s) ** 2
            constant = float(np.log(v).sum())
            share = float(np.median(errors**2 / v))
            costs = _costs(centres, v, share * centres.sure_alike)
            for more, (cost, cuts) in enumerate(_cheapest(costs, maximum)):
                choice = _Choice(cost + constant, tuple(cuts), shape)
                if more == len(best):
                    best.append(choice)
                elif choice.cost < best[more].cost:
                    best[more] = choice
    return best


def _neighbours_deviation(centres: Centres) -> float:
    """The deviation between sizes that neighbours show.

    A centre off the chord of its two neighbours tells of deviations and not of ranges, but for the
    two centres beside an end: the median of all is little moved by those.
    """
    return 1.4826 * float(np.median(np.abs(chord_residuals(centres.x, centres.z))))


def _errors(centres: Centres, off: float) -> Floats:
    """Standard errors of centres; of one that lies off by itself, as much as it does.

    It agrees with no two neighbours: neither with the chord of the next ones, nor with the line
    through the two before it, nor with that through the two behind it.
    """
    x, z = centres.x / float(centres.x.max()), centres.z / float(centres.z.max())
    own = centres.sure_errors()
    e = np.maximum(own, max(off, _MIN_DEVIATION))
    m, places = len(x), np.arange(len(x))
    nearest, residual = np.full(m, np.inf), np.zeros(m)
    for one, other in ((-1, 1), (-2, -1), (1, 2)):
        here = places[(places + one >= 0) & (places + other < m)]
        i, j = here + one, here + other
        share = (x[here] - x[i]) / (x[j] - x[i])
        r = z[here] - (1.0 - share) * z[i] - share * z[j]
        sd = np.hypot(z[here] * e[here], np.hypot((1.0 - share) * z[i] * e[i], share * z[j] * e[j]))
        far = np.abs(r) / np.maximum(sd, 1e-300)
        less = far < nearest[here]
        nearest[here[less]] = far[less]
        residual[here[less]] = (np.abs(r) / np.maximum(z[here], 1e-300))[less]
    out: Floats = np.where(nearest > _BY_ITSELF, np.maximum(e, residual), own)
    return out


def _deviations(maximum: float) -> list[float]:
    """The deviations between sizes to try."""
    maximum = max(maximum, _MIN_DEVIATION)
    steps = int(np.log(maximum / _MIN_DEVIATION) / np.log(_STEP))
    return [*(_MIN_DEVIATION * _STEP**k for k in range(steps + 1)), maximum]


def _costs(centres: Centres, v: Floats, alike: float) -> Floats:
    """C[i, j], infinite for fewer than MIN_SIZES cells: one line with both parameters >= 0."""
    z = centres.z / float(centres.z.max())
    w = 1.0 / (z * z * v)
    x, m = centres.x / float(centres.x.max()), len(z)
    inside = np.triu(np.ones((m, m)))
    u = inside * np.sqrt(w[None, :] / w[:, None])
    t, q = u * (x[None, :] - x[:, None]), u * z[None, :]
    u, t, q = (_whitened(part, alike) for part in (u, t, q))
    W, WT, WTT, WZ, WTZ, WZZ = (
        np.cumsum(part, axis=1) for part in (u * u, u * t, t * t, u * q, t * q, q * q)
    )
    x0 = x[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = W * WTT - WT * WT
        b = np.where(spread > 1e-13 * W * WTT, (W * WTZ - WT * WZ) / spread, 0.0)
        b = np.maximum(b, 0.0)
        at = (WZ - b * WT) / W  # the line at the first size
        origin = at - b * x0 < 0.0
        through = (WTZ + x0 * WZ) / (WTT + 2.0 * x0 * WT + x0**2 * W)
        b, at = np.where(origin, through, b), np.where(origin, through * x0, at)
        squares = WZZ - 2.0 * (at * WZ + b * WTZ) + at * at * W + 2.0 * at * b * WT + b * b * WTT
    short = np.tril(np.ones((m, m), dtype=bool), MIN_SIZES - 2)
    return np.where(short, np.inf, np.maximum(squares, 0.0) * w[:, None])


def _whitened(columns: Floats, alike: float) -> Floats:
    """Row i from cell i on, freed of what each cell shares with the one before it: alike is the
    correlation of their errors.
    """
    if alike <= 0.0:
        return columns
    out = columns.copy()
    out[:, 1:] -= alike * columns[:, :-1]
    own = np.arange(len(columns))
    out /= (1.0 - alike**2) ** 0.5
    out[own, own] = columns[own, own]
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


class _Cuts:
    """Cuts under one deviation between sizes: which of them stand up, and where they lie."""

    def __init__(
        self, samples: SortedSamples, centres: Centres, errors: Floats, chosen: _Choice
    ) -> None:
        self._samples, self._centres = samples, centres
        self._x, self._z = (part / float(part.max()) for part in (centres.x, centres.z))
        self._deviation = chosen.shape.at(centres.s)
        self._w = 1.0 / (self._z**2 * (errors**2 + self._deviation**2))
        self._first = np.append(0, centres.last[:-1] + 1)

    def kept(self, cuts: list[int], penalty: float) -> list[int]:
        """Drop cuts, the weakest first, that are there for the sake of one size."""
        while cuts:
            weakest = min(range(len(cuts)), key=lambda q: self._gain(cuts, q))
            if self._gain(cuts, weakest) >= _BY_OTHERS * penalty:
                break
            cuts = cuts[:weakest] + cuts[weakest + 1 :]
        return cuts

    def to_sizes(self, cuts: list[int]) -> tuple[int, ...]:
        """Return the index of the last size on the left of every cut."""
        return tuple(self._exact(cuts, q) for q in range(len(cuts)))

    def _gain(self, cuts: list[int], q: int) -> float:
        """What the cut gains without its best cell."""
        low, high = self._around(cuts, q)
        both = self._loss(low, high)
        gain = both - np.append(self._loss(low, cuts[q]), self._loss(cuts[q] + 1, high))
        return float(gain.sum() - gain.max())

    def _around(self, cuts: list[int], q: int) -> tuple[int, int]:
        low = cuts[q - 1] + 1 if q else 0
        high = cuts[q + 1] if q + 1 < len(cuts) else len(self._x) - 1
        return low, high

    def _min_cells(self, is_at_an_end: bool) -> int:
        """The least number of cells of a range."""
        of_sizes = len(self._x) == len(self._samples.sizes)
        return PAIR if is_at_an_end and of_sizes else MIN_SIZES

    def _line(self, low: int, high: int) -> Line:
        here = slice(low, high + 1)
        return solve(self._x[here], self._z[here], self._w[here])

    def _loss(self, low: int, high: int) -> Floats:
        """The cost of one line at every cell of low..high."""
        here = slice(low, high + 1)
        off = self._z[here] - self._line(low, high).at(self._x[here])
        out: Floats = self._w[here] * off**2
        return out

    def _exact(self, cuts: list[int], q: int) -> int:
        """The samples of the cells beside the cut are asked under which of the two lines they lie.

        All samples of a cell share its deviation: they count as so many independent ones.
        """
        low, high = self._around(cuts, q)
        cells = slice(
            max(cuts[q] - _ASKED + 1, low + self._min_cells(low == 0) - 1),
            min(cuts[q] + _ASKED, high - self._min_cells(high == len(self._x) - 1) + 1) + 1,
        )
        first, last = int(self._first[cells.start]), int(self._centres.last[cells.stop - 1])
        if first >= last:
            return int(self._centres.last[cuts[q]])
        part = self._samples.between(first, last)
        ends = self._centres.last[cells] - first
        group = np.searchsorted(ends, part.group)
        s = np.maximum(self._centres.s[cells], MIN_SCALE)
        many, deviation = self._centres.count[cells], self._deviation[cells]
        total = s**2 + deviation**2
        alike = s**2 * self._centres.wide[cells] + many * deviation**2
        share = np.minimum(1.0, total / alike)
        c, scales = part.c * share[group], np.sqrt(total)[group]
        x = part.x / float(self._centres.x.max())
        y = part.y / float(self._centres.z.max())
        left, right = (
            np.add.reduceat(c * tukey_loss(scaled(x, y, line, scales)), part.start)
            for line in (self._line(low, cuts[q]), self._line(cuts[q] + 1, high))
        )
        cost = np.cumsum(left - right)[:-1]
        return first + int(np.argmin(cost))
