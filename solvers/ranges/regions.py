"""Regions of fragment sizes on which no stage changes its fit range, and cuts that stay in them.

Source    own derivation; docs/theory.md sec. 7.
Notation  n stages, k fragments; region r: sizes from low_r to high_r, both whole;
          g, G: (R, n) µs and µs/byte of each stage in each region; a structure: one region for each
          fragment; x: (k,) real sizes; p: (k-1, n) a dual of results sec. 1; B: message; m, M:
          least and greatest size.
Cost      one linear program of 2k-1 rows for each structure and message size.
Exact     for one structure in real sizes: every stage is one line a fragment.
Traps     a region begins one byte behind the end of the one before it: between the two lies no
          whole size, and the limit of the costs there is no schedule's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.pipeline import Pipeline
from domain.problem import Problem
from solvers.contract import Deadline
from solvers.exact.convex_dual import flow_of
from solvers.exact.dual import repaired
from solvers.exact.lp.cells import Cells, cells_dual
from solvers.exact.lp.glop import PARAMETER_SETS, run_glop
from solvers.exact.lp.lines import spread_shares
from solvers.exact.lp.reduced_dual import NO_ROWS
from solvers.kernels import active, exit_times_us, range_arrays, stage_times_us
from solvers.kernels.native_dual import NativeRegions
from solvers.rounding import round_cut

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Cut = tuple[int, ...]
Structure = tuple[int, ...]
Node = tuple[tuple[int, int], ...]  # regions from..to of each fragment

_FINE_CELLS = 400  # k n up to which all roundings are tried
_PARAMETERS = "use_dual_simplex:true use_preprocessing:false use_scaling:false"
_FAR_S = 3600.0
MAX_CELLS = 1_500  # k n of a linear program
_MAX_ORDERED = 48  # fragments up to which all order rows are in
_MAX_HULLS = 4_096  # boxes whose minorants are kept
_ROUNDING = 1e-12  # relative difference of a cost and its minorant that is rounding alone
_LITTLE = 1e-3  # weight of cells that no path uses, in the choice of what to divide


@dataclass(frozen=True, slots=True)
class Regions:
    """All regions of a pipeline, ascending; the last one is open (its `high` is infinite)."""

    low: Floats
    high: Floats
    g: Floats
    G: Floats

    @classmethod
    def of(cls, pipeline: Pipeline) -> Regions:
        """Return the regions between the ends of all stages' ranges."""
        parts = [part for stage in pipeline.stages for part in stage.ranges]
        ends = sorted({float(part.up_to_bytes) for part in parts if part.up_to_bytes is not None})
        highs = [*ends, np.inf]
        g, G = np.empty((len(highs), len(pipeline))), np.empty((len(highs), len(pipeline)))
        for j, stage in enumerate(pipeline.stages):
            of_stage, overhead, cost = range_arrays(stage)
            at = np.searchsorted(of_stage, highs, side="left")
            g[:, j], G[:, j] = overhead[at], cost[at]
        return cls(
            low=np.array([1.0, *(end + 1.0 for end in ends)]),
            high=np.array(highs),
            g=g,
            G=G / 1000.0,
        )

    def __len__(self) -> int:
        return len(self.low)

    def structure_of(self, sizes: Floats | Ints | Cut) -> Structure:
        """Return the region of each size; an end belongs to the region that it ends."""
        at = np.searchsorted(self.high, np.asarray(sizes, dtype=float), side="left")
        return tuple(int(r) for r in at)

    def within(self, minimum: float, maximum: float) -> Region:
        """Return the regions with sizes from this least one to this greatest one."""
        low, high = np.maximum(self.low, minimum), np.minimum(self.high, maximum)
        kept = low <= high
        return Region(low[kept], high[kept], self.g[kept], self.G[kept])

    def box(self, problem: Problem, structure: Structure) -> tuple[Floats, Floats]:
        """Return the least and greatest real size of each fragment within region and limits."""
        r = np.array(structure)
        minimum = float(problem.smallest_fragment_bytes) if len(r) > 1 else 0.0
        maximum = float(problem.largest_fragment_bytes)
        return np.maximum(self.low[r], minimum), np.minimum(self.high[r], maximum)

    def sizes(self, minimum: float, maximum: float, unit: int, k: int) -> tuple[Floats, Floats]:
        """Return (k, R) the least and greatest size in each region of each of k fragments, all but
        the last of which are multiples of the unit; the least is above where there is none.
        """
        low = np.repeat(np.maximum(self.low, minimum)[None, :], k, axis=0)
        high = np.repeat(np.minimum(self.high, maximum)[None, :], k, axis=0)
        if unit > 1:
            low[:-1], high[:-1] = np.ceil(low[:-1] / unit) * unit, np.floor(high[:-1] / unit) * unit
        return low, high

    def rounding_us(self, structure: Structure, unit: int) -> float:
        """Return the most that positions rounded to the nearest unit add, whatever the sizes are.

        Each size differs by less than a unit, so the longest path of a G is a bound. Another: in
        one stage the errors of consecutive fragments add up to those of two positions, and to what
        the costs of a byte change between them, times the position's error of half a unit.
        """
        G = self.G[np.array(structure)]
        plain = float(exit_times_us(G)[-1, -1])
        changes = float(np.abs(np.diff(G, axis=0)).sum())
        telescoped = float(G.max(axis=0).sum()) + 0.5 * changes
        return unit * min(plain, telescoped)


