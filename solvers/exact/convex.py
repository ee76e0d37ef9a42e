"""The relaxation of a problem whose stages have ranges: convex costs, one minorant a stage.

Source    theory sec. 1 (stages with ranges): a bound may use each stage's greatest convex minorant
          over the admitted sizes, and nothing above it.
Notation  n stages; phi_j: minorant of stage j, µs, straight between the vertices in `at`; V: number
          of vertices of all stages together; B: message; m, M: least and greatest size, bytes.
Cost      O(V n) to set up; O(k n) to evaluate a cut.
Exact     every whole-byte cut costs at least what this problem says of it.
Traps     costs are means of two vertices, never lines continued beyond their ends: a line's value
          far from its own ends is a difference of large numbers (domain/pipeline.py).

The class is that of LineProblem: k real sizes in [m, M] that sum to B, for every admitted k.

Lower bounds on cuts whose stages have convex costs, from any flow through the grid.

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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.pipeline import Stage
from domain.problem import Problem
from solvers.exact.dual import repaired, step_weights, stretched
from solvers.kernels import exit_times_us, range_arrays

Floats = NDArray[np.float64]

_MARGIN = 1e-9  # relative, of a latency or a cost of a byte that decides what can win
_ROUNDING = 1e-12  # relative difference of a cost and its minorant that is rounding alone


@dataclass(frozen=True, slots=True)
class ConvexProblem:
    """`hulls`: vertices (bytes, µs) a stage; `at` (V,) bytes and `costs` (n, V) µs: all of them.

    `ends_at` (W,): the ends of all ranges within the limits, and the limits; the costs there, µs,
    of the range that ends (`ends_before`) and as the limit of the one behind it (`ends_behind`).
    """

    stages: tuple[Stage, ...]
    B: float
    m: float
    M: float
    k_min: int
    k_max: int
    hulls: tuple[Floats, ...]
    at: Floats
    costs: Floats
    ends_at: Floats
    ends_before: Floats
    ends_behind: Floats

    @classmethod
    def of(cls, problem: Problem) -> ConvexProblem:
        """Return the relaxation of any problem. Raises Infeasible where no cut satisfies the
        limits.
        """
        counts = problem.count_range()
        return cls.over(
            problem.pipeline.stages,
            message_bytes=float(problem.message_bytes),
            sizes=(float(problem.smallest_fragment_bytes), float(problem.largest_fragment_bytes)),
            counts=(counts.minimum, counts.maximum),
        )

    @classmethod
    def over(
        cls,
        stages: Sequence[Stage],
        *,
        message_bytes: float,
        sizes: tuple[float, float],
        counts: tuple[int, int],
    ) -> ConvexProblem:
        """Return the relaxation for sizes and counts (least, greatest) that are given."""
        hulls = tuple(np.array(stage.minorant_points(*sizes)) for stage in stages)
        at = np.unique(np.concatenate([hull[:, 0] for hull in hulls]))
        costs = np.stack([_between(hull[:, 0], hull[:, 1][None, :], at)[0] for hull in hulls])
        ends = _ends(stages, *sizes)
        return cls(tuple(stages), message_bytes, *sizes, *counts, hulls, at, costs, *ends)

    @property
    def n(self) -> int:
        """The number of stages."""
        return len(self.hulls)

    @property
    def pieces(self) -> int:
        """How many straight pieces the minorants have, all together."""
        return sum(max(1, len(hull) - 1) for hull in self.hulls)

    @property
    def is_rising(self) -> bool:
        """Whether no minorant falls with the size: then the optimum is convex in k."""
        return bool((np.diff(self.costs, axis=1) >= 0.0).all())

    @property
    def is_tight(self) -> bool:
        """Whether the minorants are the costs: every stage is convex over the admitted sizes."""
        phi = self.times_us(self.ends_at).T * (1.0 + _ROUNDING)
        return bool((self.ends_before <= phi).all() and (self.ends_behind <= phi).all())

    def narrowed(self, known_us: float) -> ConvexProblem:
        """Return it without the sizes that no cut below this latency (µs, no delay) can have.

        A path that crosses the stages a..c with a fragment of x bytes meets the bytes before it in
        stage a and those behind it in stage c: T >= sum_{j=a..c} t_j(x) + min(r_a, r_c) (B - x),
        r_j the least cost of a byte in stage j. Sizes beyond the greatest x for which this does not
        exceed the latency are left out, and with them the counts that need them.
        """
        M = min(self.M, np.ceil(self._max_below(known_us * (1.0 + _MARGIN))))
        k_min = max(self.k_min, int(np.ceil(self.B / M))) if M >= 1.0 else self.k_max + 1
        if M >= self.M or self.m > M or k_min > self.k_max:
            return self
        counts, sizes = (k_min, self.k_max), (self.m, float(M))
        return ConvexProblem.over(self.stages, message_bytes=self.B, sizes=sizes, counts=counts)

    def _max_below(self, known_us: float) -> float:
        """The greatest size x at which no path of those above is longer than this."""
        at, rates = self.ends_at, self.byte_costs()
        if len(at) < 2:
            return float(at[-1])
        sums = [np.vstack([np.zeros(len(at)), np.cumsum(side, axis=0)]) for side in self._sides]
        maximum = self.M
        for a in range(self.n):
            rest = np.minimum(rates[a], rates[a:])[:, None] * (self.B - at)[None, :]
            ends, starts = (side[a + 1 :] - side[a] + rest for side in sums)
            maximum = min(maximum, float(_last_below(at, starts, ends, known_us).min()))
        return maximum

    @property
    def _sides(self) -> tuple[Floats, Floats]:
        return self.ends_before, self.ends_behind

    def byte_costs(self) -> Floats:
        """Return the least cost of a byte, µs, in each stage: at the end of some range."""
        sizes = np.where(self.ends_at > 0.0, self.ends_at, np.inf)
        costs: Floats = np.minimum(*(side / sizes for side in self._sides)).min(axis=1)
        return costs * (1.0 - _MARGIN)

    def without_limits(self) -> ConvexProblem:
        """Return the same message and stages, sizes from 0 to the message."""
        return ConvexProblem.over(
            self.stages,
            message_bytes=self.B,
            sizes=(0.0, self.B),
            counts=(self.k_min, self.k_max),
        )

    def free_bytes(self, k: int) -> float:
        """Return what is left of the message when each of k fragments has its least size."""
        return max(0.0, self.B - k * self.m)

    def times_us(self, x: Floats) -> Floats:
        """Return phi_j(x_i) as (k, n) for sizes x (k,) within the limits."""
        times: Floats = _between(self.at, self.costs, x).T
        return times

    def latency_us(self, x: Floats) -> float:
        """Return the latency of real sizes x (k,) with the minorants for costs, without the
        delay.
        """
        return float(exit_times_us(self.times_us(x))[-1, -1])


def _last_below(at: Floats, starts: Floats, ends: Floats, limit: float) -> Floats:
    """The greatest size with a value within the limit, for each row of lines between the ends.

    Between at[w-1] and at[w] a row runs straight from starts[:, w-1] to ends[:, w].
    """
    first, last = starts[:, :-1], ends[:, 1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip((limit - first) / (last - first), 0.0, 1.0)
    inner = at[:-1] + np.where(np.isfinite(share), share, 1.0) * np.diff(at)
    within = np.where(last <= limit, at[1:], np.where(first <= limit, inner, at[0]))
    maximum: Floats = within.max(axis=1)
    return maximum


def _ends(stages: Sequence[Stage], m: float, M: float) -> tuple[Floats, Floats, Floats]:
    """Sizes at the ends of ranges, and the costs (n, W) on their two sides."""
    inner = {part.up_to_bytes for stage in stages for part in stage.ranges}
    at = np.array(
        sorted({m, M} | {float(end) for end in inner if end is not None and m <= end <= M})
    )
    before, behind = np.empty((len(stages), len(at))), np.empty((len(stages), len(at)))
    for j, stage in enumerate(stages):
        ends, overhead, cost = range_arrays(stage)
        here = np.searchsorted(ends, at, side="left")  # an end belongs to the range that it ends
        above = np.searchsorted(ends, at, side="right")
        before[j] = overhead[here] + cost[here] * at / 1000.0
        behind[j] = overhead[above] + cost[above] * at / 1000.0
    behind[:, -1] = before[:, -1]
    return at, before, behind


def _between(at: Floats, costs: Floats, x: Floats) -> Floats:
    """Costs (n, len(x)) at sizes x, each the mean of two vertices; nothing cancels."""
    if len(at) == 1:
        return np.repeat(costs, len(x), axis=1)
    x = np.clip(x, at[0], at[-1])
    right = np.clip(np.searchsorted(at, x, side="left"), 1, len(at) - 1)
    start, end = at[right - 1], at[right]
    share, rest = (x - start) / (end - start), (end - x) / (end - start)
    values: Floats = costs[:, right - 1] * rest + costs[:, right] * share
    return values


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


# ---- neighbouring counts ------------------------------------------------------------------------


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
