"""How sure the end of a fit range is, and costs that must not fall there by chance.

Source    residual bootstrap of a change point (Efron & Tibshirani 1993, ch. 9), with sizes as the
          units; least squares under a linear constraint in the metric of the covariance.
Notation  by cell of fitting/centres.py, those of the two neighbouring ranges: x, z, f the fitted
          time, u = (z - f) / (f sqrt(v)); S[d, k] the squares of draw d with k cells on the left.
Cost      O(DRAWS m) an end.
Exact     no. The seed is fixed: the same measurements give the same interval.
Traps     the line of a range is known least at its ends: what a larger size costs less than a
          smaller one is often what both lines may be off by there. Residuals of a fit are smaller
          than the deviations: they are scaled up by the parameters that they lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from domain.fit import CONFIDENCE
from fitting.centres import Centres
from fitting.estimate import Estimate
from fitting.line import Floats
from fitting.pieces import Piece
from fitting.ranges import MIN_SIZES
from fitting.samples import Ints

DRAWS = 200
_SEED = 14
_MIN_SHARE = 1e-12  # of the greatest time
_SURE = 3.0  # standard errors of a fall that is taken for one
_PARAMETERS = 5  # of two ranges: two lines and their end


@dataclass(frozen=True, slots=True)
class _Cells:
    """Cells of two neighbouring ranges: sizes, fitted times, standardised residuals, variances."""

    x: Floats
    f: Floats
    u: Floats
    v: Floats
    left: int


def end_intervals(
    centres: Centres, pieces: tuple[Piece, ...], deviation: Floats, measured: Ints
) -> tuple[tuple[int, int], ...]:
    """Return the 95 % interval in bytes of every range's end but the last one's.

    `deviation` is that between sizes, by cell (m,); `measured` are all sizes, ascending, (n,): an
    end lies at or behind the last size of its left range and before the next size. An interval
    holds these two for every drawn end.
    """
    out = []
    for left, right in pairwise(pieces):
        cells = _cells(centres, left, right, deviation)
        drawn = _drawn_ends(cells) - cells.left  # cells that the end moves by
        tail = (1.0 - CONFIDENCE) / 2.0
        low, high = np.quantile(drawn, (tail, 1.0 - tail), method="closest_observation")
        cut = left.cells.stop - 1
        several = int(centres.last[cut]) - (int(centres.last[cut - 1]) if cut else -1) > 1
        out.append(
            (
                _first_end(centres, measured, cut + int(low), left, several=several),
                _last_end(centres, measured, cut + int(high), left, several=several),
            )
        )
    return tuple(out)


def _first_end(centres: Centres, sizes: Ints, cell: int, left: Piece, *, several: bool) -> int:
    """The last size of this cell, or of the one before where cells hold several sizes."""
    place = int(centres.last[max(0, cell - several)])
    return min(int(sizes[place]), left.to_bytes)


def _last_end(centres: Centres, sizes: Ints, cell: int, left: Piece, *, several: bool) -> int:
    """The byte before the size that follows this cell, or the next one."""
    place = int(centres.last[min(len(centres.last) - 2, cell + several)])
    return max(int(sizes[place + 1]) - 1, left.to_bytes)


def _cells(centres: Centres, left: Piece, right: Piece, deviation: Floats) -> _Cells:
    here = slice(left.cells.start, right.cells.stop)
    x, z = centres.x[here], centres.z[here]
    v = np.maximum(centres.errors()[here] ** 2 + deviation[here] ** 2, 1e-12)
    first = left.cells.stop - left.cells.start
    unit = max(float(z.max()), 5e-324)  # squares of times next to 0 would be 0
    f = np.maximum(np.concatenate([left.at(x[:first]), right.at(x[first:])]) / unit, _MIN_SHARE)
    z = z / unit
    u = np.clip((z - f) / (f * np.sqrt(v)), -3.0, 3.0)
    return _Cells(x, f, u, v, first)


def _drawn_ends(cells: _Cells) -> Floats:
    """How many cells the left range has, (DRAWS,), where residuals are drawn anew."""
    m = len(cells.x)
    random = np.random.default_rng(_SEED)
    more = (m / max(1.0, m - _PARAMETERS)) ** 0.5
    u = cells.u[random.integers(0, m, (DRAWS, m))] * random.choice((-1.0, 1.0), (DRAWS, m)) * more
    z = cells.f * (1.0 + u * np.sqrt(cells.v))
    x, w = cells.x / cells.x[-1], 1.0 / (cells.f**2 * cells.v)
    w = w / float(w.max())
    before = _squares(x, z, w)
    behind = _squares(x[::-1], z[:, ::-1], w[::-1])[:, ::-1]
    min_cells = min(MIN_SIZES, cells.left, m - cells.left)  # a pair is a range at an end
    places = np.arange(min_cells, m - min_cells + 1)
    S = before[:, places - 1] + behind[:, places]
    out: Floats = places[np.argmin(S, axis=1)].astype(np.float64)
    return out


def _squares(x: Floats, z: Floats, w: Floats) -> Floats:
    """Weighted squares of the free line through the first 1, 2, ... cells of every draw."""
    t = x - x[0]
    W, WT, WTT = np.cumsum(w), np.cumsum(w * t), np.cumsum(w * t * t)
    WZ, WTZ, WZZ = (np.cumsum(w * part, axis=1) for part in (z, t * z, z * z))
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = W * WTT - WT * WT
        b = np.where(spread > 1e-13 * W * WTT, (W * WTZ - WT * WZ) / spread, 0.0)
        a = (WZ - b * WT) / W
    out: Floats = np.maximum(WZZ - a * WZ - b * WTZ, 0.0)
    return out


def without_falls(found: list[Estimate], last: list[int]) -> list[Estimate]:
    """Return lines whose costs fall behind a range's end only where that is supported.

    `last` are the last sizes of all ranges but the last one. Elsewhere the two lines meet there:
    theta - V c (c' theta) / (c' V c) is the nearest pair of lines with c' theta = 0, in the metric
    of their covariance V (Lagrange's condition); what would become negative is held at 0.
    """
    out = list(found)
    for place, size in enumerate(last):
        left, right = out[place], out[place + 1]
        theta = np.array([left.a, left.b, right.a, right.b])
        c = np.array([-1.0, -float(size), 1.0, float(size)])
        V = np.zeros((4, 4))
        V[:2, :2], V[2:, 2:] = left.covariance(), right.covariance()
        fall, variance = -float(c @ theta), float(c @ V @ c)
        if fall <= 0.0 or variance <= 0.0 or fall > _SURE * variance**0.5:
            continue
        theta = _met(theta, c, V)
        out[place] = left.moved_to(float(theta[0]), float(theta[1]))
        out[place + 1] = right.moved_to(float(theta[2]), float(theta[3]))
    return out


def _met(theta: Floats, c: Floats, V: Floats) -> Floats:
    free = np.ones(4, dtype=bool)
    for _ in range(4):
        part = np.where(np.outer(free, free), V, 0.0)
        along = part @ c
        moved = theta - along * float(c @ theta) / max(float(c @ along), 1e-300)
        if bool((moved >= 0.0).all()):
            return moved
        theta = np.where(moved < 0.0, 0.0, theta)
        free &= moved >= 0.0
    return theta
