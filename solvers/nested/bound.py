"""A proven lower bound on every schedule whose stages may cut the message differently.

Source    theory sec. 5 (the weak bound); the three-stage bound is derived below.
Notation  n stages; g, G: µs and µs/byte; B: message; m, M: least and greatest block; s < b < e:
          three stages; k: blocks of stage b; x_0..x_{k-1}: their sizes; p_i = x_0 + … + x_i.
Cost      O(n) to rank the stages, then a search over k with linear programs of at most 3 stages,
          for the few most promising b, within SEARCH_CELLS; for messages of at most TURNING_UNITS
          units, up to TURNING_ROWS rows of linear programs more.
Exact     a bound, an optimum only for a single stage of one line.
Traps     a stage other than b may cut as finely or as coarsely as it likes, so that it pays its
          overhead once and its bytes as a stream: no more may be counted for it.

Derivation. Let every stage j have its own blocks, all within [m, M]; a block starts when its
predecessor in the stage has ended and when the block of the stage before that holds its last byte
has ended. Fix stages s < b < e (s or e may be missing) and look at the blocks i ≤ i' of stage b.
  (1) Block i of b ends with byte p_i. Stage s has then handled at least p_i bytes, in at least one
      block, after its own first block has crossed the stages before s, each for at least
      g_j + m G_j. The last of these blocks is followed through each stage between s and b by a
      block, of at least m bytes, that holds its last byte and cannot start before it has ended.
      So block i starts no earlier than Σ_{j<b, j≠s}(g_j + m G_j) + g_s + p_i G_s.
  (2) Stage b then handles blocks i..i' one after the other: Σ_{l=i..i'} (g_b + x_l G_b).
  (3) A block of stage b+1, …, e whose last byte is not before the first byte of block i' starts
      only after block i' has ended and, by induction, after a block of each stage in between has
      taken at least g_j + m G_j. In stage e such blocks hold all bytes from the first byte of
      block i' on: at least g_e + (B - p_{i'-1}) G_e. Then the last block crosses the stages
      behind e.
The sum of (1) to (3) is Σ_{j≠s,b,e}(g_j + m G_j) + g_s + g_e plus the length of a lattice path
through the pipeline (0, G_s), (g_b, G_b), (0, G_e) cut into x, and every lattice path of it is met
(one that turns at blocks i and i' has x_0 + … + x_i in the first stage, x_{i'} + … in the last):

    T ≥ Σ_{j≠s,b,e} (g_j + m G_j) + g_s + g_e + min_k T*_k[(0, G_s), (g_b, G_b), (0, G_e)],

where T*_k is the optimum over one shared cut into k real sizes within [m, M]: `CountSearch` bounds
its minimum over k. It is never below the weak bound k_b g_b + B G_b + Σ_{j≠b}(g_j + m G_j).

Stages that hand bytes on as they move. Such a stage is never slower than one that pays its least
overhead g_j once and then hands on single bytes, each G_j after the one before: byte p of a block
that starts at S is handed on no earlier than S + g_j + G_j p, and a block starts after its last
byte is there, so that by induction over the blocks byte p of the message is handed on no earlier
than g_j + (the exit of byte p from the stage (0, G_j) in blocks of one byte). So for any stage b,
the stages before it that hand bytes on being replaced like that and their overheads added, the
bound above on the pipeline 0..b, with blocks of one byte and more, holds for the exit of b's last
block; b itself hands on to nobody there. The middle stage is never one that was replaced, whose
single bytes no greatest count limits. Behind b the last block of each stage holds the last byte and
starts when that has left the stage before: at least g_j + 1 byte G_j more. The greatest over b
counts. (In a stage with ranges g_j and G_j are the least of all of them: inside a block its own
line counts, and none below the cost of whole blocks.)

Messages of few units (theory 23). Choose bytes p_1 <= ... <= p_{n-1} by any law, p_0 the first and
p_n the last one. The path that leaves stage j by its block with byte p_j has every block of j with
a byte from p_{j-1} to p_j, so that T is at least the mean over the law of these blocks' times. With
D_j(s) = Pr(p_j <= s) a block (s, e] of stage j counts D_{j-1}(e) - D_j(s) times, whatever the other
stages do: the bound is a sum over stages of shortest paths over the places of cuts, with every
stage's overheads, and the best law follows from a linear program. A mean over cuts of different
counts may be below each of them, so the counts are branched on.

Stages with ranges: any line with g, G ≥ 0 below the stage's convex minorant may stand for the stage
(each step above sums costs of blocks, and only lowers them); g_j + m G_j becomes the least cost of
an admitted block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count, pairwise
from math import floor, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domain.pipeline import MAX_NS_PER_BYTE, MAX_OVERHEAD_US, Line, Pipeline, Stage
from domain.problem import FragmentLimits, Problem
from solvers.bounds import closed_form_us
from solvers.contract import DEFAULT_RELATIVE_GAP, Deadline
from solvers.exact.count_search import CountSearch
from solvers.heuristics.fixed import best_count
from solvers.kernels import stage_times_us
from solvers.line_problem import LineProblem

SEARCH_CELLS = 1500  # k*n summed over the solves for one stage b
_SEARCHED_STAGES = 3  # the most promising choices of b that are searched
_NO_DEADLINE = Deadline(inf)
_LINE_ERROR = 1e-14  # relative error of a line through two vertices
_GUARD_S = 5.0  # a search is bounded by its work; this only guards against a solver that hangs
_SAFETY = 1.0 - 1e-12  # the sums and the lines through hull points are rounded
_REFERENCE_SHARE = 8  # stages are ranked by what they add to a prefix of this part of the message


def nested_lower_bound_us(
    problem: Problem, known_us: float = inf, deadline: Deadline = _NO_DEADLINE
) -> float:
    """Return the lower bound (µs, delay included) on all nested cuts that the limits admit.

    `known_us` is a latency that is known to be possible: coming nearer to it takes no more work,
    nor does what is past the deadline. Raises Infeasible where no cut satisfies the limits.
    """
    problem.count_range()
    if any(stage.handoff_bytes is not None for stage in problem.pipeline.stages[:-1]):
        return _handoff_us(problem) + problem.pipeline.delay_us
    delay_us = problem.pipeline.delay_us
    complete_us = _complete_us(problem)
    if complete_us < (known_us - delay_us) * (1.0 - _CLOSED):
        complete_us = max(complete_us, _turning_us(problem, known_us - delay_us, deadline))
    return complete_us + delay_us


def _handoff_us(problem: Problem) -> float:
    """The greatest of the bounds on the exit from a stage and what the stages behind it add."""
    whole = problem.pipeline.stages
    floors = [_floor_of(stage) for stage in whole]
    limits = replace(problem.limits, min_fragment_bytes=1, alignment_bytes=1)
    best_us = 0.0
    for b in range(len(whole)):
        before = [
            stage
            if stage.handoff_bytes is None
            else Stage.of_line(stage.name, overhead_us=0.0, ns_per_byte=floor.ns_per_byte)
            for stage, floor in zip(whole[:b], floors, strict=False)
        ]
        around_us = sum(
            floor.overhead_us
            for stage, floor in zip(whole[:b], floors, strict=False)
            if stage.handoff_bytes is not None
        ) + sum(floor.time_us(1) for floor in floors[b + 1 :])
        part = replace(problem, pipeline=Pipeline((*before, whole[b])), limits=limits)
        cut = [j for j in range(b + 1) if j == b or whole[j].handoff_bytes is None]
        best_us = max(best_us, _complete_us(part, cut) + around_us * _SAFETY)
    return best_us


def _floor_of(stage: Stage) -> Line:
    """The least overhead and the least per-byte cost of all ranges."""
    return Line(
        min(part.overhead_us for part in stage.ranges),
        min(part.ns_per_byte for part in stage.ranges),
    )


def _complete_us(problem: Problem, cut: Sequence[int] | None = None) -> float:
    """The bound, without the delay, where stages hand on whole blocks.

    `cut` are the stages whose blocks the greatest count limits, all of them without it.
    """
    stages = [_StageLines.of(problem, stage) for stage in problem.pipeline.stages]
    best_us = max(_weak_us(problem, stages, b) for b in range(len(stages)))
    if len(stages) > 1:
        middles = range(len(stages)) if cut is None else cut
        triples = [triple for b in middles for triple in _triples(problem, stages, b)]
        triples.sort(key=lambda triple: triple.likely_us(problem), reverse=True)
        for triple in triples[:_SEARCHED_STAGES]:
            best_us = max(best_us, triple.bound_us(problem))
    return best_us * _SAFETY


@dataclass(frozen=True, slots=True)
class _StageLines:
    """Lines (overhead_us, ns_per_byte ≥ 0) that lie below a stage's cost on the admitted sizes."""

    lines: tuple[Line, ...]
    min_us: float

    @classmethod
    def of(cls, problem: Problem, stage: Stage) -> _StageLines:
        minimum, maximum = problem.smallest_fragment_bytes, problem.largest_fragment_bytes
        line = stage.line_over(minimum, maximum)
        if line is not None:
            return cls((line,), line.time_us(minimum))
        return cls._of_ranges(stage, minimum, maximum)

    @classmethod
    def _of_ranges(cls, stage: Stage, minimum: int, maximum: int) -> _StageLines:
        hull = stage.minorant_points(minimum, maximum)
        min_us = min(cost for _, cost in hull) * _SAFETY
        per_byte_us = min(cost / size for size, cost in hull) * _SAFETY
        usable = [line for edge in pairwise(hull) if (line := _line_below(*edge)) is not None]
        usable += [Line(min_us, 0.0), Line(0.0, min(per_byte_us * 1000.0, MAX_NS_PER_BYTE))]
        return cls(tuple(usable), min_us)

    def as_stream(self, reference_bytes: float) -> tuple[Line, float]:
        """The line that adds most to a prefix of this size, and what it adds to one block."""
        line = max(self.lines, key=lambda line: line.time_us(reference_bytes))
        return line, line.time_us(reference_bytes) - self.min_us


