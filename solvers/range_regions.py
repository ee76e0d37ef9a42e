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
from solvers.dual import repaired
from solvers.exact_lp.cells import Cells, cells_dual
from solvers.exact_lp.ortools_backend import (
    NO_ROWS,
    PARAMETER_SETS,
    run_glop,
    spread_shares,
    with_violated,
)
from solvers.kernels import exit_times_us
from solvers.rounding import round_cut

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Cut = tuple[int, ...]
Structure = tuple[int, ...]

_FINE_CELLS = 400  # k n up to which all roundings are tried
_ROUNDS = 4  # times that order rows are added
_FAR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Regions:
    """All regions of a pipeline, ascending; the last one is open (its `high` is infinite)."""

    low: Floats
    high: Floats
    g: Floats
    G: Floats

    @classmethod
    def of(cls, pipeline: Pipeline) -> Regions:
        """The regions between the ends of all stages' ranges."""
        parts = [part for stage in pipeline.stages for part in stage.ranges]
        ends = sorted({float(part.up_to_bytes) for part in parts if part.up_to_bytes is not None})
        highs = [*ends, np.inf]
        rows = [[stage.range_at(high) for stage in pipeline.stages] for high in highs]
        return cls(
            low=np.array([1.0, *(end + 1.0 for end in ends)]),
            high=np.array(highs),
            g=np.array([[part.overhead_us for part in row] for row in rows]),
            G=np.array([[part.ns_per_byte for part in row] for row in rows]) / 1000.0,
        )

    def __len__(self) -> int:
        return len(self.low)

    def structure_of(self, sizes: Floats | Ints | Cut) -> Structure:
        """The region of each size; an end belongs to the region that it ends."""
        at = np.searchsorted(self.high, np.asarray(sizes, dtype=float), side="left")
        return tuple(int(r) for r in at)

    def box(self, problem: Problem, structure: Structure) -> tuple[Floats, Floats]:
        """Least and greatest real size of each fragment within region and limits."""
        r = np.array(structure)
        least = float(problem.least_fragment_bytes) if len(r) > 1 else 0.0
        greatest = float(problem.greatest_fragment_bytes)
        return np.maximum(self.low[r], least), np.minimum(self.high[r], greatest)

    def times_us(self, structure: Structure, x: Floats) -> Floats:
        """(k, n) times of these sizes by the lines of their regions."""
        r = np.array(structure)
        times: Floats = self.g[r] + self.G[r] * x[:, None]
        return times

    def rounding_us(self, structure: Structure, unit: int) -> float:
        """The most that positions rounded to the nearest unit add, whatever the sizes are.

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
class Leaf:
    """The best real sizes of one structure at one message: µs without delay, and a dual."""

    latency_us: float
    x: Floats
    p: Floats


def solve_structure(regions: Regions, problem: Problem, structure: Structure) -> Leaf | None:
    """The optimum of one structure, or None where it cannot make up this message."""
    low, high = regions.box(problem, structure)
    B, k = float(problem.message_bytes), len(structure)
    if (low > high).any() or not low.sum() <= B <= high.sum():
        return None
    n = regions.g.shape[1]
    if k == 1:
        x = np.array([B])
        return Leaf(_latency_us(regions, structure, x), x, np.zeros((0, n)))
    total = B - float(low.sum())
    if n == 1 or total <= 0.0:
        G = regions.G[np.array(structure)].sum(axis=1)
        x = _filled(low, high, total, G)
        return Leaf(_latency_us(regions, structure, x), x, np.full((k - 1, n), 1.0 / n))
    return _solved(regions, structure, (low, high), total)


def _solved(
    regions: Regions, structure: Structure, box: tuple[Floats, Floats], total: float
) -> Leaf | None:
    (low, high), k = box, len(structure)
    r, none = np.array(structure), np.zeros(0, dtype=np.int64)
    c, G = regions.g[r] + regions.G[r] * low[:, None], regions.G[r]
    unit_us = float(exit_times_us(c + G * (total / k))[-1, -1])
    empty = np.zeros(0)
    cells = Cells(c, G, none, none, empty, empty, total, high - low, unit_us)
    rows, found = NO_ROWS, None
    for _ in range(_ROUNDS):
        solved = _run(cells, rows)
        if solved is None:
            break
        found, p = solved, solved[0][: c.size - c.shape[1]].reshape(k - 1, c.shape[1])
        grown = with_violated(rows, p)
        if len(grown[0]) == len(rows[0]):
            break
        rows = grown
    if found is None:
        return None
    x = low + spread_shares(found[1][:k], total, high - low)
    return Leaf(_latency_us(regions, structure, x), x, repaired(p))


def _run(cells: Cells, rows: tuple[Ints, Ints]) -> tuple[Floats, Floats] | None:
    """GLOP's values and multipliers by the first parameter set that gives any."""
    model = cells_dual(cells, rows)
    for parameters in PARAMETER_SETS:
        found = run_glop(model, parameters, Deadline.after(_FAR_S))
        if found is not None:
            return found
    return None


def _latency_us(regions: Regions, structure: Structure, x: Floats) -> float:
    return float(exit_times_us(regions.times_us(structure, x))[-1, -1])


def _filled(low: Floats, high: Floats, total: float, G: Floats) -> Floats:
    """The cheapest bytes first."""
    x = low.copy()
    for i in np.argsort(G, kind="stable"):
        taken = min(total, float(high[i] - low[i]))
        x[i] += taken
        total -= taken
    return x


def whole_cut_within(
    regions: Regions, problem: Problem, structure: Structure, x: Floats
) -> Cut | None:
    """A whole-byte cut near these sizes that stays in the regions, the last one with room.

    The room is what a reader's rounding needs where the unit is above a byte.
    """
    if len(structure) == 1:
        cut = (problem.message_bytes,)
        return cut if regions.structure_of(cut) == structure and problem.admits(cut) else None
    low, high = _whole_box(regions, problem, structure)
    unit = problem.limits.alignment_bytes
    if x.size * regions.g.shape[1] <= _FINE_CELLS and unit == 1:
        cut = round_cut(problem, x)
        if cut is not None and regions.structure_of(cut) == structure:
            return cut
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


def _whole_box(regions: Regions, problem: Problem, structure: Structure) -> tuple[Ints, Ints]:
    """Least and greatest whole size of each fragment: aligned but for the last, which has room."""
    real_low, real_high = regions.box(problem, structure)
    unit = problem.limits.alignment_bytes
    low, high = real_low.astype(np.int64), real_high.astype(np.int64)
    low[:-1], high[:-1] = -(-low[:-1] // unit) * unit, high[:-1] // unit * unit
    if unit > 1:
        low[-1] += unit // 2 + 2
        high[-1] -= unit // 2 + 2
    return low, high
