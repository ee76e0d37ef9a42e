"""Lower bounds on cuts whose stages have convex costs, from any flow through the grid.

Source    results sec. 1 and 2, carried over to convex costs; derived in docs/theory.md sec. 5, 7.
Notation  n stages, k fragments; p: (k-1, n), row i the distribution of the stage in which a path
          steps from fragment i to fragment i+1; F: (k-1, n) running sums of p; f: (k, n) the flow
          through each cell, f_ij = F_i(j) - F_{i+1}(j-1); phi_j: convex cost of stage j, given at
          vertices X_v; Phi_iv = sum_j f_ij phi_j(X_v); lambda: price of a byte, µs.
Cost      O(k V n) and a sort of k V slopes.
Exact     T(x) >= sum_i Phi_i(x_i) for every cut, because the longest path is no shorter than a mean
          of paths. Its least value over sizes that sum to B is at least
          lambda B + sum_i min_v (Phi_iv - lambda X_v) for EVERY lambda: minima of convex functions
          that are straight between vertices lie at vertices.
Traps     lambda B and the minima may be far larger than their sum. So the same number is written
          around a cut x that the fill gives: sum_i Phi_i(x_i) - lambda (sum x - B) - sum_i d_i,
          with d_i = max_v [Phi_i(x_i) - Phi_iv + lambda (X_v - x_i)] >= 0; each term of d_i takes
          its own rounding error with it, and all else is a sum of terms that are not negative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.exact.convex_problem import ConvexProblem
from solvers.exact.dual import repaired, step_weights, stretched

Floats = NDArray[np.float64]

Ints = NDArray[np.int64]

_EPS = float(np.finfo(np.float64).eps)
MAX_PRICED = 10_000_000  # k V
_NO_SLACK = 1e-9  # of the price of a byte: a step this close to it may be repeated or left out


def value_us(convex: ConvexProblem, p: Floats) -> float:
    """Return the proven lower bound on T*(k), k = len(p) + 1, for repaired p; rounding errors
    deducted.

    Beyond MAX_PRICED entries of Phi it is 0, which is below everything.
    """
    if (len(p) + 1) * len(convex.at) > MAX_PRICED:
        return 0.0
    Phi = flow_of(p) @ convex.costs
    return _priced(Phi, Phi, convex.at, convex.B, terms=convex.n)


def flow_of(p: Floats) -> Floats:
    """Return f (k, n): how much of the mixture of paths passes through each cell."""
    n = p.shape[1]
    running = np.minimum(np.cumsum(p, axis=1), 1.0)
    running[:, -1] = 1.0
    # Rounding in the sums may undo the order by a unit in the last place: restored here.
    running = np.minimum.accumulate(running, axis=0)
    here = np.vstack([np.ones((1, n)), running])
    ahead = np.zeros((len(p) + 1, n))
    ahead[:-1, 1:] = running[:, :-1]
    f: Floats = np.maximum(here - ahead, 0.0)
    return f


def true_value_us(convex: ConvexProblem, p: Floats) -> float:
    """Return the same bound with the costs themselves in place of their minorants: never less.

    T(x) >= sum_i sum_j f_ij t_j(x_i) holds for any costs, and at a price of a byte the least of
    each sum over j lies at an end of a range of some stage. It is above the bound of the minorants
    where stages would pay for ranges that no one size has.
    """
    f = flow_of(p)
    Phi = np.minimum(f @ convex.ends_before, f @ convex.ends_behind)
    hulls = _hulls(Phi, convex.ends_at)
    return _priced(Phi, hulls, convex.ends_at, convex.B, terms=convex.n)


def _priced(Phi: Floats, hulls: Floats, at: Floats, total: float, *, terms: int) -> float:
    """Least value of sum_i Phi_i(x_i) over sizes that sum to the total, from below.

    Phi (k, V) holds values at sizes `at`; between two of them the functions are straight or above
    the straight line. `hulls` holds their convex minorants, which choose the price and are not
    trusted; `terms` is how many products were added for each entry of Phi.
    """
    fill = _filled(hulls, at, total)
    away = at[None, :] - fill.x[:, None]
    gains = fill.values[:, None] - Phi + fill.price * away
    gains += 16.0 * _EPS * (np.abs(fill.price * away) + Phi + fill.values[:, None])
    gains[fill.whole, fill.index[fill.whole]] = 0.0  # the vertex itself: exactly no difference
    short = np.maximum(gains.max(axis=1), 0.0)
    missing = abs(total - float(fill.x.sum())) * abs(fill.price)
    error = (16.0 + 4.0 * terms) * _EPS * float(fill.values.sum() + short.sum())
    return float(fill.values.sum()) - float(short.sum()) - missing - error


def _hulls(Phi: Floats, at: Floats) -> Floats:
    """Each row's greatest convex minorant at the same sizes, by wrapping from the left."""
    k, vertices = Phi.shape
    slopes = np.diff(Phi, axis=1) / np.diff(at)
    if vertices < 3 or (np.diff(slopes, axis=1) >= 0.0).all():
        return Phi
    hull, rows = Phi.copy(), np.arange(k)
    start = np.zeros(k, dtype=np.int64)
    while (start < vertices - 1).any():
        rise = Phi - Phi[rows, start][:, None]
        run = at[None, :] - at[start][:, None]
        ahead = run > 0.0
        slope = np.where(ahead, rise / np.where(ahead, run, 1.0), np.inf)
        end = np.where(start < vertices - 1, np.argmin(slope, axis=1), start)
        inside = ahead & (at[None, :] < at[end][:, None])
        minimum = np.where(end > start, slope[rows, end], 0.0)
        low = Phi[rows, start][:, None] + minimum[:, None] * run
        hull = np.where(inside, np.minimum(low, Phi), hull)
        start = end
    return hull


