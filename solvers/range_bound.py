"""Lower bounds over every structure of one count, at every message size of a stretch.

Source    own derivation from results sec. 1 and 5; docs/theory.md sec. 7.
Notation  k fragments; region r and structure as in range_regions.py; f: (k, n) the flow of a dual
          p; a, s: (k, R) cost f.g and slope f.G of a fragment in a region; lambda: price of a byte;
          a cut plane c is (p, lambda); A_c(i, r): least of a + (s - lambda) x over the sizes x of
          region r; B in [b1, b2]: message; t: what a latency must reach, straight in B.
Cost      O(S C) for S partial structures and C planes, fragment by fragment; a linear program for
          each plane that is added.
Exact     for ANY dual, any price and any B: every cut of structure (r_1..r_k) has a latency of at
          least lambda_c B + sum_i A_c(i, r_i), because the mean of paths is priced at the costs
          themselves. So one plane speaks of all structures and all sizes; a structure is excluded
          where one plane reaches t at both ends of the stretch, all three being straight in B.
Traps     lambda B and the A are far larger than their sum: what rounding may take is deducted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from solvers.convex_dual import flow_of
from solvers.range_regions import Leaf, Regions, Structure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_EPS = float(np.finfo(np.float64).eps)
_MOST_PLANES = 192  # of one count; the oldest that were added are left out
_MOST_ROWS = 6_000  # partial structures that are followed; the others are bounded as they are
_RESTARTS = 12  # planes that are added where more would have to be followed


@dataclass(frozen=True, slots=True)
class Span:
    """Message sizes first..last, the latencies there (µs, delay included), and the tolerance."""

    first: int
    last: int
    first_us: float
    last_us: float
    delay_us: float
    tolerance: float

    def targets(self) -> tuple[float, float]:
        """What a bound without delay must reach at both ends."""
        share = 1.0 / (1.0 + self.tolerance)
        return self.first_us * share - self.delay_us, self.last_us * share - self.delay_us

    def at_us(self, size: float) -> float:
        """The chord of the two latencies."""
        if self.last == self.first:
            return self.first_us
        share = (size - self.first) / (self.last - self.first)
        return self.first_us * (1.0 - share) + self.last_us * share

    def ratio(self, first_us: Floats, last_us: Floats) -> Floats:
        """The greater quotient of latency and bound (without delay) at the two ends."""
        with np.errstate(divide="ignore", invalid="ignore"):
            quotients = [
                np.where(low + self.delay_us > 0.0, latency / (low + self.delay_us), np.inf)
                for latency, low in ((self.first_us, first_us), (self.last_us, last_us))
            ]
        out: Floats = np.maximum(*quotients)
        return out


@dataclass(frozen=True, slots=True)
class Found:
    """The proven quotient of a span's chord and the bound, and structures that beat the chord."""

    ratio: float
    better: Structure | None = None