@dataclass(frozen=True, slots=True)
class _Triple:
    """The relaxed pipeline (0, G_s), (g_b, G_b), (0, G_e), and the time that all else adds, µs."""

    before: Line | None
    middle: Line
    behind: Line | None
    around_us: float

    def likely_us(self, problem: Problem) -> float:
        """A guess at the bound, for ranking only: the best of one, two and three blocks."""
        size = float(problem.message_bytes)
        ends = [line.ns_per_byte / 1000.0 if line else 0.0 for line in (self.before, self.behind)]
        whole = self.middle.ns_per_byte / 1000.0 * size
        options = (
            self.middle.overhead_us + size * sum(ends),
            2.0 * self.middle.overhead_us + size * min(ends) / 2.0,
            3.0 * self.middle.overhead_us,
        )
        return self.around_us + whole + min(options)

    def bound_us(self, problem: Problem) -> float:
        """The proven bound, without the delay."""
        relaxed = self._relaxed(problem)
        lines = LineProblem.of(relaxed)
        if lines is None:
            raise AssertionError("a pipeline of lines")
        search = CountSearch.start(relaxed, lines)
        search.run(
            near=best_count(relaxed),
            relative_gap=DEFAULT_RELATIVE_GAP,
            deadline=Deadline.after(_GUARD_S),
            max_cells=SEARCH_CELLS,
        )
        return self.around_us + search.bound_us

    def _relaxed(self, problem: Problem) -> Problem:
        streams = [Line(0.0, line.ns_per_byte) if line else None for line in self._ends]
        roles = zip(
            ("before", "middle", "behind"), (streams[0], self.middle, streams[1]), strict=True
        )
        stages = tuple(
            Stage.of_line(name, overhead_us=line.overhead_us, ns_per_byte=line.ns_per_byte)
            for name, line in roles
            if line is not None
        )
        limits = problem.limits
        free = FragmentLimits(
            limits.min_fragment_bytes, limits.max_fragment_bytes, 1, limits.max_fragments
        )
        return Problem(Pipeline(stages), problem.message_bytes, free, problem.fragment_cap)

    @property
    def _ends(self) -> tuple[Line | None, Line | None]:
        return (self.before, self.behind)


