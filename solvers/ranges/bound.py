"""Lower bounds over every structure of one count, at every message size of a stretch.

Source    own derivation from results sec. 1 and 5; docs/theory.md sec. 7.
Notation  k fragments; region r and structure as in regions.py; f: (k, n) the flow of a dual
          p; a, s: (k, R) cost f.g and slope f.G of a fragment in a region; lambda: price of a byte;
          a cut plane c is (p, lambda); A_c(i, r): least of a + (s - lambda) x over the sizes x of
          region r; a node: an interval of regions for each fragment; B in [b1, b2]: message; t:
          what a latency must reach, straight in B.
Cost      O(S C k) for S nodes and C planes; a linear program for each plane that is added.
Exact     for ANY dual, any price and any B: every cut of structure (r_1..r_k) has a latency of at
          least lambda_c B + sum_i A_c(i, r_i), because the mean of paths is priced at the costs
          themselves. So one plane speaks of all structures and all sizes; a node is excluded
          where one plane reaches t at both ends of the stretch, all three being straight in B.
          Nodes that are not excluded are divided; the structures of all nodes together are always
          all there are.
Traps     lambda B and the A are far larger than their sum: what rounding may take is deducted.

The same over the trees of branch and bound in C, whose program mixes the messages of a span: what
optimisation proves at one message, at all of them. Planes are for what has no tree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from domain.problem import Problem
from solvers.exact.convex_dual import flow_of
from solvers.exact.convex_problem import ConvexProblem
from solvers.kernels import cut_latency_us
from solvers.kernels.native_dual import MAX_TREE_REGIONS, NativeRegions
from solvers.ranges.regions import Boxed, Node, Region, Regions, Structure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_EPS = float(np.finfo(np.float64).eps)
_MAX_PLANES = 192  # of one count; the oldest that were added are left out
_TABLE_CELLS = 2_000_000  # and fewer where their table would be larger
_MIN_PRICES = 4  # of the message, that a stage begins with however many regions there are
_MAX_NODES = 400  # of a partition that the next span starts from


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
        """Return what a bound without delay must reach at both ends."""
        share = 1.0 / (1.0 + self.tolerance)
        return self.first_us * share - self.delay_us, self.last_us * share - self.delay_us

    def at_us(self, size: float) -> float:
        """Return the chord of the two latencies."""
        if self.last == self.first:
            return self.first_us
        share = (size - self.first) / (self.last - self.first)
        return self.first_us * (1.0 - share) + self.last_us * share

    def ratio(self, first_us: Floats, last_us: Floats) -> Floats:
        """Return the greater quotient of latency and bound (without delay) at the two ends."""
        quotients = []
        for latency, low in ((self.first_us, first_us), (self.last_us, last_us)):
            total, nothing = low + self.delay_us, 1.0 if latency <= 0.0 else np.inf
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                quotients.append(np.where(total > 0.0, latency / total, nothing))
        out: Floats = np.maximum(*quotients)
        return out


@dataclass(frozen=True, slots=True)
class Found:
    """The proven quotient of a span's chord and the bound, and structures that beat the chord."""

    ratio: float
    better: Structure | None = None
    cut: tuple[int, ...] = ()  # of the better structure and below the chord, where one is known