@dataclass(slots=True)
class CountPlanes:
    """The cut planes of one count, and what they exclude."""

    regions: Regions
    k: int
    a: Floats = field(init=False)
    s: Floats = field(init=False)
    price: Floats = field(init=False)
    seeds: int = 0

    def __post_init__(self) -> None:
        k, (R, n) = self.k, self.regions.g.shape
        self.a, self.s, self.price = np.zeros((0, k, R)), np.zeros((0, k, R)), np.zeros(0)
        for stage in range(n if k > 1 else 1):
            p = np.zeros((k - 1, n))
            p[:, stage] = 1.0
            slopes = self.regions.G.sum(axis=1) if k == 1 else self.regions.G[:, stage]
            for price in np.unique(slopes):
                self.add(p, float(price))
        self.seeds = len(self.price)

    def add(self, p: Floats, price: float) -> None:
        """One more plane."""
        f = flow_of(p)
        a, s = f @ self.regions.g.T, f @ self.regions.G.T
        if len(self.price) - self.seeds >= _MOST_PLANES and self.seeds:
            kept = np.delete(np.arange(len(self.price)), self.seeds)
            self.a, self.s, self.price = self.a[kept], self.s[kept], self.price[kept]
        self.a = np.concatenate([self.a, a[None]])
        self.s = np.concatenate([self.s, s[None]])
        self.price = np.append(self.price, price)

    def add_leaf(self, leaf: Leaf, structure: Structure, box: tuple[Floats, Floats]) -> None:
        """The plane of a structure's own dual: priced where its cheapest bytes fill the message."""
        f, at = flow_of(leaf.p), np.arange(self.k)
        s = (f @ self.regions.G.T)[at, np.array(structure)]
        low, high = box
        order = np.argsort(s, kind="stable")
        filled = np.cumsum((high - low)[order])
        free = float(leaf.x.sum() - low.sum())
        last = order[min(int(np.searchsorted(filled, free, side="left")), self.k - 1)]
        self.add(leaf.p, float(s[last]))

    def table(self, least: float, greatest: float) -> tuple[Floats, Floats]:
        """A (C, k, R) for sizes in [least, greatest], infinite where a region has none; errors."""
        low = np.maximum(self.regions.low, least)
        high = np.minimum(self.regions.high, greatest)
        slope = self.s - self.price[:, None, None]
        A = self.a + np.minimum(slope * low, slope * high)
        size = np.abs(self.a).max(axis=2).sum(axis=1)
        steepest = (self.s.max(axis=2) + np.abs(self.price)[:, None]).sum(axis=1)
        error = 16.0 * _EPS * (size + (steepest + np.abs(self.price)) * greatest)
        A = np.where(low <= high, A, np.inf)
        return A, error


@dataclass(slots=True)
class Rows:
    """Structures that no plane excludes: regions (S, k), and their values W (S, C) above tau."""

    paths: Ints
    W: Floats


