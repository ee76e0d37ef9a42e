"""Compound stages: how many pieces a block is cut into inside a group, and what the group costs.

Source    Wang98 sec. 4.3.1 and 5.5; theory sec. 5.
Notation  x: (X,) block sizes, bytes; q: pieces that a block is cut into; c(x) = min_q [sum_j
          t_j(x/q) + (q-1) max_j t_j(x/q)], µs; most: (X,) greatest q that the limits admit.
Cost      O(X |q| n) NumPy work for a flat group; a nested one multiplies it by the grid of q.
Exact     a flat group's q is the best one where c is convex in q (stages of one line); a nested
          group's q is taken from a grid.
Traps     c is the convention of sec. 5.5: the compound stage is free when its last stage is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.hierarchy import Grouping
from domain.pipeline import Pipeline
from domain.problem import Problem
from solvers.kernels import stage_times_us

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NESTED_DEPTH = 2  # compound stages within compound stages, below the first split
_REFINE_AT = np.linspace(0.0, 1.0, 16)  # points between the neighbours of the best q


@dataclass(frozen=True, slots=True)
class Pieces:
    """c(x) in µs, (X,), and the number of pieces of a block at each stage of the group, (X, n)."""

    time_us: Floats
    counts: Ints


def plan_pieces(pipeline: Pipeline, group: Grouping, x: Floats, maximum: Floats) -> Pieces:
    """Return the best pieces for blocks of x bytes in this group, by the convention."""
    if group.slow is None:
        return _flat(pipeline, group, x, maximum)
    grid = _grid(float(maximum.max()))
    q = np.minimum(grid[None, :], np.maximum(1.0, np.floor(maximum))[:, None])
    time_us, counts = split_plan(pipeline, group, x[:, None] / q, q, maximum[:, None] / q)
    best = np.argmin(time_us, axis=1)
    rows = np.arange(len(x))
    return Pieces(time_us[rows, best], counts[rows, best])


def split_plan(
    pipeline: Pipeline, group: Grouping, y: Floats, q: Floats, maximum: Floats
) -> tuple[Floats, Ints]:
    """Return the convention time and pieces of q equal blocks of y bytes around the group's slow
    stage.

    y, q and most have one shape; the times have it too, the pieces one axis more, a stage each.
    """
    if group.slow is None:
        raise ValueError("expected a group with a slow stage")
    sizes, back = np.unique(y, return_inverse=True)
    room = np.full(len(sizes), np.inf)
    np.minimum.at(room, back.ravel(), maximum.ravel())
    slow_us = _times(pipeline, group.slow, group.slow, sizes)[:, 0]
    total_us, slowest_us = slow_us.copy(), slow_us.copy()
    counts = np.ones((len(sizes), len(group)), dtype=np.int64)
    for part in group.parts():
        inner = plan_pieces(pipeline, part, sizes, np.maximum(1.0, room))
        total_us += inner.time_us
        slowest_us = np.maximum(slowest_us, inner.time_us)
        start = part.first - group.first
        counts[:, start : start + len(part)] = inner.counts
    back = back.reshape(y.shape)
    time_us = total_us[back] + (q - 1.0) * slowest_us[back]
    return time_us, counts[back] * q[..., None].astype(np.int64)


def grouping_for(
    pipeline: Pipeline, first: int, last: int, size: float, maximum: float, *, depth: int
) -> Grouping:
    """Return the group flat, or split around the stage slowest for this size: what the convention
    prefers.

    The parts of a split are grouped in the same way for the blocks that the split makes.
    """
    flat = Grouping(first, last)
    if depth == 0 or len(flat) < 3:
        return flat
    x, room = np.array([size]), np.array([maximum])
    times = _times(pipeline, first, last, x)[0]
    slow = first + int(np.argmax(times))
    split = split_at(first, last, slow)
    best = plan_pieces(pipeline, split, x, room)
    if best.time_us[0] >= plan_pieces(pipeline, flat, x, room).time_us[0]:
        return flat
    blocks = float(best.counts[0, slow - first])
    return regrouped(pipeline, split, size / blocks, maximum / blocks, depth=depth - 1)


def split_at(first: int, last: int, slow: int) -> Grouping:
    """Return the group split around this stage, with flat parts."""
    before = Grouping(first, slow - 1) if slow > first else None
    behind = Grouping(slow + 1, last) if slow < last else None
    return Grouping(first, last, slow, before, behind)


def regrouped(
    pipeline: Pipeline, split: Grouping, size: float, maximum: float, *, depth: int
) -> Grouping:
    """Return the same split with each part grouped anew for blocks of this size."""
    before, behind = (
        part and grouping_for(pipeline, part.first, part.last, size, maximum, depth=depth)
        for part in (split.before, split.behind)
    )
    return Grouping(split.first, split.last, split.slow, before, behind)


def levels_of(problem: Problem, grouping: Grouping, blocks: Ints, counts: Ints) -> list[Ints]:
    """Return the cut of every stage: blocks (k,) cut into counts (k or 1, n) pieces, within the
    limits.

    Finer cuts divide the pieces of the group around them, so that cuts are nested. A number of
    pieces that the limits forbid is lowered. Stages of a flat group share one array.
    """
    maximum = problem.count_range().maximum
    levels = [blocks] * len(grouping)

    def fill(group: Grouping, around: Ints, wanted: Ints) -> None:
        stage = group.first if group.slow is None else group.slow
        pieces = _admitted_pieces(problem, around, wanted[:, stage], maximum)
        cut = _split(around, pieces, problem.limits.alignment_bytes)
        if group.slow is None:
            levels[group.first : group.last + 1] = [cut] * len(group)
            return
        levels[stage] = cut
        inner = np.repeat(wanted // wanted[:, stage : stage + 1], pieces, axis=0)
        for part in group.parts():
            fill(part, cut, inner)

    fill(grouping, blocks, np.broadcast_to(counts, (len(blocks), counts.shape[1])))
    return levels


def _admitted_pieces(problem: Problem, blocks: Ints, wanted: Ints, maximum: int) -> Ints:
    unit = problem.limits.alignment_bytes
    minimum, _ = problem.aligned_sizes()
    pieces: Ints = np.clip(wanted, 1, np.maximum(1, (blocks // unit) // (minimum // unit)))
    total = int(pieces.sum())
    if total <= maximum:
        return pieces
    share = max(0, maximum - len(blocks)) / total
    lowered: Ints = np.maximum(1, np.floor(pieces * share)).astype(np.int64)
    return lowered


def _split(blocks: Ints, pieces: Ints, unit: int) -> Ints:
    """Each block in nearly equal, aligned pieces; what does not align goes to its last piece."""
    if int(pieces.max()) == 1:
        return blocks
    units = blocks // unit
    base, extra = np.divmod(units, pieces)
    ends = np.cumsum(pieces)
    place = np.arange(int(ends[-1])) - np.repeat(ends - pieces, pieces)
    out: Ints = (np.repeat(base, pieces) + (place < np.repeat(extra, pieces))) * unit
    out[ends - 1] += blocks - units * unit
    return out


def _flat(pipeline: Pipeline, group: Grouping, x: Floats, maximum: Floats) -> Pieces:
    stages = pipeline.stages[group.first : group.last + 1]
    shape = (len(x), len(stages))
    if len(stages) == 1 and stages[0].is_line:
        return Pieces(_times(pipeline, group.first, group.last, x)[:, 0], np.ones(shape, np.int64))
    top = np.maximum(1.0, np.floor(maximum))[:, None]
    q = np.minimum(_grid(float(top.max()))[None, :], top)
    rows = np.arange(len(x))
    best_us, best_q = np.full(len(x), np.inf), np.ones(len(x))
    while True:
        time_us = _equal_us(pipeline, group, x, q)
        at = np.argmin(time_us, axis=1)
        better = time_us[rows, at] < best_us
        best_us = np.where(better, time_us[rows, at], best_us)
        best_q = np.where(better, q[rows, at], best_q)
        low = q[rows, np.maximum(at - 1, 0)]
        high = q[rows, np.minimum(at + 1, q.shape[1] - 1)]
        if float((high - low).max()) <= 2.0:
            break
        q = np.rint(low[:, None] + (high - low)[:, None] * _REFINE_AT)
    counts = np.broadcast_to(best_q.astype(np.int64)[:, None], shape)
    return Pieces(best_us, counts)


def _equal_us(pipeline: Pipeline, group: Grouping, x: Floats, q: Floats) -> Floats:
    t = _times(pipeline, group.first, group.last, x[:, None] / q)
    time_us: Floats = t.sum(axis=-1) + (q - 1.0) * t.max(axis=-1)
    return time_us


def _times(pipeline: Pipeline, first: int, last: int, x: Floats) -> Floats:
    return stage_times_us(Pipeline(pipeline.stages[first : last + 1]), x)


def _grid(top: float) -> Floats:
    """Whole numbers from 1 to top: the first eight, then about a quarter apart."""
    top = max(1.0, np.floor(top))
    steps = 1 + int(np.ceil(np.log(max(1.0, top / 8.0)) / np.log(1.25)))
    coarse = np.rint(np.geomspace(8.0, max(8.0, top), steps + 1))
    grid: Floats = np.unique(np.concatenate([np.arange(1.0, 9.0), coarse]))
    kept: Floats = grid[grid <= top]
    return kept


def occupied_us(pipeline: Pipeline, group: Grouping, x: Floats, counts: Ints) -> Floats:
    """Return how long each block of x bytes, in counts (X, n) pieces, occupies its busiest stage,
    (X,).
    """
    busiest = np.zeros(len(x))
    for j in range(group.first, group.last + 1):
        pieces = counts[:, j - group.first].astype(float)
        busiest = np.maximum(busiest, pieces * _times(pipeline, j, j, x / pieces)[:, 0])
    return busiest