@dataclass(frozen=True, slots=True)
class _Fill:
    """Sizes x (k,) that sum to the total, their values, the price of the last byte.

    `index` is the vertex at or below each size, `whole` whether the size is that vertex.
    """

    x: Floats
    values: Floats
    price: float
    index: Ints
    whole: NDArray[np.bool_]


def _filled(Phi: Floats, at: Floats, total: float) -> _Fill:
    """The cheapest bytes first, from the least sizes on; best where the functions are convex."""
    k, vertices = Phi.shape
    index, x = np.zeros(k, dtype=np.int64), np.full(k, at[0])
    values, price = Phi[:, 0].copy(), 0.0
    free = total - k * float(at[0])
    if vertices > 1:
        slopes = np.maximum.accumulate(np.diff(Phi, axis=1) / np.diff(at), axis=1)
        order = np.argsort(slopes, axis=None, kind="stable")
        widths = np.tile(np.diff(at), k)[order]
        taken = int(np.searchsorted(np.cumsum(widths), free, side="right"))
        np.add.at(index, order[:taken] // (vertices - 1), 1)
        last = order[min(taken, len(order) - 1)]
        price = float(slopes.ravel()[last])
        x, values = at[index], Phi[np.arange(k), index]
        i, rest = int(last) // (vertices - 1), free - float(widths[:taken].sum())
        if taken < len(order) and rest > 0.0:
            return _partly(_Fill(x, values, price, index, np.ones(k, dtype=bool)), Phi, at, i, rest)
    return _Fill(x, values, price, index, np.ones(k, dtype=bool))


def _partly(fill: _Fill, Phi: Floats, at: Floats, i: int, rest: float) -> _Fill:
    """Give fragment i the rest of the bytes: a size between two vertices."""
    low = int(fill.index[i])
    share = rest / float(at[low + 1] - at[low])
    fill.x[i] = at[low] + rest
    fill.values[i] = Phi[i, low] * (1.0 - share) + Phi[i, low + 1] * share
    fill.whole[i] = False
    return fill


def resampled(p: Floats, k: int) -> Floats:
    """Return a mixture of paths for k fragments that is like this one for another number of
    them.
    """
    rows = len(p)
    if k == 1 or rows == 0:
        return np.zeros((k - 1, p.shape[1])) if k == 1 else _straight(k, p.shape[1])
    place = np.linspace(0.0, rows - 1.0, k - 1)
    low = np.minimum(place.astype(np.int64), max(0, rows - 2))
    share = (place - low)[:, None]
    mixed = p[low] * (1.0 - share) + p[np.minimum(low + 1, rows - 1)] * share
    return repaired(mixed)


def _straight(k: int, n: int) -> Floats:
    """Steps through the stages one after the other: what a single fragment's path is not."""
    return np.full((k - 1, n), 1.0 / n)


@dataclass(frozen=True, slots=True)
class Steps:
    """Of each step between two fragments: its slope (k-1,) µs/byte, and its time at size 0, µs.

    Both are means over the stages by p; the slope of a cell is the mean of its pieces by the flow.
    """

    slope: Floats
    start_us: Floats
    price: float


def bound_above(convex: ConvexProblem, p: Floats, steps: Steps) -> float:
    """Return the proven lower bound on T*(k+1) from a dual for k (docs/theory.md sec. 5,
    stretch).
    """
    alpha = step_weights(steps.price - steps.slope)
    found = [] if alpha is None else [stretched(p, alpha)]
    slow = np.flatnonzero(steps.price - steps.slope <= _NO_SLACK * abs(steps.price))
    if len(slow):
        best = slow[int(np.argmax(steps.start_us[slow]))]
        found.append(np.insert(p, best, p[best], axis=0))
    return max(value_us(convex, repaired(q)) for q in found)


def bound_below(convex: ConvexProblem, p: Floats, steps: Steps) -> float:
    """Return the proven lower bound on T*(k-1) from a dual for k >= 3 (docs/theory.md sec. 5,
    squeeze).
    """
    alpha = step_weights(steps.price - steps.slope)
    found = []
    if alpha is not None:
        b = np.cumsum(alpha)[:-1, None]
        found.append(repaired(b * p[1:] + (1.0 - b) * p[:-1]))
    slow = np.flatnonzero(steps.price - steps.slope <= _NO_SLACK * abs(steps.price))
    if len(slow):
        found.append(np.delete(p, slow[int(np.argmin(steps.start_us[slow]))], axis=0))
    return max(value_us(convex, q) for q in found)