def _triples(problem: Problem, stages: list[_StageLines], b: int) -> list[_Triple]:
    """For each line of stage b: the streams before and behind it that add most."""
    minimum = problem.smallest_fragment_bytes
    reference = max(float(minimum), problem.message_bytes / _REFERENCE_SHARE)
    before = _best_stream(stages[:b], reference)
    behind = _best_stream(stages[b + 1 :], reference)
    around = sum(stage.min_us for j, stage in enumerate(stages) if j != b)
    for line, min_us in (before, behind):
        if line is not None:
            around += line.overhead_us - min_us
    return [_Triple(before[0], middle, behind[0], max(0.0, around)) for middle in stages[b].lines]


def _best_stream(stages: list[_StageLines], reference: float) -> tuple[Line | None, float]:
    """The stream that adds most, with the cost of one block that it takes the place of."""
    best: tuple[Line | None, float] = (None, 0.0)
    max_gain_us = 0.0
    for stage in stages:
        line, gain_us = stage.as_stream(reference)
        if gain_us > max_gain_us:
            max_gain_us, best = gain_us, (line, stage.min_us)
    return best


def _weak_us(problem: Problem, stages: list[_StageLines], b: int) -> float:
    """min_k k φ_b(B/k) plus one least block in every other stage, without the delay."""
    alone = Problem(
        Pipeline((problem.pipeline.stages[b],)),
        problem.message_bytes,
        problem.limits,
        problem.fragment_cap,
    )
    counts = alone.count_range()
    maximum = counts.minimum if stages[b].lines[1:] == () else counts.maximum
    every = np.arange(counts.minimum, maximum + 1, dtype=np.int64)
    others = sum(stage.min_us for j, stage in enumerate(stages) if j != b)
    return float(closed_form_us(alone, every).min()) + others


