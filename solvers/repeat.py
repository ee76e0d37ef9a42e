"""The best single size for a library that repeats one: floor(B/s) fragments of s, then the rest.

Source    theory.md sec. 2.
Notation  q: full fragments; s = a u: their size, a the alignment; r = B - q s < s: the remainder;
          t(s), t(r): stage times, µs. All arrays run over (q, interval of u) pairs.
Cost      O(n log B) NumPy passes over the q that a closed-form bound leaves.
Exact     over every admitted s, in whole bytes; brute force in tests/solvers/test_repeat.py.
Traps     for one q the latency is convex in s only while neither s nor r changes its range: each
          range's end splits the interval. r = 0 is a point of its own where a least size holds.

The latency of q equal fragments and a remainder is closed: fragment q leaves stage j at
sum_{l<=j} t_l + (q-1) max_{l<=j} t_l, and the remainder follows by the recurrence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.errors import StrategyDeclined
from domain.problem import Problem
from domain.solution import Strategy
from solvers.bounds import closed_form_us
from solvers.contract import Candidate, Deadline, SolveOptions, StrategySpec
from solvers.kernels import stage_times_us
from solvers.static import repeated_cut

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Intervals:
    """Intervals [low, high] of u, inclusive, on each of which the latency is convex in u."""

    q: Ints
    low: Ints
    high: Ints


def run(problem: Problem, options: SolveOptions, deadline: Deadline) -> Candidate:
    """The cut of the best repeated size. Raises StrategyDeclined where none is admitted."""
    return Candidate(best_repeat(problem)[1])


def best_repeat(problem: Problem) -> tuple[int, tuple[int, ...]]:
    """The best repeated size in bytes, and its cut. Raises StrategyDeclined."""
    found = [*_exact_divisors(problem), *_with_remainder(problem)]
    if not found:
        raise StrategyDeclined(
            "no repeated size satisfies the limits: with every one of them the remainder is "
            "smaller than min_fragment_bytes or the fragments are too many",
            field="strategy",
        )
    _, _, size = min(found)
    return size, repeated_cut(problem, size)


def _exact_divisors(problem: Problem) -> list[tuple[float, int, int]]:
    """(latency, fragments, size) of the best s with no remainder, if any."""
    counts, total = problem.count_range(), problem.message_bytes
    least, greatest = problem.aligned_sizes()
    q = np.arange(counts.least, counts.greatest + 1, dtype=np.int64)
    q = q[total % q == 0]
    size = total // q
    fits = (size % problem.limits.alignment_bytes == 0) & (size >= least) & (size <= greatest)
    q, size = q[fits | (q == 1)], size[fits | (q == 1)]
    if not len(q):
        return []
    latency = _latency_us(problem, q, size)
    best = int(np.argmin(latency))
    return [(float(latency[best]), int(q[best]), int(size[best]))]


def _with_remainder(problem: Problem) -> list[tuple[float, int, int]]:
    """(latency, fragments, size) of the best s that leaves a remainder, if any."""
    intervals = _admitted(problem)
    if not len(intervals.q):
        return []
    intervals = _split_at_ranges(problem, _promising(problem, intervals))
    u = _minimise(problem, intervals)
    size = u * problem.limits.alignment_bytes
    latency = _latency_us(problem, intervals.q, size)
    best = int(np.argmin(latency))
    return [(float(latency[best]), int(intervals.q[best]) + 1, int(size[best]))]


def _admitted(problem: Problem) -> _Intervals:
    """For each q, the u with an admitted size and an admitted remainder of at least a byte."""
    counts, total, unit = problem.count_range(), problem.message_bytes, _unit(problem)
    least, greatest = problem.aligned_sizes()
    q = np.arange(max(1, counts.least - 1), counts.greatest, dtype=np.int64)
    low = np.maximum((total // (q + 1)) // unit + 1, least // unit)
    high = np.minimum((total - problem.least_fragment_bytes) // q, greatest) // unit
    some = low <= high
    return _Intervals(q[some], low[some], high[some])


def _promising(problem: Problem, intervals: _Intervals) -> _Intervals:
    """Without the q whose closed-form bound lies above what some size already reaches."""
    reached = _latency_us(problem, intervals.q, intervals.high * _unit(problem)).min()
    bound = closed_form_us(problem, intervals.q + 1) - problem.pipeline.delay_us
    kept = bound <= reached
    return _Intervals(intervals.q[kept], intervals.low[kept], intervals.high[kept])


def _split_at_ranges(problem: Problem, intervals: _Intervals) -> _Intervals:
    """Cut the intervals where s or r passes from one range of some stage to the next."""
    stages = problem.pipeline.stages
    ends = sorted({r.up_to_bytes for s in stages for r in s.ranges if r.up_to_bytes is not None})
    if not ends:
        return intervals
    unit, edge = _unit(problem), np.array(ends, dtype=np.int64)
    q = intervals.q[:, None]
    by_size = np.broadcast_to(edge // unit + 1, (len(q), len(edge)))  # s > end from here on
    by_rest = -((edge - problem.message_bytes) // (q * unit))  # r <= end from here on
    low, high = intervals.low[:, None], intervals.high[:, None]
    starts = np.sort(np.clip(np.hstack([low, by_size, by_rest]), low, high + 1), axis=1)
    stops = np.hstack([starts[:, 1:], high + 1]) - 1
    row, column = np.nonzero(starts <= stops)
    return _Intervals(intervals.q[row], starts[row, column], stops[row, column])


def _minimise(problem: Problem, intervals: _Intervals) -> Ints:
    """The best u of each interval: bisection on the sign of the difference, all at once."""
    unit = _unit(problem)
    low, high = intervals.low.copy(), intervals.high.copy()
    while (open_ := np.flatnonzero(low < high)).size:
        q, middle = intervals.q[open_], (low[open_] + high[open_]) // 2
        here = _latency_us(problem, q, middle * unit)
        rises = here <= _latency_us(problem, q, (middle + 1) * unit)
        high[open_[rises]] = middle[rises]
        low[open_[~rises]] = middle[~rises] + 1
    return low


def _latency_us(problem: Problem, q: Ints, size: Ints) -> Floats:
    """Latency, without delay, of q fragments of `size` and the remainder, if there is one."""
    t = stage_times_us(problem.pipeline, size.astype(float))
    exits = np.cumsum(t, axis=-1) + (q - 1)[:, None] * np.maximum.accumulate(t, axis=-1)
    rest = problem.message_bytes - q * size
    behind = stage_times_us(problem.pipeline, np.maximum(rest, 1).astype(float))
    last = np.zeros(len(q))
    for j in range(t.shape[-1]):
        last = np.maximum(last, exits[:, j]) + behind[:, j]
    latency: Floats = np.where(rest > 0, last, exits[:, -1])
    return latency


def _unit(problem: Problem) -> int:
    return problem.limits.alignment_bytes


SPEC = StrategySpec(
    name=Strategy.REPEAT,
    run=run,
    needs="a repeated size whose remainder the limits admit",
    optimal_when="among all schedules s, s, ..., remainder; never claimed for other cuts",
)