class SpanBound:
    """The bound of one count over one span."""

    def __init__(
        self, planes: CountPlanes, span: Span, sizes: tuple[float, float], *, most_solves: int
    ) -> None:
        self._planes, self._span, self._sizes = planes, span, sizes
        self._left = most_solves
        self._regions = planes.regions
        self._low = np.maximum(self._regions.low, sizes[0])
        self._high = np.minimum(self._regions.high, sizes[1])
        self._dropped = 0.0
        self._prepare()

    def _prepare(self) -> None:
        self._A, error = self._planes.table(*self._sizes)
        price, (one, other) = self._planes.price, self._span.targets()
        tau = np.maximum(one - price * self._span.first, other - price * self._span.last)
        self._tau = tau + error

    def run(self, solve: Callable[[Structure, int], Leaf | None], *, fully: bool) -> Found:
        """The quotient over all structures; `fully` also where it is above the tolerance.

        `solve` gives the optimum of a structure at a message size. Ends early with a structure
        whose real sizes are below the chord by more than the tolerance.
        """
        rows = self._rows()
        for _ in range(_RESTARTS):
            if rows is not None or self._left <= 0:
                break
            self._left -= 1
            better = self._divide(self._guess(), solve)
            if better is not None:
                return Found(np.inf, better)
            rows = self._rows()
        if rows is None:
            rows = self._rows(truncated=True) or Rows(np.zeros((0, 0), dtype=np.int64), self._W0())
        return self._cleared(rows, solve, fully=fully)

    def _cleared(
        self, rows: Rows, solve: Callable[[Structure, int], Leaf | None], *, fully: bool
    ) -> Found:
        """Planes for what is left, the least bounded first."""
        worst = self._dropped
        while len(rows.paths) and self._left > 0:
            self._left -= 1
            at = int(np.argmin(rows.W.max(axis=1)))
            structure = tuple(int(r) for r in rows.paths[at])
            better = self._divide(structure, solve)
            if better is not None:
                return Found(np.inf, better)
            self._widen(rows)
            kept = rows.W.max(axis=1) < 0.0
            if kept[at]:  # its own plane does not exclude it: no plane does over the whole span
                worst = max(worst, self._ratio(rows.W[at : at + 1]))
                kept[at] = False
                if not fully:
                    return Found(worst)
            rows.paths, rows.W = rows.paths[kept], rows.W[kept]
        if len(rows.paths):
            worst = max(worst, self._ratio(rows.W))
        return Found(max(worst, 1.0 + self._span.tolerance))

    def _divide(
        self, structure: Structure, solve: Callable[[Structure, int], Leaf | None]
    ) -> Structure | None:
        """Add the plane of this structure; the structure itself where it beats the chord."""
        r, span = np.array(structure), self._span
        low, high = self._low[r], self._high[r]
        middle = (span.first + span.last) // 2
        size = int(min(max(middle, np.ceil(low.sum())), np.floor(high.sum())))
        leaf = solve(structure, size) if span.first <= size <= span.last else None
        if leaf is None:
            return None
        self._planes.add_leaf(leaf, structure, (low, np.minimum(high, size)))
        self._prepare()
        reached = (leaf.latency_us + span.delay_us) * (1.0 + span.tolerance)
        return structure if reached < span.at_us(size) * (1.0 - 1e-9) else None

    def _widen(self, rows: Rows) -> None:
        """Values of the rows under all planes, the new one included."""
        at = np.arange(self._planes.k)
        if rows.W.shape[1] == len(self._tau) - 1:
            new = self._A[-1][at, rows.paths].sum(axis=1) - self._tau[-1]
            rows.W = np.hstack([rows.W, new[:, None]])
        else:
            rows.W = self._A[:, at, rows.paths].sum(axis=2).T - self._tau

    def _ratio(self, W: Floats) -> float:
        """The worst quotient of these rows, each by its best plane."""
        z, span, price = W + self._tau, self._span, self._planes.price
        error = self._planes.table(*self._sizes)[1]
        quotients = span.ratio(z + price * span.first - error, z + price * span.last - error)
        return float(quotients.min(axis=1).max())

    def _W0(self) -> Floats:
        W: Floats = (self._A.min(axis=2).sum(axis=1) - self._tau)[None, :]
        return W

    def _guess(self) -> Structure:
        """The structure that the best plane for all of them allows most."""
        plane = int(np.argmax(self._W0()[0]))
        return self._fitting(tuple(int(r) for r in np.argmin(self._A[plane], axis=1)))

    def _fitting(self, structure: Structure) -> Structure:
        """The same with regions moved until some message of the span fits."""
        r = np.array(structure)
        for _ in range(len(r) * len(self._regions)):
            if self._low[r].sum() > self._span.last:
                i = int(np.argmax(r))
                r[i] -= 1
            elif self._high[r].sum() < self._span.first:
                i = int(np.argmin(r))
                r[i] += 1
            else:
                break
        return tuple(int(x) for x in r)

    def _rows(self, *, truncated: bool = False) -> Rows | None:
        """All structures that no plane excludes; None where there are too many.

        `truncated` keeps the least bounded of too many and notes the quotient of the others.
        """
        W, k = self._W0(), self._planes.k
        if not len(W[0]) or W.max() >= 0.0:
            return Rows(np.zeros((0, k), dtype=np.int64), W[:0])
        least = self._A.min(axis=2)
        paths = np.zeros((1, 0), dtype=np.int64)
        for i in range(k - 1, -1, -1):
            more = (self._A[:, i, :] - least[:, i, None]).T
            grown = W[:, None, :] + more[None]
            row, r = np.nonzero(self._followed(paths, grown.max(axis=2), i))
            paths, W = np.hstack([r[:, None], paths[row]]), grown[row, r]
            if len(paths) > _MOST_ROWS:
                if not truncated:
                    return None
                order = np.argsort(W.max(axis=1), kind="stable")
                self._dropped = max(self._dropped, self._ratio(W[order[_MOST_ROWS:]]))
                paths, W = paths[order[:_MOST_ROWS]], W[order[:_MOST_ROWS]]
        return Rows(paths, W)

    def _followed(self, paths: Ints, best: Floats, i: int) -> Bools:
        """(S, R): which extensions are not excluded and can make up some message of the span."""
        open_ = self._low <= self._high
        low = self._low[paths].sum(axis=1)[:, None] + self._low[None, :]
        high = self._high[paths].sum(axis=1)[:, None] + self._high[None, :]
        low = low + i * float(self._low[open_].min())
        high = high + i * float(self._high[open_].max())
        kept: Bools = (best < 0.0) & open_ & (low <= self._span.last) & (high >= self._span.first)
        return kept