def _line_below(a: tuple[float, float], b: tuple[float, float]) -> Line | None:
    """The line through two vertices, less its rounding error; None where a cost is negative."""
    slope_us = (b[1] - a[1]) / (b[0] - a[0]) * _SAFETY
    overhead_us = a[1] - slope_us * a[0] - (abs(a[1]) + abs(slope_us) * a[0]) * _LINE_ERROR
    if slope_us < 0.0 or overhead_us < 0.0:
        return None
    return Line(min(overhead_us, MAX_OVERHEAD_US), min(slope_us * 1000.0, MAX_NS_PER_BYTE))


# --- messages of few units: laws of the bytes at which a path turns -----------------------------

TURNING_UNITS = 24  # more, and the linear programs take longer than the bound is worth
TURNING_ROWS = 12_000  # of all linear programs for one bound,
_MAX_ROWS = 1_600  # and of each of them: some 50 ms
_CLOSED = 1e-6  # below the latency that is known, relative: where branching ends
_WHOLE = 1e-6  # a mean count nearer to a whole number is one

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def _turning_us(problem: Problem, known_us: float, deadline: Deadline) -> float:
    """The bound by laws of turning bytes, without the delay; 0 where there are too many units or
    stages, or no time.

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
    while heap[0][0] < known_us * (1.0 - _CLOSED) and rows < TURNING_ROWS and not deadline.passed:
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
