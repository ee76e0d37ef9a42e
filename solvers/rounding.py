"""Real sizes to whole, aligned sizes that sum to the message, within all limits.

Source    theory sec. 1 (whole bytes); results sec. 4 (rounding lemma).
Notation  a: alignment; x: (k,) real sizes; X: (k-1,) inner cut positions, cumulative; n stages.
Cost      O(k) for the three roundings; the local search O(k^2 n) a pass, kept within a budget.
Exact     no: rounding to a adds at most a*min(sum G_1.., sum ..G_{n-2}, sum G - (G_0+G_{n-1})/2),
          whatever k is; tests/solvers/test_rounding.py checks the lemma.
Traps     sizes must not be rounded one by one: the error would grow with k.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from domain.problem import Problem
from solvers.kernels import latencies_us

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SEARCH_CELLS = 400_000  # matrix cells that one local search may evaluate in all


def round_cut(
    problem: Problem, real_sizes: Floats, *, search_cells: int = SEARCH_CELLS
) -> tuple[int, ...] | None:
    """The best whole-byte cut found near these sizes, or None where the limits admit none.

    Floors, ceilings and nearest multiples of the cumulative positions are repaired into the limits
    and compared; then single cut positions move by one unit while that helps.
    """
    found = [cut for cut in _rounded(problem, real_sizes) if cut is not None]
    if not found:
        return None
    cuts = np.array(found)
    best = cuts[int(np.argmin(latencies_us(problem.pipeline, cuts.astype(float))))]
    improved = _improve(problem, best, search_cells)
    return tuple(int(size) for size in improved)


def _rounded(problem: Problem, real_sizes: Floats) -> list[Ints | None]:
    unit = problem.limits.alignment_bytes
    positions = np.cumsum(real_sizes)[:-1] / unit
    snapped = (np.floor(positions), np.ceil(positions), np.rint(positions))
    return [_repair(problem, (place * unit).astype(np.int64)) for place in snapped]


def _repair(problem: Problem, positions: Ints) -> Ints | None:
    """Move aligned cut positions as little as needed so that every size is within its limits.

    Forwards, each position is pushed into [previous + least, previous + greatest]; backwards,
    into what the last fragment and its predecessors still need. None where that cannot work.
    """
    count = len(positions) + 1
    if count == 1:
        return np.array([problem.message_bytes], dtype=np.int64)
    least, greatest = problem.aligned_sizes()
    low, high = _windows(problem, count, least, greatest)
    if (low > high).any():
        return None
    steps = np.arange(1, count, dtype=np.int64)
    positions = np.clip(positions, low, high)
    # Keeping sizes >= least means position - i*least never falls; <= greatest likewise from above.
    positions = np.maximum.accumulate(positions - steps * least) + steps * least
    positions = np.minimum.accumulate(positions - steps * greatest) + steps * greatest
    sizes = np.diff(positions, prepend=0, append=problem.message_bytes)
    return sizes if problem.admits(tuple(int(size) for size in sizes)) else None


def _windows(problem: Problem, count: int, least: int, greatest: int) -> tuple[Ints, Ints]:
    """Where each inner position may lie, given the limits on both of its sides (aligned)."""
    size, limits = problem.message_bytes, problem.limits
    unit = limits.alignment_bytes
    steps = np.arange(1, count, dtype=np.int64)
    last_low = _up(size - problem.greatest_fragment_bytes, unit)
    last_high = (size - limits.min_fragment_bytes) // unit * unit
    behind = count - 1 - steps
    low = np.maximum(steps * least, last_low - behind * greatest)
    high = np.minimum(steps * greatest, last_high - behind * least)
    return low, high


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _improve(problem: Problem, sizes: Ints, search_cells: int) -> Ints:
    """Steepest descent: all 2(k-1) moves of one cut position by one unit, best first."""
    count, width = len(sizes), len(problem.pipeline)
    moves = 2 * (count - 1)
    budget = search_cells // max(1, moves * count * width)
    value = float(latencies_us(problem.pipeline, sizes[None, :].astype(float))[0])
    for _ in range(min(budget, 4 * count)):
        neighbours = _admitted_moves(problem, sizes)
        if not len(neighbours):
            break
        values = latencies_us(problem.pipeline, neighbours.astype(float))
        best = int(np.argmin(values))
        if values[best] >= value:
            break
        value, sizes = float(values[best]), neighbours[best]
    return sizes


def _admitted_moves(problem: Problem, sizes: Ints) -> Ints:
    """The cuts that differ by one unit in one position and keep the limits, (m, k)."""
    unit, inner = problem.limits.alignment_bytes, len(sizes) - 1
    index = np.arange(inner)
    shift = np.zeros((2 * inner, inner + 1), dtype=np.int64)
    shift[index, index], shift[index, index + 1] = unit, -unit
    shift[inner + index, index], shift[inner + index, index + 1] = -unit, unit
    cuts = sizes[None, :] + shift
    low, high = problem.least_fragment_bytes, problem.greatest_fragment_bytes
    kept: Ints = cuts[((cuts >= low) & (cuts <= high)).all(axis=1)]
    return kept
