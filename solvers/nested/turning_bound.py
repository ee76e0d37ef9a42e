"""A lower bound for messages of few units: laws of the bytes at which a path turns.

Source    docs/theory.md sec. 23.
Notation  n stages; p_j: the byte at which the path leaves stage j; D_j(s) = Pr(p_j <= s); places
          0..p-1 where cuts may end.
Cost      up to TURNING_ROWS rows of linear programs, for messages of at most TURNING_UNITS units.
Exact     a bound; branching on counts ends next to the latency that is known.

Derivation. Choose bytes p_1 <= ... <= p_{n-1} by any law, p_0 the first and
p_n the last one. The path that leaves stage j by its block with byte p_j has every block of j with
a byte from p_{j-1} to p_j, so that T is at least the mean over the law of these blocks' times. With
D_j(s) = Pr(p_j <= s) a block (s, e] of stage j counts D_{j-1}(e) - D_j(s) times, whatever the other
stages do: the bound is a sum over stages of shortest paths over the places of cuts, with every
stage's overheads, and the best law follows from a linear program. A mean over cuts of different
counts may be below each of them, so the counts are branched on.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domain.problem import Problem
from solvers.contract import Deadline
from solvers.kernels import stage_times_us

_SAFETY = 1.0 - 1e-12  # the sums and the lines through hull points are rounded

TURNING_UNITS = 24  # more, and the linear programs take longer than the bound is worth
TURNING_ROWS = 12_000  # of all linear programs for one bound,
_MAX_ROWS = 1_600  # and of each of them: some 50 ms
CLOSED = 1e-6  # below the latency that is known, relative: where branching ends
_WHOLE = 1e-6  # a mean count nearer to a whole number is one

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def turning_bound_us(problem: Problem, known_us: float, deadline: Deadline) -> float:
    """Return the bound by laws of turning bytes, without the delay; 0 where units or stages are
    too many, or there is no time.

    Branch and bound on the number of blocks of each stage, the least bound first, until that is
    next to what is known or TURNING_ROWS are used up.
    """
    units = -(-problem.message_bytes // problem.limits.alignment_bytes)
    if units > TURNING_UNITS or len(problem.pipeline) < 2 or deadline.passed:
        return 0.0
    if len(problem.pipeline) * units * (units + 1) // 2 > _MAX_ROWS:
        return 0.0
    turning = _Turning.of(problem)
    low, high = turning.count_range()
    high = min(high, problem.count_range().maximum)
    order = count()
    first = np.full((2, len(problem.pipeline)), [[low], [high]])
    heap = [(*turning.bound(first), next(order), first)]
    rows = 0
    while heap[0][0] < known_us * (1.0 - CLOSED) and rows < TURNING_ROWS and not deadline.passed:
        bound_us, means, _, counts = heap[0]
        stage, last = _split(means, counts)
        if counts[0, stage] == counts[1, stage]:
            break  # every count is settled
        heappop(heap)
        for side, end in ((1, last), (0, last + 1)):
            part = counts.copy()
            part[side, stage] = end
            found_us, found = turning.bound(part)
            heappush(heap, (max(found_us, bound_us), found, next(order), part))
            rows += turning.rows
    return heap[0][0] * _SAFETY


def _split(means: tuple[float, ...], counts: Ints) -> tuple[int, int]:
    """The stage whose mean count is farthest from a whole one, and the last count below it."""
    mean = np.array(means)
    is_open = counts[0] < counts[1]
    broken = np.where(is_open, np.abs(mean - np.rint(mean)), -1.0)
    stage = int(broken.argmax())
    if broken[stage] < _WHOLE:
        stage = int((counts[1] - counts[0]).argmax())
    last = floor(mean[stage] + _WHOLE)
    return stage, int(np.clip(last, counts[0, stage], max(counts[0, stage], counts[1, stage] - 1)))


@dataclass(frozen=True, slots=True)
class _Turning:
    """The linear program over the laws, for places 0..p-1 where cuts may end and n stages.

    Arcs are blocks (start, end) of a stage that the limits admit, `cost_us` each. The columns are
    D_j at the inner places, the length of a shortest path to each place but the first, and what a
    block more and a block fewer is worth in each stage; `matrix` has a row an arc, and behind these
    the rows that keep each D_j a distribution and in order; none is above `right_us`.
    """

    places: int
    stages: int
    arcs: tuple[Ints, Ints, Ints]  # stage, start, end
    cost_us: Floats
    matrix: Any  # sparse, which the program takes and its types do not say
    right_us: Floats

    @classmethod
    def of(cls, problem: Problem) -> _Turning:
        total, unit = problem.message_bytes, problem.limits.alignment_bytes
        ends = np.append(np.arange(0, total, unit), total)
        sizes = ends[None, :] - ends[:, None]
        smallest = problem.limits.min_fragment_bytes
        fits = (sizes >= 1) & (sizes <= problem.largest_fragment_bytes)
        fits &= (sizes >= smallest) | (sizes == total)
        places, stages = len(ends), len(problem.pipeline)
        start, end = np.nonzero(fits)
        times = stage_times_us(problem.pipeline, sizes[fits].astype(float)).T
        stage = np.repeat(np.arange(stages), len(start))
        arcs = (stage, np.tile(start, stages), np.tile(end, stages))
        return cls(places, stages, arcs, times.ravel(), *_rows(places, stages, arcs, times.ravel()))

    @property
    def rows(self) -> int:
        """How many the linear program has."""
        return len(self.right_us)

    def count_range(self) -> tuple[int, int]:
        """The least and the greatest number of blocks of a cut that the limits admit."""
        fewest, most = np.full(self.places, np.inf), np.full(self.places, -np.inf)
        fewest[0] = most[0] = 0.0
        is_first = self.arcs[0] == 0
        for end in range(1, self.places):
            start = self.arcs[1][is_first & (self.arcs[2] == end)]
            fewest[end] = min(fewest[start] + 1.0, default=np.inf)
            most[end] = max(most[start] + 1.0, default=-np.inf)
        return int(fewest[-1]), int(most[-1])

    def bound(self, counts: Ints) -> tuple[float, tuple[float, ...]]:
        """Return a bound, without the delay, on cuts of counts[0] to counts[1] blocks a stage, and
        the mean counts that go with it.

        What the program finds is taken for a law and for prices alone: the bound is computed anew.
        """
        from scipy.optimize import linprog

        inner, paths = (self.stages - 1) * (self.places - 2), self.stages * (self.places - 1)
        gain = np.zeros(self.matrix.shape[1])
        gain[inner + np.arange(1, self.stages + 1) * (self.places - 1) - 1] = -1.0
        gain[inner + paths :] = np.concatenate([counts[1], -counts[0]])
        free = [(0.0, 1.0)] * inner + [(None, None)] * paths + [(0.0, None)] * (2 * self.stages)
        found = linprog(gain, self.matrix, self.right_us, bounds=free, method="highs")
        if found.x is None:
            return 0.0, tuple(counts.mean(axis=0))
        law = np.clip(found.x[:inner].reshape(self.stages - 1, -1), 0.0, 1.0)
        law = np.minimum.accumulate(np.maximum.accumulate(law, axis=1), axis=0)
        more, fewer = np.maximum(found.x[inner + paths :], 0.0).reshape(2, -1)
        flow = -found.ineqlin.marginals[: len(self.cost_us)]
        means = np.bincount(self.arcs[0], flow, minlength=self.stages)
        price_us = float(fewer @ counts[0] - more @ counts[1])
        return self._shortest_us(law, more - fewer) + price_us, tuple(means.tolist())

    def _shortest_us(self, law: Floats, block_us: Floats) -> float:
        """The sum over stages of the shortest cuts, by this law and with a price a block."""
        before = np.ones((self.stages + 1, self.places))
        before[1:-1, 1:-1], before[1:, 0], before[-1, :-1] = law, 0.0, 0.0
        stage, start, end = self.arcs
        weight = before[stage, end] - before[stage + 1, start]
        cost_us = self.cost_us * np.maximum(weight, 0.0) + block_us[stage]
        lengths = np.full((self.stages, self.places), np.inf)
        lengths[:, 0] = 0.0
        for place in range(1, self.places):
            into = end == place
            np.minimum.at(
                lengths[:, place], stage[into], lengths[stage[into], start[into]] + cost_us[into]
            )
        return float(lengths[:, -1].sum())


def _rows(
    places: int, stages: int, arcs: tuple[Ints, Ints, Ints], cost_us: Floats
) -> tuple[Any, Floats]:
    """The matrix and the right side: a path is no longer than its arcs, each as often as it is met;
    D_j ascends and is no greater than D_{j-1}.
    """
    from scipy.sparse import csr_array

    stage, start, end = arcs
    inner = places - 2
    paths, prices = (stages - 1) * inner, (stages - 1) * inner + stages * (places - 1)
    row = np.arange(len(stage))
    starts, turns_in = start > 0, (stage > 0) & (end < places - 1)
    turns_out = (stage < stages - 1) & starts
    entries = [
        (row, paths + stage * (places - 1) + end - 1, np.ones(len(row))),
        (row[starts], (paths + stage * (places - 1) + start - 1)[starts], -np.ones(starts.sum())),
        (row[turns_in], ((stage - 1) * inner + end - 1)[turns_in], -cost_us[turns_in]),
        (row[turns_out], (stage * inner + start - 1)[turns_out], cost_us[turns_out]),
        (row, prices + stage, -np.ones(len(row))),
        (row, prices + stages + stage, np.ones(len(row))),
    ]
    laws = np.arange((stages - 1) * inner).reshape(stages - 1, inner)
    pairs = np.concatenate(
        [
            np.stack([laws[:, :-1].ravel(), laws[:, 1:].ravel()]),
            np.stack([laws[1:].ravel(), laws[:-1].ravel()]),
        ],
        axis=1,
    )
    further = len(row) + np.arange(pairs.shape[1])
    entries += [
        (further, pairs[0], np.ones(len(further))),
        (further, pairs[1], -np.ones(len(further))),
    ]
    rows, columns, values = map(np.concatenate, zip(*entries, strict=True))
    shape = (len(row) + len(further), prices + 2 * stages)
    right_us = np.zeros(shape[0])
    always = (stage == 0) | (end == places - 1)
    right_us[: len(row)][always] = cost_us[always]
    return csr_array((values, (rows, columns)), shape=shape), right_us
