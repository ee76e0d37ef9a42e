"""Latency against the number of fragments, to be looked at: equal sizes, the optimum, the bound.

Source    docs/theory.md sec. 2 and 4: T*(k), the optimum in real sizes, is convex in k for lines.
Notation  k fragments; T(k): k equal real fragments; T*(k): the best real sizes of k fragments.
Cost      closed forms for every count, then one solve a count as far as the time goes; the count
          nearest to `near` first, then those farthest from any that was solved.
Exact     `bound_us` is below every cut of that count; `optimum_us` is attained in real sizes.
Traps     equal real sizes may be below what whole bytes reach, and above the bound by far.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from domain.problem import Problem
from solvers.contract import Deadline
from solvers.count_search import CountSearch
from solvers.fixed import equal_latency_us
from solvers.relaxation import relaxation_of

_MOST_CELLS = 400_000  # k*n of a count that is solved for a picture


@dataclass(frozen=True, slots=True)
class CountPoint:
    """One number of fragments; µs, delay included. `optimum_us` is None where it was not solved."""

    fragments: int
    equal_us: float
    bound_us: float
    optimum_us: float | None


def count_points(
    problem: Problem, counts: Sequence[int], *, near: int, time_limit_s: float
) -> tuple[CountPoint, ...]:
    """A point for each of these counts that is admitted, ascending. Raises Infeasible."""
    deadline, admitted = Deadline.after(time_limit_s), problem.count_range()
    wanted = sorted({k for k in counts if admitted.least <= k <= admitted.greatest})
    if not wanted:
        return ()
    search = CountSearch.start(problem, relaxation_of(problem))
    solvable = [k for k in wanted if k * len(problem.pipeline) <= _MOST_CELLS]
    for k in _spread(solvable, near):
        if deadline.passed:
            break
        search.solve(k, deadline)
    return tuple(_points(problem, search, wanted))


def _points(problem: Problem, search: CountSearch, wanted: list[int]) -> Iterator[CountPoint]:
    counts, delay_us = np.array(wanted, dtype=np.int64), problem.pipeline.delay_us
    equal = equal_latency_us(problem, counts) + delay_us
    bounds = search.lower_at(counts) + delay_us
    for k, equal_us, bound_us in zip(wanted, equal.tolist(), bounds.tolist(), strict=True):
        solved = search.solved.get(k)
        optimum_us = None if solved is None else solved.upper_us + delay_us
        yield CountPoint(k, equal_us, max(0.0, bound_us), optimum_us)


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
