"""Latency against the number of fragments, to be looked at: equal sizes, the best, the bound.

Source    docs/theory.md sec. 2 and 4: T*(k), the optimum in real sizes, is convex in k for lines.
Notation  k fragments; T(k): k equal real fragments; T*(k): the best real sizes of k fragments.
Cost      closed forms for every count, then one solve a count as far as the time goes; the count
          nearest to `near` first, then those farthest from any that was solved.
Exact     `bound_us` is below every cut of that count; `best_us` is the evaluator's of a cut, in
          real sizes or whole bytes: for lines T*(k), on stages with ranges the best that was found.
Traps     equal real sizes may be below what whole bytes reach, and above the bound by far. What is
          optimal on the minorants of ranges costs more than they say: it is priced at true costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from domain.problem import Problem
from domain.schedule import latency_us
from solvers.contract import Deadline
from solvers.exact.count_search import CountSearch
from solvers.exact.lp.lines import CountResult
from solvers.exact.relaxation import Relaxation, relaxation_of
from solvers.heuristics.fixed import equal_latency_us
from solvers.line_problem import LineProblem
from solvers.ranges.improve import improved
from solvers.ranges.relaxed_sizes import on_vertices
from solvers.rounding import round_cut

_MAX_CELLS = 400_000  # k*n of a count that is solved for a picture
_MOVE_CELLS = 20_000  # k*n of all cuts that the moves of one count evaluate
_CLOSE = 1e-4  # relative: what is nearer to the bound is not moved, since nobody could see it


@dataclass(frozen=True, slots=True)
class CountPoint:
    """One number of fragments; µs, delay included. `best_us` is None where it was not solved."""

    fragments: int
    equal_us: float
    bound_us: float
    best_us: float | None


def count_points(
    problem: Problem, counts: Sequence[int], *, near: int, time_limit_s: float
) -> tuple[CountPoint, ...]:
    """Return a point for each of these counts that is admitted, ascending. Raises Infeasible."""
    deadline, admitted = Deadline.after(time_limit_s), problem.count_range()
    wanted = sorted({k for k in counts if admitted.minimum <= k <= admitted.maximum})
    if not wanted:
        return ()
    search = CountSearch.start(problem, relaxation_of(problem))
    solvable = [k for k in wanted if k * len(problem.pipeline) <= _MAX_CELLS]
    best: dict[int, float] = {}
    for k in _spread(solvable, near):
        if deadline.passed:
            break
        result = search.solve(k, deadline)
        best[k] = _attained_us(problem, search.lines, result, deadline)
    return tuple(_points(problem, search, wanted, best))


def _points(
    problem: Problem, search: CountSearch, wanted: list[int], best: dict[int, float]
) -> Iterator[CountPoint]:
    counts, delay_us = np.array(wanted, dtype=np.int64), problem.pipeline.delay_us
    equal = equal_latency_us(problem, counts) + delay_us
    bounds = search.lower_at(counts) + delay_us
    for k, equal_us, bound_us in zip(wanted, equal.tolist(), bounds.tolist(), strict=True):
        best_us = min(best[k], equal_us) if k in best else None
        yield CountPoint(k, equal_us, max(0.0, bound_us), best_us)


def _attained_us(
    problem: Problem, relaxed: Relaxation, result: CountResult, deadline: Deadline
) -> float:
    """What the sizes of a solve take at the true costs, after moves where these are not convex."""
    if isinstance(relaxed, LineProblem):
        return result.upper_us + problem.pipeline.delay_us
    real_us = latency_us(problem.pipeline, result.x.tolist())
    if real_us <= (result.lower_us + problem.pipeline.delay_us) * (1.0 + _CLOSE):
        return real_us
    nearest = round_cut(problem, result.x, search_cells=0)
    starts = [cut for cut in (nearest, on_vertices(problem, relaxed, result.x)) if cut is not None]
    known = {cut: latency_us(problem.pipeline, cut) for cut in starts if len(cut) == result.k}
    if known and not deadline.passed:
        moved, _ = improved(problem, min(known, key=known.__getitem__), deadline, cells=_MOVE_CELLS)
        if len(moved.fragment_bytes) == result.k:
            known[moved.fragment_bytes] = latency_us(problem.pipeline, moved.fragment_bytes)
    return min([real_us, *known.values()])


def _spread(counts: list[int], near: int) -> Iterator[int]:
    """All of them: the one nearest to `near`, then the ends, then ever finer between them."""
    if not counts:
        return
    first = min(range(len(counts)), key=lambda i: abs(counts[i] - near))
    seen = {first}
    yield counts[first]
    step = len(counts)
    while step:
        for i in [*range(0, len(counts), step), len(counts) - 1]:
            if i not in seen:
                seen.add(i)
                yield counts[i]
        step //= 2
