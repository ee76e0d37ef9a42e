"""Two sizes at an end of the measured ones that are a range of their own.

Source    prediction of new observations from a fitted line, their squares in the metric of their
          covariance over two by Fisher's distribution (Seber & Lee 2003, sec. 5.3); degrees of
          freedom of a sum of variances as in fitting/intervals.py.
Notation  by cell of fitting/centres.py; the pair are the two outermost cells, the rest those of the
          range that they would leave; g (2,) how far the pair lies off the line of the rest,
          relative to it, V (2, 2) what g may be by chance.
Cost      O(m).
Exact     no; how often a pair is invented is measured by simulation (tests).
Traps     three sizes that lie off could be told by how much better a line describes them; two
          always lie on one, unless it would need a cost below 0. So they have to be far off, both
          to one side, and near to a line with both parameters >= 0. How far sizes deviate is hardly
          known from a few: what is 5 standard errors where it is known well is more where it is
          not. One size alone may be a disturbance, and is no range.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.special import fdtrc

from fitting.between import Shape, between_size_deviation
from fitting.centres import Centres
from fitting.line import Floats, Line, solve

PAIR = 2  # sizes
_LEFT = 3  # sizes at least that the range beside a pair keeps
_FAR = 5.0  # standard errors of each of both
_RARE = 1e-3  # the probability of two sizes as far off by chance
_MIN_DEVIATION = 0.01  # relative deviation that every size is granted
_NEAR = 0.25  # of the squares off the line of the rest are those off their own one, at most
_OWN_ERRORS = 3.0
_UNSEEN = 0.03  # relative deviation that two sizes cannot show


def end_pairs(
    centres: Centres, errors: Floats, cuts: tuple[int, ...], shape: Shape
) -> tuple[int, ...]:
    """Return these cuts and those of pairs at either end, ascending, while a size is left to tell
    the deviation between sizes from.

    `cuts` are the last cells of all ranges but the last one; `errors` (m,) those of centres.
    """
    m = len(centres.x)
    for last in (True, False):
        if m >= 3 * (len(cuts) + 2) and _is_beside(centres, errors, cuts, shape, last=last):
            cuts = tuple(sorted((*cuts, m - PAIR - 1 if last else PAIR - 1)))
    return cuts


def is_pair(cells: slice, m: int) -> bool:
    """Return whether a range of these cells, of m in all, is a pair."""
    return bool(cells.stop - cells.start == PAIR < m)


def unseen_by_pair(centres: Centres, cells: slice) -> Floats:
    """Return the relative covariance, (k, k), of what a pair does not show of its own noise, the
    line going through both; 0 for other ranges.

    One time a size says nothing of how it scatters, and two sizes nothing of how they deviate.
    """
    k = cells.stop - cells.start
    if not is_pair(cells, len(centres.x)):
        return np.zeros((k, k))
    return np.diag(centres.errors()[cells] ** 2 + _UNSEEN**2)


def _is_beside(
    centres: Centres, errors: Floats, cuts: tuple[int, ...], shape: Shape, *, last: bool
) -> bool:
    """Whether the two last cells, or the two first ones, are a range beside those of the cuts."""
    x, z, m = centres.x / float(centres.x.max()), centres.z, len(centres.x)
    z = z / float(z.max())
    bounds = list(pairwise([0, *(cut + 1 for cut in cuts), m]))
    low, high = bounds[-1 if last else 0]
    if high - low < _LEFT + PAIR:
        return False
    rest = slice(low, high - PAIR) if last else slice(low + PAIR, high)
    pair = slice(m - PAIR, m) if last else slice(0, PAIR)
    bounds[-1 if last else 0] = (rest.start, rest.stop)
    h = shape.relative(centres.s)
    e = errors.copy()
    e[pair] = centres.errors()[pair]  # they lie off, which is asked here
    r, e = np.zeros(m), np.hypot(e, _MIN_DEVIATION)
    for start, end in bounds:
        part = slice(start, end)
        line = solve(x[part], z[part], 1.0 / (z[part] * e[part]) ** 2)
        r[part] = z[part] / line.at(x[part]) - 1.0
    kept = np.r_[slice(bounds[0][0], bounds[-1][1])]
    free = len(kept) - 3 * len(bounds) + 1
    t = between_size_deviation(r[kept], e[kept], h[kept], free)
    v = e**2 + (t * h) ** 2
    line = solve(x[rest], z[rest], 1.0 / (z[rest] ** 2 * v[rest]))
    g = np.log(z[pair] / line.at(x[pair]))
    V = _predicted(x, v, line, rest, pair)
    if g[0] * g[1] <= 0.0 or bool((np.abs(g) < _FAR * np.sqrt(np.diag(V))).any()):
        return False
    uncertain = float(np.max((t * h[pair]) ** 2 / v[pair]))  # what is known from few sizes
    freedom = max(1.0, free) / max(uncertain, 1e-3) ** 2
    if fdtrc(PAIR, freedom, float(g @ np.linalg.solve(V, g)) / PAIR) > _RARE:
        return False
    own = solve(x[pair], z[pair], 1.0 / (z[pair] ** 2 * v[pair]))
    off = np.log(z[pair] / own.at(x[pair]))
    is_within_errors = bool((np.abs(off) <= _OWN_ERRORS * np.sqrt(v[pair])).all())
    return is_within_errors or float(off @ off) <= _NEAR * float(g @ g)


def _predicted(x: Floats, v: Floats, line: Line, rest: slice, pair: slice) -> Floats:
    """The relative covariance, (2, 2), of new times at the pair, beside the line of the rest."""
    D = np.stack([np.ones(len(x)), x], axis=1) / line.at(x)[:, None]
    of_line = np.linalg.pinv((D[rest] / v[rest, None]).T @ D[rest], hermitian=True)
    out: Floats = D[pair] @ of_line @ D[pair].T + np.diag(v[pair])
    return out
