"""Real sizes to whole, aligned sizes that sum to the message, within all limits.

Source    theory.md sec. 6 (rounding lemma).
Notation  a: alignment; x: (k,) real sizes; X: (k-1,) inner cut positions, cumulative; n stages;
          tau: (k, n) exit times; rest: (k, n) longest path from entering (i, j) to the end.
Cost      O(OFFSETS k n) for the roundings; O(k n) for all 2(k-1) moves of one pass of the search.
Exact     no: rounding to a adds at most a*min(sum G_1.., sum ..G_{n-2}, sum G - (G_0+G_{n-1})/2),
          whatever k is; tests/solvers/test_rounding.py checks the lemma.
Traps     sizes must not be rounded one by one: the error would grow with k.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from domain.pipeline import Pipeline
from domain.problem import Problem
from solvers.kernels import active, exit_times_us, latencies_us, stage_times_us
from solvers.kernels.native_whole import whole_of
from solvers.line_problem import LineProblem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

OFFSETS = np.linspace(0.0, 1.0, 33)  # floor(X + u): 0 is the floor, 1/2 the nearest, 1 the ceiling
SEARCH_CELLS = 400_000  # matrix cells that one local search may evaluate in all
_ROUNDING_CELLS = 2_000_000  # and that all roundings of one cut may


def round_cut(
    problem: Problem,
    real_sizes: Floats,
    *,
    search_cells: int = SEARCH_CELLS,
) -> tuple[int, ...] | None:
    """Return the best whole-byte cut found near these sizes, or None where the limits admit none.

    The cumulative positions are rounded with several offsets (floor, nearest and ceiling among
    them), repaired into the limits and compared; then single cut positions move by one unit while
    that helps. C and NumPy give the same cut but for ties.
    """
    whole = whole_of(problem) if active.NATIVE is not None else None
    if active.NATIVE is not None and whole is not None:
        offsets, passes = _offsets(problem, real_sizes), _passes(problem, real_sizes, search_cells)
        taken, sizes = active.NATIVE.whole.rounded(whole, real_sizes, offsets, passes=passes)
        if taken:
            return None if sizes is None else tuple(sizes.tolist())
    found = [cut for cut in _rounded(problem, real_sizes) if cut is not None]
    if not found:
        return None
    cuts = np.array(found)
    latencies = latencies_us(problem.pipeline, cuts.astype(float))
    best = cuts[int(np.argmin(latencies))]
    improved = _improve(problem, best, search_cells)
    return tuple(improved.tolist())


def rounding_loss_us(problem: Problem) -> float:
    """Return what rounding a real cut may add to its latency, µs, whatever its count is.

    The rounding lemma (docs/theory.md sec. 6), for stages of one line each over the admitted
    sizes; infinite for others, of which it says nothing.
    """
    lines = LineProblem.of(problem)
    if lines is None:
        return float("inf")
    total, ends = float(lines.G.sum()), float(lines.G[0] + lines.G[-1]) / 2.0
    unit = problem.limits.alignment_bytes
    return unit * min(total - float(lines.G[0]), total - float(lines.G[-1]), total - ends)


def nearest_cut(problem: Problem, real_sizes: Floats) -> Ints | None:
    """Return the nearest multiples of the cumulative positions, moved into the limits; None where
    none.
    """
    unit = problem.limits.alignment_bytes
    positions = np.rint(np.cumsum(real_sizes)[:-1] / unit) * unit
    return _repair(problem, positions.astype(np.int64))


def _rounded(problem: Problem, real_sizes: Floats) -> list[Ints | None]:
    unit, count = problem.limits.alignment_bytes, len(real_sizes)
    positions = np.cumsum(real_sizes)[:-1] / unit
    places = np.floor(positions[None, :] + _offsets(problem, real_sizes)[:, None])
    if count > 1:
        places = np.unique(places, axis=0)
    return [_repair(problem, (place * unit).astype(np.int64)) for place in places]


def _offsets(problem: Problem, real_sizes: Floats) -> Floats:
    """All of them where there is time for that."""
    cells = len(OFFSETS) * len(real_sizes) * len(problem.pipeline)
    few: Floats = OFFSETS if cells <= _ROUNDING_CELLS else OFFSETS[[0, 16, 32]]
    return few


def _passes(problem: Problem, sizes: Floats | Ints, search_cells: int) -> int:
    """How many passes of the steepest descent fit."""
    count = len(sizes)
    return min(search_cells // (4 * count * len(problem.pipeline)), 4 * count) * (count > 1)


def _repair(problem: Problem, positions: Ints) -> Ints | None:
    """Move aligned cut positions as little as needed so that every size is within its limits.

    Forwards, each position is pushed into [previous + least, previous + greatest]; backwards,
    into what the last fragment and its predecessors still need. None where that cannot work.
    """
    count = len(positions) + 1
    if count == 1:
        return np.array([problem.message_bytes], dtype=np.int64)
    minimum, maximum = problem.aligned_sizes()
    low, high = _windows(problem, count, minimum, maximum)
    if (low > high).any():
        return None
    steps = np.arange(1, count, dtype=np.int64)
    positions = np.clip(positions, low, high)
    # Keeping sizes >= least means position - i*least never falls; <= greatest likewise from above.
    positions = np.maximum.accumulate(positions - steps * minimum) + steps * minimum
    positions = _rising_by_at_most(positions, maximum)
    sizes = np.diff(positions, prepend=0, append=problem.message_bytes)
    return sizes if problem.admits(tuple(int(size) for size in sizes)) else None


def _windows(problem: Problem, count: int, minimum: int, maximum: int) -> tuple[Ints, Ints]:
    """Where each inner position may lie, given the limits on both of its sides (aligned)."""
    size, limits = problem.message_bytes, problem.limits
    unit = limits.alignment_bytes
    steps = np.arange(1, count, dtype=np.int64)
    last_low = _up(size - problem.largest_fragment_bytes, unit)
    last_high = (size - limits.min_fragment_bytes) // unit * unit
    behind = count - 1 - steps
    low = np.maximum(steps * minimum, last_low - _products(behind, maximum, size))
    high = np.minimum(_products(steps, maximum, size), last_high - behind * minimum)
    return low, high


def _products(counts: Ints, maximum: int, cap: int) -> Ints:
    """counts * greatest, or the cap where that is less: the product may not fit 64 bits."""
    products: Ints = np.where(counts > cap // maximum, cap, counts * maximum)
    return products


def _rising_by_at_most(positions: Ints, maximum: int) -> Ints:
    """Lower positions so that each is at most `greatest` above the one before; the first stands."""
    if maximum * (len(positions) + 1) < 2**62:
        steps = np.arange(len(positions), dtype=np.int64) * maximum
        capped: Ints = np.minimum.accumulate(positions - steps) + steps
        return capped
    lowered = accumulate(positions.tolist(), lambda last, place: min(place, last + maximum))
    return np.fromiter(lowered, dtype=np.int64, count=len(positions))


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _improve(problem: Problem, sizes: Ints, search_cells: int) -> Ints:
    """Steepest descent: all 2(k-1) moves of one cut position by one unit, the best one taken."""
    for _ in range(_passes(problem, sizes, search_cells)):
        moved = _best_move(problem, sizes)
        if moved is None:
            break
        sizes = moved
    return sizes


def _best_move(problem: Problem, sizes: Ints) -> Ints | None:
    """The best cut that differs by one unit in one position, if it is better; limits are kept."""
    pipeline, unit = problem.pipeline, problem.limits.alignment_bytes
    t = stage_times_us(pipeline, sizes.astype(float))
    tau, rest = exit_times_us(t), exit_times_us(t[::-1, ::-1])[::-1, ::-1]
    best: tuple[float, int, int] = (float(tau[-1, -1]) * (1.0 - 1e-13), -1, 0)
    places = np.arange(len(sizes) - 1)
    for shift in (unit, -unit):
        pairs = np.stack([sizes[:-1] + shift, sizes[1:] - shift])
        moved_to = moved_us(pipeline, pairs, places, tau, rest)
        values = np.where(within(problem, pairs), moved_to, np.inf)
        i = int(np.argmin(values))
        best = min(best, (float(values[i]), i, shift))
    if best[1] < 0:
        return None
    moved = sizes.copy()
    moved[best[1]] += best[2]
    moved[best[1] + 1] -= best[2]
    return moved


def within(problem: Problem, pairs: Ints) -> NDArray[np.bool_]:
    """Return whether all sizes of each column lie within the limits."""
    low, high = problem.smallest_fragment_bytes, problem.largest_fragment_bytes
    inside: NDArray[np.bool_] = np.logical_and(pairs.min(axis=0) >= low, pairs.max(axis=0) <= high)
    return inside


def moved_us(pipeline: Pipeline, pairs: Ints, places: Ints, tau: Floats, rest: Floats) -> Floats:
    """Return the latency, without delay, after fragments i and i+1 take the sizes pairs[:, c]; i =
    places[c].

    The path up to fragment i-1 and the path from fragment i+2 on do not change: two rows of the
    recurrence join what lies before with what lies behind.
    """
    first, second = stage_times_us(pipeline, pairs.astype(float))
    none = np.zeros((1, tau.shape[1]))
    exits = np.vstack([none, tau])[places]
    behind = np.vstack([rest, none])[places + 2]
    for times in (first, second):
        ready = np.zeros(len(exits))
        for j in range(exits.shape[1]):
            ready = exits[:, j] = np.maximum(ready, exits[:, j]) + times[:, j]
    joined: Floats = (exits + behind).max(axis=1)
    return joined