@dataclass(slots=True)
class CountPlanes:
    """The cut planes of one count, and the nodes that the last span was excluded by."""

    regions: Regions
    k: int
    a: Floats = field(init=False)
    s: Floats = field(init=False)
    price: Floats = field(init=False)
    seeds: int = 0
    nodes: tuple[Ints, Ints] = field(init=False)

    def __post_init__(self) -> None:
        k, (R, n) = self.k, self.regions.g.shape
        self.a, self.s, self.price = np.zeros((0, k, R)), np.zeros((0, k, R)), np.zeros(0)
        stages = n if k > 1 else 1
        most = max(_MIN_PRICES, _TABLE_CELLS // (k * R**2 * stages))
        for stage in range(stages):
            p = np.zeros((k - 1, n))
            p[:, stage] = 1.0
            prices = np.unique(self.regions.G.sum(axis=1) if k == 1 else self.regions.G[:, stage])
            for price in _some(prices, most):
                self.add(p, float(price))
        self.seeds = len(self.price)
        self.forget()

    def forget(self) -> None:
        """Begin again with one node that holds every structure."""
        ends = np.zeros((1, self.k), dtype=np.int64)
        self.nodes = ends, ends + len(self.regions) - 1

    def add(self, p: Floats, price: float) -> None:
        """Add a plane."""
        f = flow_of(p)
        a, s = f @ self.regions.g.T, f @ self.regions.G.T
        maximum = min(_MAX_PLANES, _TABLE_CELLS // (self.k * len(self.regions) ** 2))
        if self.seeds and len(self.price) - self.seeds >= max(8, maximum):
            kept = np.delete(np.arange(len(self.price)), self.seeds)
            self.a, self.s, self.price = self.a[kept], self.s[kept], self.price[kept]
        self.a = np.concatenate([self.a, a[None]])
        self.s = np.concatenate([self.s, s[None]])
        self.price = np.append(self.price, price)

    def table(
        self, minimum: float, maximum: float, unit: int = 1, *, start: int = 0
    ) -> tuple[Floats, Floats]:
        """Return the least A_c(i, r) over regions from..to, (C, k, R, R) for sizes in [least,
        greatest], all but the last multiples of the unit.

        Infinite where these regions have no such size. And what rounding may take, (C,). Of the
        planes from `start` on.
        """
        low, high = self.regions.sizes(minimum, maximum, unit, self.k)
        a, s, price, R = self.a[start:], self.s[start:], self.price[start:], len(self.regions)
        slope = s - price[:, None, None]
        A = a + np.minimum(slope * low, slope * high)
        A = np.where(low <= high, A, np.inf)
        ranges = np.full((*A.shape, R), np.inf)
        for r in range(R):
            ranges[:, :, r, r:] = np.minimum.accumulate(A[:, :, r:], axis=2)
        size = np.abs(a).max(axis=2).sum(axis=1)
        steepest = (s.max(axis=2) + np.abs(price)[:, None]).sum(axis=1)
        error = 16.0 * _EPS * (size + (steepest + np.abs(price)) * maximum)
        return ranges, error


class SpanBound:
    """The bound of one count over one span."""

    def __init__(
        self,
        planes: CountPlanes,
        span: Span,
        sizes: tuple[float, float],
        *,
        max_solves: int,
        unit: int = 1,
    ) -> None:
        self._planes, self._span, self._sizes = planes, span, (*sizes, unit)
        self._left, self._at = max_solves, np.arange(planes.k)
        self._low, self._high = planes.regions.sizes(*self._sizes, planes.k)
        self._ranges, self._error = self._planes.table(*self._sizes)
        self._targets()

    def _added(self) -> None:
        """The same after one more plane, in whose place an older one may have gone."""
        seeds, had = self._planes.seeds, len(self._error)
        row, error = self._planes.table(*self._sizes, start=len(self._planes.price) - 1)
        if len(self._planes.price) == had:
            self._ranges = np.delete(self._ranges, seeds, axis=0)
            self._error = np.delete(self._error, seeds)
        self._ranges = np.concatenate([self._ranges, row])
        self._error = np.concatenate([self._error, error])
        self._targets()

    def _targets(self) -> None:
        price, (one, other) = self._planes.price, self._span.targets()
        tau = np.maximum(one - price * self._span.first, other - price * self._span.last)
        self._tau: Floats = tau + self._error

    def run(self, solve: Callable[[Node, int], Boxed | None], *, fully: bool) -> Found:
        """Return the quotient over all structures; `fully` also where it is above the tolerance.

        `solve` gives the optimum of a node's relaxation at a message size. Ends early with a
        structure whose sizes are below the chord by more than the tolerance.
        """
        if len(self._planes.nodes[0]) > _MAX_NODES:
            self._planes.forget()
        worst, stuck = 1.0 + self._span.tolerance, np.zeros(len(self._planes.nodes[0]), dtype=bool)
        while True:
            low, high = self._planes.nodes
            z = self._values(low, high)
            best = (z - self._tau).max(axis=1)
            open_ = (best < 0.0) & self._can_be(low, high) & ~stuck
            if not open_.any():
                return Found(worst)
            if self._left <= 0:
                return Found(max(worst, self._ratio(z[open_])))
            i = int(np.argmin(np.where(open_, best, np.inf)))
            done, better = self._divided(i, solve)
            if better is not None:
                return Found(np.inf, better)
            if done is None:  # nothing that can be added excludes it over the whole span
                worst, stuck[i] = max(worst, self._ratio(z[i : i + 1])), True
                if not fully:
                    return Found(worst)
            elif done:
                stuck = np.append(np.delete(stuck, i), [False, False])

    def _values(self, low: Ints, high: Ints) -> Floats:
        """(S, C): what each plane says of each node, without its price of the message."""
        values: Floats = self._ranges[:, self._at, low, high].sum(axis=2).T
        return values

    def _can_be(self, low: Ints, high: Ints) -> Bools:
        """Whether the sizes of each node can make up some message of the span."""
        at = self._at
        minimum, maximum = self._low[at, low].sum(axis=1), self._high[at, high].sum(axis=1)
        can: Bools = (minimum <= self._span.last) & (maximum >= self._span.first)
        return can

    def _divided(
        self, i: int, solve: Callable[[Node, int], Boxed | None]
    ) -> tuple[bool | None, Structure | None]:
        """A plane for this node; whether the node was divided, None where that is of no use."""
        low, high = (ends[i] for ends in self._planes.nodes)
        node = tuple((int(a), int(b)) for a, b in zip(low, high, strict=True))
        size = self._size_for(low, high)
        self._left -= 1
        boxed = None if size is None else solve(node, size)
        if boxed is not None and size is not None:
            reached = (boxed.latency_us + self._span.delay_us) * (1.0 + self._span.tolerance)
            if reached < self._span.at_us(size) * (1.0 - 1e-9):
                return None, self._planes.regions.structure_of(boxed.x)
            self._planes.add(boxed.p, boxed.price)
            self._added()
            new = self._ranges[-1][self._at, low, high].sum() - self._tau[-1]
            if new >= 0.0:
                return False, None
        part = self._part(node, boxed)
        if part is None:
            return None, None
        self._split(i, *part)
        return True, None

    def _size_for(self, low: Ints, high: Ints) -> int | None:
        """A message size of the span that this node can make up, near the middle."""
        span = self._span
        minimum, maximum = self._low[self._at, low].sum(), self._high[self._at, high].sum()
        middle = (span.first + span.last) // 2
        size = int(min(max(middle, minimum), maximum))
        return size if span.first <= size <= span.last else None

    def _part(self, node: Node, boxed: Boxed | None) -> tuple[int, int] | None:
        """Which fragment to divide, and behind which region; None where no division helps."""
        wide = [i for i, (a, b) in enumerate(node) if a < b]
        if not wide:
            return None
        if boxed is None:
            i = max(wide, key=lambda i: node[i][1] - node[i][0])
            return i, (node[i][0] + node[i][1]) // 2
        i = max(wide, key=lambda i: float(boxed.missing[i]))
        if boxed.missing[i] <= _EPS * boxed.latency_us:
            return None
        ends = self._planes.regions.high[node[i][0] : node[i][1]]
        nearest = int(np.argmin(np.abs(np.log(ends / max(boxed.x[i], 1e-9)))))
        return i, node[i][0] + nearest

    def _split(self, i: int, fragment: int, behind: int) -> None:
        """Two nodes in place of one."""
        low, high = self._planes.nodes
        first_high, second_low = high[i].copy(), low[i].copy()
        first_high[fragment], second_low[fragment] = behind, behind + 1
        lows = np.vstack([np.delete(low, i, axis=0), low[i], second_low])
        highs = np.vstack([np.delete(high, i, axis=0), first_high, high[i]])
        self._planes.nodes = lows, highs

    def _ratio(self, z: Floats) -> float:
        """The worst quotient of these nodes, each by its best plane."""
        span, price = self._span, self._planes.price[: z.shape[1]]
        error = self._error[: z.shape[1]]
        quotients = span.ratio(z + price * span.first - error, z + price * span.last - error)
        return float(quotients.min(axis=1).max())


MAX_TREE = 200_000  # numbers of a program up to which counts have a tree in C
_UNITS_WORK = 2e7  # numbers that a tree by units writes at least
_TREE_GROWTH = 1.25  # of the counts that one tree is of


def tree_counts(native: NativeRegions, counts: list[int]) -> list[tuple[int, int]]:
    """Return intervals that hold these counts, ascending and above 1, as far as trees go."""
    found = []
    while counts and native.entries(counts[0]) <= MAX_TREE:
        below = max(counts[0] + 1, int(_TREE_GROWTH * counts[0]) + 1)
        here = [k for k in counts if k < below]
        found.append((here[0], here[-1]))
        counts = counts[len(here) :]
    return found


class SpanTrees:
    """The trees of branch and bound over all messages of a span, and the work left to them.

    A tree's latencies are those of the greatest message, the target's slope added for each byte
    that is less. Where there are no kernels, or a program would be too large, there is no tree.
    """

    def __init__(self, regions: Regions, problem: Problem, span: Span, work: float) -> None:
        self._every, self._pipeline, self._span = regions, problem.pipeline, span
        self.work, self.last_count = work, 0  # the latter: greater ones have no tree
        problem = replace(problem, message_bytes=span.last)
        one, self._target = span.targets()
        length = span.last - span.first
        self._shift = float(length), (self._target - one) / max(1, length)
        self._known_us = max(span.first_us, span.last_us)
        relaxed = ConvexProblem.of(problem)
        known_us = self._known_us - span.delay_us + length * float(relaxed.byte_costs().max())
        minimum = float(min(problem.limits.min_fragment_bytes, span.first))
        found = Region.of(problem, relaxed.narrowed(known_us).M, minimum=minimum)
        self._unit = unit = problem.limits.alignment_bytes
        self._has_units = bool((found.high // unit * unit >= found.low).any())
        beside = (0, 0), (0, 1)  # of another stage, that takes no time
        if len(problem.pipeline) == 1:
            found = replace(found, g=np.pad(found.g, beside), G=np.pad(found.G, beside))
        is_small = len(found) <= MAX_TREE_REGIONS
        self._native = found.in_native(problem) if is_small else None
        whole = found.by_units(unit, MAX_TREE_REGIONS)
        self._by_units = whole.in_native(problem) if whole is not None else None

    def run(self, counts: list[int], near: int, *, fully: bool, every: bool = False) -> Found:
        """Return the proven quotient over all cuts of these counts that have trees, or of some and
        a structure that is better. Those near a count come first; `fully` also where one is above
        the tolerance, those near it last, and `every` also where there is a better structure.
        """
        worst, native, better = 1.0 + self._span.tolerance, self._native, Found(1.0)
        self._every_count = every
        if native is None:
            return Found(worst)
        groups = tree_counts(native, [k for k in counts if k > 1])
        self.last_count = groups[-1][1] if groups else 1
        # Those near a count have better structures, and need most work where there are none.
        groups.sort(key=lambda group: abs(sum(group) - 2 * near), reverse=fully)
        for left, (low, high) in zip(range(len(groups), 0, -1), groups, strict=True):
            kept = self.work * (1.0 - 1.0 / left) if fully else 0.0
            self.work -= kept
            found = self._of_counts(native, low, high)
            self.work += kept
            worst = max(worst, found.ratio)
            better = found if found.better is not None else better
            is_above = worst > 1.0 + self._span.tolerance and not fully
            if is_above or (found.better is not None and not every):
                return replace(found, ratio=worst)
        return replace(better, ratio=worst)

    def _of_counts(self, native: NativeRegions, low: int, high: int) -> Found:
        """The same of one tree, or of those of its halves where it does not end."""
        if not self._has_units:  # one fragment alone is admitted
            return Found(1.0 + self._span.tolerance)
        tree = native.tree((low, high), self._known_us or 1.0, span=self._shift)
        if tree is None:
            return Found(np.inf)
        self.work = tree.advance(self._target, self.work)
        short = tree.bound_us - self._target
        if short >= 0.0:
            return Found(1.0 + self._span.tolerance)
        sizes = [one for _, one in (tree.best, tree.real) if len(one) and self._is_better(one)]
        if low < high and self.work > 0.0 and not sizes:
            middle = (low + high) // 2
            one = self._of_counts(native, low, middle)
            if one.better is not None and not self._every_count:
                return one
            other = self._of_counts(native, middle + 1, high)
            better = one if one.better is not None else other
            return replace(better, ratio=max(one.ratio, other.ratio))
        finer = self._by_units
        cut = next((cut for one in sizes if (cut := self._whole(one))), ())
        if not cut and finer not in (None, native) and finer.entries(high) <= MAX_TREE:
            self.work = max(self.work, _UNITS_WORK)
            return self._of_counts(finer, low, high)
        ends = (np.array([target + short]) for target in self._span.targets())
        ratio = float(self._span.ratio(*ends)[0])
        if not sizes:
            return Found(ratio)
        return Found(ratio, self._every.structure_of(cut or sizes[0]), cut)

    def _whole(self, sizes: Floats) -> tuple[int, ...]:
        """These sizes where all are whole, and whole units but for the last; else none."""
        whole = np.rint(sizes)
        is_whole = np.array_equal(whole, sizes) and not (whole[:-1] % self._unit).any()
        return tuple(whole.astype(np.int64).tolist()) if is_whole else ()

    def _is_better(self, sizes: Floats) -> bool:
        """Whether these sizes are below the chord of their message by more than the tolerance."""
        reached = cut_latency_us(self._pipeline, sizes) * (1.0 + self._span.tolerance)
        return reached < self._span.at_us(float(sizes.sum())) * (1.0 - 1e-9)


def _some(prices: Floats, most: int) -> Floats:
    """At most so many of these prices: each bounds, and fewer of them only bound less."""
    at = np.linspace(0, len(prices) - 1, min(most, len(prices))).round().astype(int)
    return np.asarray(prices[at])
