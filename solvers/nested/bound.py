"""A proven lower bound on every schedule whose stages may cut the message differently.

Source    theory sec. 5 (the weak bound); the three-stage bound is derived below.
Notation  n stages; g, G: µs and µs/byte; B: message; m, M: least and greatest block; s < b < e:
          three stages; k: blocks of stage b; x_0..x_{k-1}: their sizes; p_i = x_0 + … + x_i.
Cost      O(n) to rank the stages, then a search over k with linear programs of at most 3 stages,
          for the few most promising b, within SEARCH_CELLS; for messages of few units what
          turning_bound.py costs more.
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

Stages with ranges: any line with g, G ≥ 0 below the stage's convex minorant may stand for the stage
(each step above sums costs of blocks, and only lowers them); g_j + m G_j becomes the least cost of
an admitted block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf

import numpy as np

from contract.limits import DEFAULT_RELATIVE_GAP, MAX_NS_PER_BYTE, MAX_OVERHEAD_US
from domain.pipeline import Line, Pipeline, Stage
from domain.problem import FragmentLimits, Problem
from solvers.bounds import closed_form_us
from solvers.contract import Deadline
from solvers.exact.count_search import CountSearch
from solvers.heuristics.fixed import best_count
from solvers.line_problem import LineProblem
from solvers.nested.turning_bound import CLOSED, turning_bound_us

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
    if complete_us < (known_us - delay_us) * (1.0 - CLOSED):
        complete_us = max(complete_us, turning_bound_us(problem, known_us - delay_us, deadline))
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