@dataclass(frozen=True, slots=True)
class Region:
    """The admitted sizes of a problem by region, bytes, and the lines there: (R,) and (R, n)."""

    low: Floats
    high: Floats
    g: Floats
    G: Floats

    @classmethod
    def of(cls, problem: Problem, maximum: float, *, minimum: float | None = None) -> Region:
        """Return the regions with sizes from this least one, or the problem's, to this greatest
        one.
        """
        smallest = float(problem.smallest_fragment_bytes) if minimum is None else minimum
        return Regions.of(problem.pipeline).within(smallest, maximum)

    def __len__(self) -> int:
        return len(self.low)

    def only(self, kept: Bools) -> Region:
        """Return these regions alone."""
        return Region(self.low[kept], self.high[kept], self.g[kept], self.G[kept])

    def split(self, r: int, behind: float) -> Region:
        """Return them with region r divided behind this size, which is whole and not its last."""
        low, high = np.insert(self.low, r + 1, behind + 1.0), np.insert(self.high, r, behind)
        return Region(
            low, high, np.insert(self.g, r, self.g[r], 0), np.insert(self.G, r, self.G[r], 0)
        )

    def by_units(self, unit: int, most: int) -> Region | None:
        """Return each multiple of the unit as a region of its own, with what is left below it; None
        where that are more than so many.
        """
        if (np.ceil(self.high / unit) - np.floor((self.low - 1.0) / unit)).sum() > most:
            return None
        ends = [
            np.unique(np.append(np.arange(np.ceil(low / unit) * unit, high, unit), high))
            for low, high in zip(self.low, self.high, strict=True)
        ]
        r = np.repeat(np.arange(len(self)), [len(one) for one in ends])
        high = np.concatenate(ends)
        starts = np.append(0.0, high[:-1]) + 1.0
        return Region(np.maximum(self.low[r], starts), high, self.g[r], self.G[r])

    def ends(self) -> tuple[Ints, Floats, Floats]:
        """Return region (V,), size (V,) and costs (V, n), µs, of both ends of each region."""
        q = np.repeat(np.arange(len(self)), 2)
        at = np.stack([self.low, self.high], axis=1).ravel()
        kept = np.ones(len(at), dtype=bool)
        kept[1::2] = self.high > self.low
        return q[kept], at[kept], (self.g[q] + self.G[q] * at[:, None])[kept]

    def in_native(self, problem: Problem) -> NativeRegions | None:
        """Return the kernels' searches over these regions; None where there are no kernels."""
        if active.NATIVE is None or not len(self):
            return None
        arrays = self.low, self.high, self.g, self.G
        B, unit = float(problem.message_bytes), float(problem.limits.alignment_bytes)
        return NativeRegions(active.NATIVE.searches, arrays, B=B, unit=unit)


