"""The search for the best repeated size: supporting lines on convex pieces, all pieces at once.

Source    theory.md sec. 2.
Notation  q: full fragments; s = a z: their size, a the alignment; r = B - q s < s: the remainder;
          m, M: least and greatest size; (g, G), (h, H): lines of each stage for s and for r, (n, p)
          or (n, 1), µs and µs/byte; p pieces: (q, interval of z).
Cost      O(n) NumPy passes over the pieces left, a few rounds; never more than 2 log2(B) rounds.
Exact     over every admitted s with a remainder, to the rounding of one evaluation.
Traps     for one q the latency is convex in s only while neither s nor r changes its range, so each
          range's end splits the interval. Differences of neighbouring sizes drown in rounding for
          large messages; slopes are carried beside the values instead.

On a piece the latency is a longest path with linear costs, so the right derivative at any z gives a
supporting line. The lines at both ends of an interval meet below the least value in it: a piece
whose meeting point is no better than the best known value is done, and the others are evaluated
where their lines meet, in turn with the middle so that every interval also halves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from domain.pipeline import Stage
from domain.problem import Problem
from solvers.bounds import closed_form_us
from solvers.contract import Deadline
from solvers.kernels import range_arrays, stage_times_us

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SAMPLES = 64  # values of q that are searched first; they decide which others are worth it
CHUNK_CELLS = 2**16  # pieces * stages that are searched together


@dataclass(slots=True)
class Best:
    """The best size so far: latency without delay, full fragments and the size in bytes."""

    latency_us: float = float("inf")
    q: int = 0
    size: int = 0

    def offer(self, latency_us: Floats, q: Ints, size: Ints) -> None:
        """Take the least of these where it is better; of equals the fewest fragments."""
        if not len(latency_us) or latency_us.min() >= self.latency_us:
            return
        self.latency_us = float(latency_us.min())
        equals = np.flatnonzero(latency_us == self.latency_us)
        index = int(equals[int(np.argmin(q[equals]))])
        self.q, self.size = int(q[index]), int(size[index])


def search_remainders(problem: Problem, best: Best, deadline: Deadline) -> bool:
    """Improve `best` by sizes that leave a remainder; whether the deadline ended that early."""
    space = _Space(problem)
    q = space.q
    if not len(q):
        return False
    sample = np.unique(np.geomspace(1, len(q), SAMPLES).astype(np.int64)) - 1
    _search(space, q[sample], best)
    others = np.delete(q, sample)
    bound = closed_form_us(problem, others + 1) - problem.pipeline.delay_us
    others = others[bound < best.latency_us]
    if len(space.ends):
        others = others[space.min_us(others) < best.latency_us]
    for part in space.chunks(others):
        if deadline.passed and best.q:
            return True
        _search(space, part, best)
    return False


class _Space:
    """The sizes that the limits admit, and the cost lines on them."""

    def __init__(self, problem: Problem) -> None:
        counts = problem.count_range()
        self.total, self.unit = problem.message_bytes, problem.limits.alignment_bytes
        self.min_rest = problem.smallest_fragment_bytes
        self.minimum, self.maximum = problem.aligned_sizes()
        self.pipeline, self.stages = problem.pipeline, problem.pipeline.stages
        self.ends = _ends(self.stages, self.min_rest, problem.largest_fragment_bytes)
        self.q = np.arange(max(1, counts.minimum - 1), counts.maximum, dtype=np.int64)
        low, high = self.interval(self.q)
        self.q = self.q[low <= high]

    def interval(self, q: Ints) -> tuple[Ints, Ints]:
        """Least and greatest z with floor(B/s) = q, an admitted size and an admitted remainder."""
        low = np.maximum((self.total // (q + 1)) // self.unit + 1, self.minimum // self.unit)
        high = np.minimum((self.total - self.min_rest) // q, self.maximum) // self.unit
        return low, high

    def min_us(self, q: Ints) -> Floats:
        """No size of these q takes less: the full fragments alone, each stage at its cheapest size.

        A stage is cheapest at the least size, or where one of its next ranges starts.
        """
        low, high = self.interval(q)
        first, last = (low * self.unit)[::-1], (high * self.unit)[::-1]  # ascending and disjoint
        cheapest = stage_times_us(self.pipeline, first.astype(float))
        for j, stage in enumerate(self.pipeline.stages):
            for before, after in pairwise(stage.ranges):
                end = before.up_to_bytes or 0
                at = int(np.searchsorted(first, end, side="right")) - 1
                if at >= 0 and end < last[at]:
                    cheapest[at, j] = min(cheapest[at, j], after.line.time_us(end + 1))
        t = cheapest[::-1]
        minimum: Floats = t.sum(axis=1) + (q - 1) * t.max(axis=1)
        return minimum

    def chunks(self, q: Ints) -> Iterator[Ints]:
        """Parts of q small enough to be searched together."""
        length = max(1, CHUNK_CELLS // (len(self.stages) * (1 + 2 * len(self.ends))))
        for start in range(0, len(q), length):
            yield q[start : start + length]


def _ends(stages: tuple[Stage, ...], minimum: int, maximum: int) -> Ints:
    """Where some stage passes to its next range, within the admitted sizes."""
    ends = {part.up_to_bytes for stage in stages for part in stage.ranges}
    kept = sorted(end for end in ends if end is not None and minimum <= end < maximum)
    return np.array(kept, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Pieces of one q and an interval of z each, on which every stage has one line for s and r."""

    q: Ints
    low: Ints
    high: Ints
    g: Floats
    G: Floats
    h: Floats
    H: Floats

    def take(self, kept: NDArray[np.bool_]) -> _Pieces:
        lines = (x if x.shape[1] == 1 else x[:, kept] for x in (self.g, self.G, self.h, self.H))
        return _Pieces(self.q[kept], self.low[kept], self.high[kept], *lines)


