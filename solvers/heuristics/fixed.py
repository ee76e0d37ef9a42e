"""Fixed-size fragmentation (A): the best k equal fragments, any bottleneck.

Source    Wang98 sec. 3, eq. (10)-(12); theory.md sec. 2.
Notation  n stages, k fragments; g, G: (n,) µs and µs/byte; B: message; b: a stage; T(k): latency of
          k equal real fragments.
Cost      O(n^2) candidates for k on each interval without a change of range, one evaluation each.
Exact     over k, for equal real sizes: where every stage is one line T(k) = max_b f_b(k), f_b
          convex in k, so its minimum is that of one f_b or a crossing of two; each interval of k
          without a change of range is searched so. Whole bytes: see balanced_cuts.py.
Traps     g_b = 0 (more fragments always help b), sum of the other G = 0 (fewer do), equal values of
          T that differ by rounding alone (the fewest fragments are meant).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from domain.errors import StrategyDeclined
from domain.pipeline import Line
from domain.problem import Problem
from domain.solution import Strategy
from solvers.contract import Candidate, Deadline, SolveOptions, StrategySpec
from solvers.heuristics.balanced_cuts import BalancedCuts
from solvers.kernels import active, stage_times_us
from solvers.kernels.native_whole import whole_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NEIGHBOURS = 24  # counts on each side of the best that are tried in whole bytes
WHOLE_CELLS = 3_000_000  # k*n summed over all orders that are evaluated, after the first count
_NATIVE_CELLS = 100_000  # k*n that C takes, which does not look at the clock
_TIE = 1e-13  # relative difference of two latencies that is rounding alone


def run(problem: Problem, options: SolveOptions, deadline: Deadline) -> Candidate:
    """Return the best equal cut in whole bytes. Raises StrategyDeclined where the limits admit
    none.
    """
    best, cut_off = equal_cut(problem, deadline)
    if best is None:
        raise StrategyDeclined(
            "no equal sizes satisfy the limits: with every count some size would leave "
            "min_fragment_bytes or max_fragment_bytes",
            field="strategy",
        )
    sizes = tuple(best.tolist())
    return Candidate(sizes, (problem.message_bytes / len(sizes),) * len(sizes), cut_off=cut_off)


def equal_cut(problem: Problem, deadline: Deadline) -> tuple[Ints | None, bool]:
    """Return the best equal cut in whole bytes if there is one, and whether time ended the search.

    C and NumPy give the same cut but for ties.
    """
    sizes = problem.derived(_native_cut) if active.NATIVE is not None else None
    return (sizes, False) if sizes is not None else _searched(problem, deadline)


def _native_cut(problem: Problem) -> Ints | None:
    """The cut in C, where this is for C, and where it finds one; computed once."""
    native, whole = active.NATIVE, whole_of(problem)
    if native is None or whole is None:
        return None
    near = best_count(problem)
    if (near + NEIGHBOURS) * len(problem.pipeline) > _NATIVE_CELLS:
        return None
    return native.whole.equal_cut(whole, near=near, neighbours=NEIGHBOURS, cells=WHOLE_CELLS)


def _searched(problem: Problem, deadline: Deadline) -> tuple[Ints | None, bool]:
    near = best_count(problem)
    cuts = _near_the_best(problem, near)
    best_us, best, cells, cut_off = float("inf"), None, 0, False
    for index in cuts.order(near=near):
        if cuts.lower_us[index] >= best_us * (1.0 - _TIE):
            continue
        cut_off = deadline.passed and best is not None
        if cut_off or (cells > WHOLE_CELLS and best is not None):
            break
        latency, cut = cuts.best_order(index)
        cells += cuts.cells(index)
        if latency < best_us * (1.0 - _TIE):
            best_us, best = latency, cut
    return best, cut_off


def best_count(problem: Problem) -> int:
    """Return the k whose equal real fragments take the least time; the fewest of equals."""
    count = problem.derived(_native_count) if active.NATIVE is not None else None
    if count is not None:
        return count
    k = _candidate_counts(problem)
    latency = equal_latency_us(problem, k)
    return int(k[int(np.argmax(latency <= latency.min() * (1.0 + _TIE)))])


def _native_count(problem: Problem) -> int | None:
    native, whole = active.NATIVE, whole_of(problem)
    return None if native is None or whole is None else native.whole.equal_count(whole)


def equal_latency_us(problem: Problem, k: Ints) -> Floats:
    """Return T(k) = sum_j t_j(B/k) + (k-1) max_j t_j(B/k), without delay, for each k (Wang98
    (10)).
    """
    t = stage_times_us(problem.pipeline, problem.message_bytes / k)
    latency: Floats = t.sum(axis=-1) + (k - 1) * t.max(axis=-1)
    return latency


def _near_the_best(problem: Problem, best: int) -> BalancedCuts:
    """Whole-byte cuts of counts near the best; of all where the limits admit none of those."""
    counts = problem.count_range()
    minimum, maximum = (
        max(counts.minimum, best - NEIGHBOURS),
        min(counts.maximum, best + NEIGHBOURS),
    )
    cuts = BalancedCuts.of(problem, np.arange(minimum, maximum + 1, dtype=np.int64))
    if len(cuts.k):
        return cuts
    every = BalancedCuts.of(problem, np.arange(counts.minimum, counts.maximum + 1, dtype=np.int64))
    latency = equal_latency_us(problem, every.k)
    return every.take(np.argsort(latency, kind="stable")[: 2 * NEIGHBOURS])


def _candidate_counts(problem: Problem) -> Ints:
    """Every k at which T can have its least value over the admitted counts, ascending."""
    counts, total, stages = problem.count_range(), problem.message_bytes, problem.pipeline.stages
    ends = {part.up_to_bytes for stage in stages for part in stage.ranges} - {None}
    starts = {-(-total // end) for end in ends if end is not None}  # sizes <= end from here on
    inner = (k for k in starts if counts.minimum < k <= counts.maximum)
    found = []
    for low, after in pairwise([counts.minimum, *sorted(inner), counts.maximum + 1]):
        if after - low <= len(stages) ** 2:
            found.append(np.arange(low, after, dtype=np.int64))
        else:
            lines = [stage.range_at(total / low).line for stage in stages]
            found.append(_around(_closed_form_counts(lines, total), low, after - 1))
    return np.unique(np.concatenate(found))


def _closed_form_counts(lines: list[Line], total: int) -> Floats:
    """Where T(k) can have its minimum: the best k of each f_b, and the crossings of two.

    f_b(k) = sum_j g_j + (k-1) g_b + B G_b + (B/k) sum_{j != b} G_j is least at
    k = sqrt(B sum_{j != b} G_j / g_b); f_b and f_c cross where t_b(B/k) = t_c(B/k).
    """
    g = np.array([line.overhead_us for line in lines])
    G = np.array([line.ns_per_byte for line in lines]) / 1000.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        valleys = np.sqrt(total * (G.sum() - G) / g)
        crossings = total * (G[:, None] - G[None, :]) / (g[None, :] - g[:, None])
    found = np.concatenate([valleys, crossings.ravel(), [0.0, np.inf]])
    kept: Floats = found[~np.isnan(found)]
    return kept


def _around(k: Floats, minimum: int, maximum: int) -> Ints:
    """Floor and ceiling of each, clipped into the range."""
    clipped = np.clip(k, minimum, maximum)
    whole: Ints = np.concatenate([np.floor(clipped), np.ceil(clipped)]).astype(np.int64)
    return whole


SPEC = StrategySpec(
    name=Strategy.FIXED,
    run=run,
    needs="limits that admit equal sizes",
    optimal_when="among equal sizes; among all cuts where every stage takes the same time",
)