@dataclass(frozen=True, slots=True)
class Boxed:
    """The optimum of a node's relaxation at one message, with what it says.

    x (k,) real sizes, `latency_us` what they take at the costs themselves (no delay), p a dual and
    `price` its price of a byte; `missing` (k,): by how much the costs exceed the relaxation there.
    """

    latency_us: float
    x: Floats
    p: Floats
    price: float
    missing: Floats


@dataclass(frozen=True, slots=True)
class Hulls:
    """The minorants of all stages over one box, as the greatest of lines of the bytes above low.

    c, G (n,): the first line of each stage; (j, more_c, more_G): the others. `vertices`: (2, V)
    bytes and µs of each stage.
    """

    low: float
    c: Floats
    G: Floats
    j: Ints
    more_c: Floats
    more_G: Floats
    vertices: list[Floats]

    @classmethod
    def of(cls, vertices: list[Floats]) -> Hulls:
        """Return the lines through neighbouring vertices."""
        low, first, more = float(vertices[0][0, 0]), [], []
        for stage, (at, cost) in enumerate(vertices):
            slopes = np.diff(cost) / np.diff(at) if len(at) > 1 else np.zeros(1)
            first.append((float(cost[0]), float(slopes[0])))
            starts = cost[1:-1] - slopes[1:] * (at[1:-1] - low)
            more += [(stage, c, G) for c, G in zip(starts, slopes[1:], strict=True)]
        c, G = np.array(first).T
        j, more_c, more_G = np.array(more).reshape(-1, 3).T
        return cls(low, c, G, j.astype(np.int64), more_c, more_G, vertices)

    def at(self, size: float) -> Floats:
        """Return (n,) the minorants at this size."""
        phi: Floats = self.c + self.G * (size - self.low)
        np.maximum.at(phi, self.j, self.more_c + self.more_G * (size - self.low))
        return phi


