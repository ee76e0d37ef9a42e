"""A cut on stages with ranges made better: moves between regions, and the optimum within them.

Source    own derivation; docs/theory.md sec. 7.
Notation  k fragments, n stages; region: sizes on which no stage changes its range.
Cost      the cells that are given, k n for each cut that is evaluated; see moves.py.
Exact     no: which regions to hold is a heuristic; within those held, see held_regions.py.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from domain.problem import Problem
from solvers.contract import Candidate, Deadline
from solvers.kernels.native_dual import NativeRegions
from solvers.ranges.held_regions import fixed_region_optimum
from solvers.ranges.moves import WORTHWHILE, cut_us, descend
from solvers.ranges.regions import Region
from solvers.rounding import round_cut

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ROUNDS = 3  # times that regions are held, sizes solved for and moved, for one start
_ROUNDING = 1e-12  # relative gain of a move that may be rounding alone

_ANNEALED, _PER_FRAGMENT = 100_000, 25  # fragments that random moves evaluate, of cuts up to these
_MAX_CELLS, _MAX_ANNEALED = 50_000_000, 1_000_000  # k n of all their cuts, and of one cut
_CELLS_OF_ANNEALED = 1_000_000  # that they count for
_THRESHOLD = 0.01  # of the latency: how much worse a cut may be that is gone on from
_FEW = 16  # fragments up to which random moves are enough
_MORE = 8  # fragments, or as many again, that random moves may add


def improved(
    problem: Problem, start: tuple[int, ...], deadline: Deadline, *, cells: int
) -> tuple[Candidate, int]:
    """Return this cut after moves between, and programs within, the regions; and the cells that are
    left.

    What it returns is no worse than the start.
    """
    best = sizes = np.array(start, dtype=np.int64)
    best_us, real = cut_us(problem, best), None
    native = Region.of(problem, float(problem.largest_fragment_bytes)).in_native(problem)
    if native is not None:
        cells -= _CELLS_OF_ANNEALED
        moved, _ = annealed(problem, native, sizes, each=_ANNEALED)
        if cut_us(problem, moved) < best_us:
            best, best_us = moved, cut_us(problem, moved)
    is_enough = native is not None and len(start) <= _FEW
    sizes = best if is_enough else sizes
    for _ in range(_ROUNDS):
        if not is_enough:
            sizes, cells = descend(problem, sizes, deadline, cells=cells)
        latency = cut_us(problem, sizes)
        if latency < best_us:
            best, best_us = sizes, latency
        x = fixed_region_optimum(problem, sizes, deadline) if cells > 0 else None
        whole = None if x is None else round_cut(problem, x, search_cells=0)
        if x is None or whole is None or deadline.passed:
            break
        real, sizes = x, np.array(whole, dtype=np.int64)
        if cut_us(problem, sizes) >= best_us * (1.0 - WORTHWHILE):
            break
    return _candidate(best, real), cells


def annealed(
    problem: Problem,
    native: NativeRegions,
    sizes: Ints,
    *,
    each: int,
    first: float = _THRESHOLD,
    seed: int = 1,
) -> tuple[Ints, int]:
    """Return the best cut that random moves from this one meet, no worse than it is, and the cells
    that they took.

    `each`: fragments whose time in all stages is computed, where these are few; `first`: how much
    worse, relative, a cut may be that is gone on from at the beginning.
    """
    counts, k, n = problem.count_range(), len(sizes), len(problem.pipeline)
    if k * n > _MAX_ANNEALED:
        return sizes, 0
    cells = min(each * (1 + k // _PER_FRAGMENT) * n, _MAX_CELLS)
    most = min(counts.maximum, max(2 * k, k + _MORE))
    limits = min(counts.minimum, k), most
    return native.annealed(sizes, counts=limits, first=first, cells=cells, seed=seed), cells


def polished(
    problem: Problem, candidate: Candidate, deadline: Deadline, *, cells: int
) -> Candidate:
    """Return the same after every move that gains anything at all, of the least units too."""
    sizes = np.array(candidate.fragment_bytes, dtype=np.int64)
    moved, _ = descend(problem, sizes, deadline, cells=cells, worthwhile=_ROUNDING)
    real = candidate.real_sizes
    return _candidate(moved, np.array(real) if real else None)


def _candidate(sizes: Ints, real: Floats | None) -> Candidate:
    cut = tuple(int(size) for size in sizes)
    known = real is not None and len(real) == len(cut)
    return Candidate(cut, tuple(real.tolist()) if known and real is not None else None)