def _pieces(space: _Space, q: Ints) -> _Pieces:
    low, high = space.interval(q)
    if len(space.ends):
        q, low, high = _split(space, q, low, high)
        s, rest = low * space.unit, space.total - q * low * space.unit
    else:
        s = rest = np.full(1, space.min_rest, dtype=np.int64)
    return _Pieces(q, low, high, *_lines_at(space.stages, s), *_lines_at(space.stages, rest))


def _split(space: _Space, q: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints, Ints]:
    """The intervals, cut where s or r passes from one range of some stage to the next."""
    column, ends = q[:, None], space.ends
    by_size = np.broadcast_to(ends // space.unit + 1, (len(q), len(ends)))  # s > end from here on
    by_rest = -((ends - space.total) // (column * space.unit))  # r <= end from here on
    first, last = low[:, None], high[:, None] + 1
    starts = np.sort(np.clip(np.hstack([first, by_size, by_rest]), first, last), axis=1)
    stops = np.hstack([starts[:, 1:], last]) - 1
    row, at = np.nonzero(starts <= stops)
    return q[row], starts[row, at], stops[row, at]


def _lines_at(stages: tuple[Stage, ...], size: Ints) -> tuple[Floats, Floats]:
    """The line of each stage at these sizes: (n, p) µs and µs/byte."""
    overhead, cost = [], []
    for stage in stages:
        ends, of_overhead, of_cost = range_arrays(stage)
        index = np.searchsorted(ends, size.astype(float), side="left")
        overhead.append(of_overhead[index])
        cost.append(of_cost[index] / 1000.0)
    return np.stack(overhead), np.stack(cost)


def _search(space: _Space, q: Ints, best: Best) -> None:
    """Offer the best size of these q."""
    pieces = _pieces(space, q)
    low, high = pieces.low, pieces.high
    ends = [_value_and_slope(space, pieces, z) for z in (low, high)]
    for (value, _), z in zip(ends, (low, high), strict=True):
        best.offer(value, pieces.q, z * space.unit)
    (f_low, d_low), (f_high, d_high) = ends
    halve = False
    while True:
        width = (high - low).astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = (f_low - f_high + d_high * width) / (d_high - d_low)
            alive = (high - low > 1) & (d_low < 0.0) & (d_high > 0.0)
            alive &= f_low + d_low * step < best.latency_us
        if not alive.any():
            return
        pieces, low, high, step = pieces.take(alive), low[alive], high[alive], step[alive]
        f_low, d_low, f_high, d_high = (x[alive] for x in (f_low, d_low, f_high, d_high))
        z = (low + high) // 2 if halve else low + step.astype(np.int64)
        z, halve = np.clip(z, low + 1, high - 1), not halve
        value, slope = _value_and_slope(space, pieces, z)
        best.offer(value, pieces.q, z * space.unit)
        falls = slope < 0.0
        low, high = np.where(falls, z, low), np.where(falls, high, z)
        f_low, f_high = np.where(falls, value, f_low), np.where(falls, f_high, value)
        d_low, d_high = np.where(falls, slope, d_low), np.where(falls, d_high, slope)


def _value_and_slope(space: _Space, pieces: _Pieces, z: Ints) -> tuple[Floats, Floats]:
    """Latency, without delay, at z, and its right derivative in z.

    Fragment q leaves stage j at sum_{l<=j} t_l + (q-1) max_{l<=j} t_l, and the remainder follows by
    the recurrence. Where two paths are equally long the steeper one leads to the right.
    """
    size = z * space.unit
    s, rest = size.astype(float), (space.total - pieces.q * size).astype(float)
    again, back = pieces.q - 1.0, -pieces.q.astype(float)
    total, total_slope = np.zeros(len(z)), np.zeros(len(z))
    longest, last = (total, total), (total, total)
    for g, G, h, H in zip(pieces.g, pieces.G, pieces.h, pieces.H, strict=True):
        t = g + G * s
        total, total_slope = total + t, total_slope + G
        longest = _longer(longest, (t, G))
        full = (total + again * longest[0], total_slope + again * longest[1])
        last = _longer(last, full)
        last = (last[0] + (h + H * rest), last[1] + back * H)
    return last[0], last[1] * space.unit


def _longer(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """The greater value with its slope; of equal values the greater slope."""
    take = (other[0] > one[0]) | ((other[0] == one[0]) & (other[1] > one[1]))
    return np.where(take, other[0], one[0]), np.where(take, other[1], one[1])