class NodeSolver:
    """Solves nodes of one pipeline. Nodes of one region a fragment are structures, exactly."""

    def __init__(self, regions: Regions, pipeline: Pipeline) -> None:
        self._regions, self._pipeline = regions, pipeline
        self._hulls: dict[tuple[float, float], Hulls] = {}

    def solve(self, problem: Problem, node: Node) -> Boxed | None:
        """Return the optimum, or None where the node cannot make up this message."""
        low, high = self.box(problem, node)
        B, k, n = float(problem.message_bytes), len(node), self._regions.g.shape[1]
        if (low > high).any() or not low.sum() <= B <= high.sum():
            return None
        total = B - float(low.sum())
        if k == 1 or n == 1 or total <= 0.0 or k * n > MAX_CELLS:
            return self._without_program(node, (low, high), total)
        return self._solved((low, high), total)

    def box(self, problem: Problem, node: Node) -> tuple[Floats, Floats]:
        """Return the least and greatest size of each fragment within regions, limits and units."""
        minimum = float(problem.smallest_fragment_bytes) if len(node) > 1 else 0.0
        maximum = float(problem.largest_fragment_bytes)
        low, high = self._regions.sizes(minimum, maximum, problem.limits.alignment_bytes, len(node))
        at, ends = np.arange(len(node)), np.array(node)
        return low[at, ends[:, 0]], high[at, ends[:, 1]]

    def _solved(self, box: tuple[Floats, Floats], total: float) -> Boxed | None:
        (low, high), n = box, self._regions.g.shape[1]
        k = len(low)
        hulls = [self._hull(float(a), float(b)) for a, b in zip(low, high, strict=True)]
        unit_us = self._true_us(low + total / k)
        cells = _cells(hulls, (low, high), total, unit_us)
        found = _run(cells)
        if found is None:
            return None
        p = found[0][: (k - 1) * n].reshape(k - 1, n)
        x = np.clip(low + spread_shares(found[1][:k], total, high - low), low, high)
        price = float(found[0][(k - 1) * n]) * (unit_us or 1.0) / total
        return self._boxed(hulls, x, repaired(p), price)

    def _boxed(self, hulls: list[Hulls], x: Floats, p: Floats, price: float) -> Boxed:
        t = stage_times_us(self._pipeline, x)
        phi = np.array([hull.at(size) for size, hull in zip(x, hulls, strict=True)])
        over = np.maximum(t - phi, 0.0)
        over[over <= _ROUNDING * t] = 0.0
        weight = flow_of(p) + _LITTLE
        latency = float(exit_times_us(t)[-1, -1])
        return Boxed(latency, x, p, price, (weight * over).sum(axis=1))

    def _without_program(self, node: Node, box: tuple[Floats, Floats], total: float) -> Boxed:
        """One fragment, one stage, no byte to spare or too many: the cheapest bytes first."""
        (low, high), k = box, len(node)
        hulls = [self._hull(float(a), float(b)) for a, b in zip(low, high, strict=True)]
        n = self._regions.g.shape[1]
        x, price = _filled(hulls, low, high, total)
        return self._boxed(hulls, x, np.full((k - 1, n), 1.0 / n), price)

    def _hull(self, low: float, high: float) -> Hulls:
        """Vertices (bytes, µs), (2, V) for each stage: the minorant over these whole sizes."""
        if (low, high) not in self._hulls:
            if len(self._hulls) > _MAX_HULLS:
                self._hulls.clear()
            self._hulls[low, high] = self._minorants(low, high)
        return self._hulls[low, high]

    def _minorants(self, low: float, high: float) -> Hulls:
        """Of each stage, from the ends of the regions alone: a limit from behind is no cost."""
        regions = self._regions
        inside = (regions.low <= high) & (regions.high >= low)
        ends = np.stack(
            [np.maximum(regions.low[inside], low), np.minimum(regions.high[inside], high)], axis=1
        )
        at, g, G = ends.ravel(), regions.g[inside], regions.G[inside]
        costs = (g[:, None, :] + G[:, None, :] * ends[:, :, None]).reshape(len(at), -1)
        return Hulls.of([lower_hull(at, cost) for cost in costs.T])

    def _true_us(self, x: Floats) -> float:
        return float(exit_times_us(stage_times_us(self._pipeline, x))[-1, -1])


def lower_hull(at: Floats, cost: Floats) -> Floats:
    """Return the vertices below all points, whose sizes ascend, (2, V)."""
    kept: list[int] = []
    for v in range(len(at)):
        if kept and at[kept[-1]] == at[v]:  # a region of one size
            continue
        while len(kept) > 1 and _is_above(at, cost, (kept[-2], kept[-1], v)):
            kept.pop()
        kept.append(v)
    return np.stack([at[kept], cost[kept]])


def _is_above(at: Floats, cost: Floats, three: tuple[int, int, int]) -> bool:
    """Whether the one in the middle is not below the line of the other two."""
    a, b, c = three
    return bool((cost[b] - cost[a]) * (at[c] - at[a]) >= (cost[c] - cost[a]) * (at[b] - at[a]))


def _cells(hulls: list[Hulls], box: tuple[Floats, Floats], total: float, unit_us: float) -> Cells:
    """Every cell with the lines of its own minorant, as functions of the bytes above its least."""
    low, high = box
    return Cells(
        c=np.array([hull.c for hull in hulls]),
        G=np.array([hull.G for hull in hulls]),
        i=np.repeat(np.arange(len(hulls)), [len(hull.j) for hull in hulls]),
        j=np.concatenate([hull.j for hull in hulls]),
        extra_c=np.concatenate([hull.more_c for hull in hulls]),
        extra_G=np.concatenate([hull.more_G for hull in hulls]),
        total=total,
        spread=high - low,
        unit_us=unit_us,
    )


