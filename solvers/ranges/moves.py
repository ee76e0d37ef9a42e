"""Local search in whole bytes on stages with ranges: sizes snap to the ends of ranges.

Source    own derivation; theory sec. 1 (stages with ranges).
Notation  k fragments, n stages; a: alignment; targets: the last aligned size of each range and the
          first of the next; tau, rest: as in rounding.py.
Cost      O((E + log M) k n) for all moves between neighbours, E targets; O(k^2 n) for all others.
Exact     no: descent by the best move found, with written bounds on the work.
Traps     the cost jumps at the ends of ranges, so that small steps do not cross them; the optimum
          often lies exactly at an end, or one byte above.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.problem import Problem
from solvers.contract import Deadline
from solvers.kernels import cut_latency_us, exit_times_us, latencies_us, stage_times_us
from solvers.rounding import moved_us, nearest_cut, within

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_TARGETS = 64  # where there are more ends of ranges, sizes snap to evenly spaced ones only
WORTHWHILE = 1e-6  # relative gain below which a move ends a descent
_BATCH_CELLS = 250_000  # cells of the cuts of one kind of move that are evaluated
_ROUNDED = 3  # real cuts of one kind of move that are rounded


def targets_of(problem: Problem) -> Ints:
    """Return aligned sizes at the ends of ranges, within the limits: the last of one, the first
    after.
    """
    unit = problem.limits.alignment_bytes
    low, high = problem.smallest_fragment_bytes, problem.largest_fragment_bytes
    ends = {part.up_to_bytes for stage in problem.pipeline.stages for part in stage.ranges}
    sizes = {end // unit * unit for end in ends if end is not None}
    sizes |= {size + unit for size in sizes}
    found = np.array(sorted(size for size in sizes if low <= size <= high), dtype=np.int64)
    return found[:: max(1, -(-len(found) // MAX_TARGETS))]


def descend(
    problem: Problem,
    sizes: Ints,
    deadline: Deadline,
    *,
    cells: int,
    worthwhile: float = WORTHWHILE,
) -> tuple[Ints, int]:
    """Return the cut after one best move after the other, and how many of the cells are left.

    A move that gains less than `worthwhile`, relative to the latency, is not made.
    """
    targets, latency = targets_of(problem), cut_us(problem, sizes)
    while cells > 0:
        moved = None
        for kind in (_between_neighbours, _across_all, _between_any_two, _of_other_count):
            if deadline.passed:
                return sizes, 0
            move = kind(problem, sizes, targets)
            cells -= move.cells
            if move.latency_us < latency * (1.0 - worthwhile) and _admitted(problem, move.sizes):
                moved = move
                break
        if moved is None:
            break
        sizes, latency = moved.sizes, moved.latency_us
    return sizes, cells


def cut_us(problem: Problem, sizes: Ints) -> float:
    """Return the latency of one cut by the kernels, the delay included."""
    return cut_latency_us(problem.pipeline, sizes.astype(float))


@dataclass(frozen=True, slots=True)
class _Move:
    """The best cut of one neighbourhood, its latency (µs, delay included) and the work it took."""

    sizes: Ints
    latency_us: float
    cells: int


def _none(sizes: Ints, cells: int = 0) -> _Move:
    return _Move(sizes, float("inf"), cells)


def _admitted(problem: Problem, sizes: Ints) -> bool:
    return problem.admits(tuple(int(size) for size in sizes))


def _between_neighbours(problem: Problem, sizes: Ints, targets: Ints) -> _Move:
    """Bytes from one fragment to the next or back: powers of two, or what reaches a target."""
    count = len(sizes)
    if count == 1:
        return _none(sizes)
    stages, kinds = len(problem.pipeline), 100 + 3 * len(targets)
    some = _some(count - 1, stages * kinds // 4)
    amounts = _amounts(problem, sizes[some], sizes[some + 1], targets)
    places = np.broadcast_to(some, amounts.shape)[amounts != 0]
    taken = amounts[amounts != 0]
    pairs = np.stack([sizes[places] + taken, sizes[places + 1] - taken])
    kept = within(problem, pairs)
    places, pairs = places[kept], pairs[:, kept]
    cells = 4 * (len(places) + count) * stages
    if not len(places):
        return _none(sizes, cells)
    t = stage_times_us(problem.pipeline, sizes.astype(float))
    tau, rest = exit_times_us(t), exit_times_us(t[::-1, ::-1])[::-1, ::-1]
    values = moved_us(problem.pipeline, pairs, places, tau, rest)
    at = int(np.argmin(values))
    moved = sizes.copy()
    moved[[places[at], places[at] + 1]] = pairs[:, at]
    return _Move(moved, float(values[at]) + problem.pipeline.delay_us, cells)


def _amounts(problem: Problem, gains: Ints, loses: Ints, targets: Ints) -> Ints:
    """What may pass from fragments to others, (A, len(gains)); multiples of the alignment."""
    unit = problem.limits.alignment_bytes
    largest = int(max(gains.max(), loses.max()))
    powers = [unit << shift for shift in range(max(1, (largest // unit).bit_length()))]
    rows = [np.full(len(gains), sign * power) for power in powers for sign in (1, -1)]
    for target in targets:
        surplus = (loses - target) // unit * unit
        rows += [target - gains, surplus, surplus + unit]
    return np.stack(rows)


def _across_all(problem: Problem, sizes: Ints, targets: Ints) -> _Move:
    """One fragment to the next target above or below it; those at no target share the bytes."""
    count, stages = len(sizes), len(problem.pipeline)
    if count < 3 or not len(targets):
        return _none(sizes)
    places = _some(count, 2 * count * stages)
    above = np.searchsorted(targets, sizes[places], side="right")
    below = np.searchsorted(targets, sizes[places], side="left") - 1
    i, at = np.tile(places, 2), np.concatenate([above, below])
    inside = (at >= 0) & (at < len(targets))
    cuts = _respread(problem, sizes, i[inside], targets[at[inside]], np.isin(sizes, targets))
    cells = 2 * len(places) * count * stages
    if not len(cuts):
        return _none(sizes, cells)
    values = latencies_us(problem.pipeline, cuts)
    worth, best = cut_us(problem, sizes) * (1.0 - WORTHWHILE), _none(sizes, cells)
    for row in np.argsort(values, kind="stable")[:_ROUNDED]:
        whole = nearest_cut(problem, cuts[row]) if values[row] < worth else None
        latency = np.inf if whole is None else cut_us(problem, whole)
        if whole is not None and latency < best.latency_us:
            best = _Move(whole, latency, cells)
    return best


def _respread(
    problem: Problem, sizes: Ints, i: Ints, goals: Ints, held: NDArray[np.bool_]
) -> Floats:
    """Real cuts in which fragment i has its goal, a row each; rows that break a limit are left out.

    The other fragments, without those that are held unless all are, keep their shares of what they
    have above the least size.
    """
    rows, minimum = np.arange(len(i)), float(problem.smallest_fragment_bytes)
    had = np.tile(np.where(held, 0.0, sizes - minimum), (len(i), 1))
    had[rows, i] = 0.0
    stuck = had.sum(axis=1) <= 0.0
    had[stuck] = sizes - minimum
    had[rows, i] = 0.0
    total = had.sum(axis=1)
    left = total + sizes[i] - goals
    fits = (total > 0.0) & (left >= 0.0)
    had, rest, i, goals = (
        had[fits],
        (left / np.where(total > 0.0, total, 1.0))[fits],
        i[fits],
        goals[fits],
    )
    cuts = np.where(had > 0.0, minimum + had * rest[:, None], sizes)
    cuts[np.arange(len(i)), i] = goals
    kept: Floats = cuts[(cuts.max(axis=1, initial=0.0) <= problem.largest_fragment_bytes)]
    return kept


def _between_any_two(problem: Problem, sizes: Ints, targets: Ints) -> _Move:
    """As between neighbours, for any two fragments; where there are few of them."""
    count = len(sizes)
    if count < 3 or count**3 * len(problem.pipeline) > _BATCH_CELLS:
        return _none(sizes)
    i, other = np.nonzero(~np.eye(count, dtype=bool))
    amounts = _amounts(problem, sizes[i], sizes[other], targets)
    if amounts.size * count * len(problem.pipeline) > _BATCH_CELLS:
        return _none(sizes)
    row, pair = np.nonzero(amounts)
    taken = amounts[row, pair]
    cuts = np.tile(sizes, (len(row), 1))
    cuts[np.arange(len(row)), i[pair]] += taken
    cuts[np.arange(len(row)), other[pair]] -= taken
    return _best_of(problem, sizes, cuts)


def _of_other_count(problem: Problem, sizes: Ints, targets: Ints) -> _Move:
    """Two neighbours as one fragment, or one fragment as two."""
    counts, count = problem.count_range(), len(sizes)
    merged = split = _none(sizes)
    if count > counts.minimum:
        merged = _best_of(problem, sizes, _merged(problem, sizes))
    if count < counts.maximum:
        split = _best_of(problem, sizes, _split(problem, sizes, targets))
    best = min(merged, split, key=lambda move: move.latency_us)
    return _Move(best.sizes, best.latency_us, merged.cells + split.cells)


def _merged(problem: Problem, sizes: Ints) -> Ints:
    places = _some(len(sizes) - 1, len(sizes) * len(problem.pipeline))
    rows = [np.concatenate([sizes[:i], [sizes[i] + sizes[i + 1]], sizes[i + 2 :]]) for i in places]
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(sizes) - 1)


def _split(problem: Problem, sizes: Ints, targets: Ints) -> Ints:
    unit, rows = problem.limits.alignment_bytes, []
    work = len(sizes) * len(problem.pipeline) * (1 + 2 * len(targets))
    for i in _some(len(sizes), work):
        size = int(sizes[i])
        parts = {size // 2 // unit * unit} | {int(target) for target in targets}
        parts |= {(size - int(target)) // unit * unit for target in targets}
        rows += [
            np.concatenate([sizes[:i], [part, size - part], sizes[i + 1 :]])
            for part in sorted(part for part in parts if 0 < part < size)
        ]
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(sizes) + 1)


def _some(count: int, cells_each: int) -> Ints:
    """All places, evenly spaced ones where all are too much work, none where one is."""
    maximum = _BATCH_CELLS // max(1, cells_each)
    if not maximum:
        return np.zeros(0, dtype=np.int64)
    return np.arange(0, count, max(1, -(-count // maximum)), dtype=np.int64)


def _best_of(problem: Problem, sizes: Ints, cuts: Ints) -> _Move:
    """The best of these cuts of one count that keeps the limits on sizes."""
    low, high = problem.smallest_fragment_bytes, problem.largest_fragment_bytes
    cells = cuts.size * len(problem.pipeline)
    cuts = cuts[(cuts.min(axis=1) >= low) & (cuts.max(axis=1) <= high)] if len(cuts) else cuts
    if not len(cuts):
        return _none(sizes, cells)
    values = latencies_us(problem.pipeline, cuts.astype(float))
    at = int(np.argmin(values))
    return _Move(cuts[at], float(values[at]), cells)
