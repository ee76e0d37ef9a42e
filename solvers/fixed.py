"""Fixed-size fragmentation (A): the best k equal fragments, any bottleneck.

Source    Wang98 sec. 3, eq. (10)-(12); theory.md sec. 2.
Notation  n stages, k fragments; g, G: (n,) µs and µs/byte; B: message; b: a stage; a: alignment.
Cost      O(n^2) candidates for lines, one evaluation each; stages with ranges: all k, vectorised.
Exact     over k, for equal real sizes: T(k) = max_b f_b(k), f_b convex in k, so its minimum is that
          of one f_b or a crossing of two. In whole bytes sizes differ by at most one unit and order
          matters: several orders of several k near the minimum are evaluated.
Traps     g_b = 0 (more fragments always help b), sum of the other G = 0 (fewer do), B not divisible
          by k, an alignment that leaves the last fragment with the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from domain.errors import StrategyDeclined
from domain.problem import Problem
from domain.solution import Strategy
from solvers.contract import Candidate, Deadline, SolveOptions, StrategySpec
from solvers.kernels import latencies_us, stage_times_us
from solvers.line_problem import LineProblem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NEIGHBOURS = 24  # counts on each side of the best that are rounded, while they could still win


def run(problem: Problem, options: SolveOptions, deadline: Deadline) -> Candidate:
    """The best equal cut in whole bytes. Raises StrategyDeclined where the limits admit none."""
    best: tuple[float, int, tuple[int, ...]] | None = None
    slack_us = _slack_us(problem)
    for k, real_us in _ascending(problem):
        if best is not None and real_us - slack_us > best[0]:
            break
        for cut in _arrangements(problem, k):
            latency = float(latencies_us(problem.pipeline, np.array([cut], dtype=float))[0])
            if best is None or (latency, k) < best[:2]:
                best = (latency, k, cut)
        if deadline.passed:
            break
    if best is None:
        raise StrategyDeclined(
            "no equal sizes satisfy the limits: with the alignment the last fragment would be "
            "smaller than min_fragment_bytes",
            field="strategy",
        )
    size = problem.message_bytes / best[1]
    return Candidate(best[2], (size,) * best[1], cut_off=deadline.passed)


def best_count(problem: Problem) -> int:
    """The k whose equal real fragments take the least time; the fewest of equals."""
    return next(_ascending(problem))[0]


def equal_latency_us(problem: Problem, k: Ints) -> Floats:
    """T(k) = sum_j t_j(B/k) + (k-1) max_j t_j(B/k), without delay, for each k (Wang98 (10))."""
    t = stage_times_us(problem.pipeline, problem.message_bytes / k)
    latency: Floats = t.sum(axis=-1) + (k - 1) * t.max(axis=-1)
    return latency


def _ascending(problem: Problem) -> Iterator[tuple[int, float]]:
    """Counts and their real latency with delay, the best first, then near ones in order."""
    counts, lines = problem.count_range(), LineProblem.of(problem)
    if lines is None:
        k = np.arange(counts.least, counts.greatest + 1, dtype=np.int64)
    else:
        k = _around(_closed_form_counts(lines), counts.least, counts.greatest)
    latency = equal_latency_us(problem, k)
    if lines is not None:
        best = int(k[int(np.argmin(latency))])
        k = _around(np.arange(best - NEIGHBOURS, best + NEIGHBOURS + 1), counts.least, best + 10**6)
        k = k[k <= counts.greatest]
        latency = equal_latency_us(problem, k)
    order = np.argsort(latency, kind="stable")[: 2 * NEIGHBOURS + 1]
    for index in order:
        yield int(k[index]), float(latency[index]) + problem.pipeline.delay_us


def _closed_form_counts(lines: LineProblem) -> Floats:
    """Where T(k) can have its minimum: the best k of each f_b, and the crossings of two.

    f_b(k) = sum_j g_j + (k-1) g_b + B G_b + (B/k) sum_{j != b} G_j is least at
    k = sqrt(B sum_{j != b} G_j / g_b); f_b and f_c cross where t_b(B/k) = t_c(B/k).
    """
    others = lines.G.sum() - lines.G
    with np.errstate(divide="ignore", invalid="ignore"):
        valleys = np.sqrt(lines.B * others / lines.g)
        sizes = (lines.g[None, :] - lines.g[:, None]) / (lines.G[:, None] - lines.G[None, :])
        crossings = lines.B / sizes
    found = np.concatenate([valleys, crossings.ravel(), [1.0, np.inf]])
    kept: Floats = found[~np.isnan(found) & (found > 0.0)]
    return kept


def _around(k: NDArray[np.generic], least: int, greatest: int) -> Ints:
    """Floor and ceiling of each, clipped into the range, without repeats, ascending."""
    clipped = np.clip(np.asarray(k, dtype=np.float64), least, greatest)
    whole: Ints = np.unique(np.concatenate([np.floor(clipped), np.ceil(clipped)])).astype(np.int64)
    return whole


def _slack_us(problem: Problem) -> float:
    """How far an arrangement in whole units can lie below equal real sizes: a byte count's error.

    Positions move by less than one unit, and a path's cost by less than that at each stage's slope
    (the argument of the rounding lemma). For stages with ranges the jumps are not covered.
    """
    slopes = [max(part.ns_per_byte for part in s.ranges) for s in problem.pipeline.stages]
    return problem.limits.alignment_bytes * sum(slopes) / 1000.0


def _arrangements(problem: Problem, k: int) -> Iterator[tuple[int, ...]]:
    """Orders of k sizes that differ by at most one unit; the last carries what is not a unit."""
    unit = problem.limits.alignment_bytes
    units, rest = divmod(problem.message_bytes, unit)
    base, extra = divmod(units, k)
    places = k - 1 if rest else k  # a last fragment with a rest gets no unit more
    for pattern in _patterns(places, extra):
        sizes = np.full(k, base, dtype=np.int64)
        sizes[:places] += pattern
        cut = [size * unit for size in sizes.tolist()]
        cut[-1] += rest
        if problem.admits(tuple(cut)):
            yield tuple(cut)


def _patterns(places: int, extra: int) -> list[Ints]:
    """0/1 vectors with `extra` ones: spread by floor, nearest and ceiling, all first, all last."""
    step = np.arange(places + 1, dtype=np.int64)
    first = (step[:-1] < extra).astype(np.int64)
    if extra in (0, places):
        return [first]
    floor = np.diff(step * extra // places)
    nearest = np.diff((step * extra + places // 2) // places)
    return [floor, nearest, floor[::-1], first, first[::-1]]


SPEC = StrategySpec(
    name=Strategy.FIXED,
    run=run,
    needs="limits that admit equal sizes",
    optimal_when="among equal sizes; among all cuts where every stage takes the same time",
)