def _run(cells: Cells) -> tuple[Floats, Floats] | None:
    """GLOP's values and multipliers, all order rows in, by the first parameters that give any.

    For these small programs one solve with all rows takes less than two with some of them; and the
    scaling of rows, which others need, makes one in four of these end without a solution.
    """
    k, n = cells.c.shape
    some = 2 < k <= _MAX_ORDERED
    steps, stages = np.nonzero(np.ones((k - 2, n - 1), dtype=bool)) if some else NO_ROWS
    model = cells_dual(cells, (steps.astype(np.int64), stages.astype(np.int64)))
    for parameters in (_PARAMETERS, *PARAMETER_SETS):
        found = run_glop(model, parameters, Deadline.after(_FAR_S))
        if found is not None:
            return found
    return None


def _filled(hulls: list[Hulls], low: Floats, high: Floats, total: float) -> tuple[Floats, float]:
    """Sizes and the price of the last byte where the cheapest bytes are taken first."""
    pieces = []
    for i, hull_of in enumerate(hulls):
        at = np.unique(np.concatenate([hull[0] for hull in hull_of.vertices]))
        cost = np.sum([np.interp(at, *hull) for hull in hull_of.vertices], axis=0)
        pieces += [
            (float((cost[v + 1] - cost[v]) / (at[v + 1] - at[v])), i, float(at[v + 1] - at[v]))
            for v in range(len(at) - 1)
        ]
    x, price = low.copy(), 0.0
    for slope, i, width in sorted(pieces):
        taken = min(total, width, float(high[i] - x[i]))
        if taken > 0.0:
            x[i] += taken
            total -= taken
            price = slope
    return x, price


def whole_cut_within(
    regions: Regions, problem: Problem, structure: Structure, x: Floats, *, has_room: bool = True
) -> Cut | None:
    """Return a whole-byte cut near these sizes that stays in the regions, the last one with room.

    The room is what a reader's rounding needs where the unit is above a byte.
    """
    if len(structure) == 1:
        cut = (problem.message_bytes,)
        return cut if regions.structure_of(cut) == structure and problem.admits(cut) else None
    low, high = _whole_box(regions, problem, structure, has_room=has_room)
    unit = problem.limits.alignment_bytes
    if x.size * regions.g.shape[1] <= _FINE_CELLS and unit == 1:
        near = round_cut(problem, x)
        if near is not None and regions.structure_of(near) == structure:
            return near
    positions = np.rint(np.cumsum(x)[:-1] / unit).astype(np.int64) * unit
    sizes = np.diff(positions, prepend=0, append=problem.message_bytes)
    sizes[:-1] = np.clip(sizes[:-1], low[:-1], high[:-1])
    sizes[-1] = problem.message_bytes - int(sizes[:-1].sum())
    return _balanced(problem, sizes, (low, high))


def _balanced(problem: Problem, sizes: Ints, box: tuple[Ints, Ints]) -> Cut | None:
    """The same with the last fragment inside its box, by units of those that have most room."""
    (low, high), unit = box, problem.limits.alignment_bytes
    for sign in (-1, 1):  # taken from the others, given to them
        needed = int(low[-1] - sizes[-1]) if sign < 0 else int(sizes[-1] - high[-1])
        room = (sizes - low if sign < 0 else high - sizes)[:-1]
        for i in np.argsort(-room, kind="stable"):
            if needed <= 0:
                break
            step = min(int(room[i]) // unit, -(-needed // unit)) * unit
            sizes[i] += sign * step
            sizes[-1] -= sign * step
            needed -= step
    cut = tuple(int(size) for size in sizes)
    inside = bool((sizes >= low).all() and (sizes <= high).all())
    return cut if inside and problem.admits(cut) else None


def _whole_box(
    regions: Regions, problem: Problem, structure: Structure, *, has_room: bool
) -> tuple[Ints, Ints]:
    """Least and greatest whole size of each fragment: aligned but for the last, which has room."""
    real_low, real_high = regions.box(problem, structure)
    unit = problem.limits.alignment_bytes
    low, high = real_low.astype(np.int64), real_high.astype(np.int64)
    low[:-1], high[:-1] = -(-low[:-1] // unit) * unit, high[:-1] // unit * unit
    if unit > 1 and has_room:
        low[-1] += unit // 2 + 2
        high[-1] -= unit // 2 + 2
    return low, high
