"""Whole-byte cuts on stages with ranges: from the relaxed optima and from what others propose.

Source    own derivation; docs/theory.md sec. 7.
Notation  k fragments; L(k): proven bound on the relaxed optimum; V: least whole-byte latency known.
Cost      one relaxed program for each count that is tried, and the work of improve.py.
Exact     no: where costs are not convex the best cut is not found with proof, and the bound of the
          minorants may lie below it. The gap between the two is stated.
Traps     the best count of the relaxation need not be that of the true costs: counts all over the
          range that could still win are tried, and those of the cuts already known.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from solvers.contract import Candidate, Deadline
from solvers.exact.convex_problem import ConvexProblem
from solvers.exact.count_search import CountSearch
from solvers.ranges.improve import improved, polished
from solvers.ranges.moves import cut_us
from solvers.ranges.relaxed_sizes import on_vertices
from solvers.rounding import round_cut

SPREAD_COUNTS = 5  # counts that are tried beside the best ones, spread over those that could win
STARTS = 3  # cuts that are improved
IMPROVE_CELLS = 4_000_000  # k*n of all cuts that the improvement evaluates
POLISH_CELLS = 400_000  # and that the last touch of the best one does
_RELAXED_CELLS = 6_000  # k*n of the relaxed programs that are solved for further counts

Cut = tuple[int, ...]


def ranged_cuts(
    search: CountSearch,
    convex: ConvexProblem,
    known: Iterable[Cut],
    *,
    relative_gap: float,
    deadline: Deadline,
) -> Iterable[Candidate]:
    """Return whole-byte cuts that the limits admit; none where a known one already meets the
    bound.
    """
    problem = search.problem
    found = {cut: cut_us(problem, np.array(cut)) for cut in known}
    met = (1.0 + relative_gap) * search.bound_us
    if found and min(found.values()) <= met:
        return
    for candidate in _rounded(search, convex, found, deadline):
        yield candidate
        if min(found.values()) <= met:
            return
    best, cells = None, IMPROVE_CELLS
    for start in _starts(found):
        if best is not None and (deadline.passed or cells <= 0):
            break
        candidate, cells = improved(problem, start, deadline, cells=cells)
        latency = found[candidate.fragment_bytes] = cut_us(
            problem, np.array(candidate.fragment_bytes)
        )
        yield candidate
        if best is None or latency < found[best.fragment_bytes]:
            best = candidate
        if latency <= met:
            return
    if best is not None:
        yield polished(problem, best, deadline, cells=POLISH_CELLS)


def _rounded(
    search: CountSearch, convex: ConvexProblem, found: dict[Cut, float], deadline: Deadline
) -> Iterable[Candidate]:
    """The relaxed optima of several counts in whole bytes; each is entered into `found`."""
    problem, cells = search.problem, 0
    for k in _counts(search, found):
        cells += k * convex.n if k not in search.solved else 0
        if cells > _RELAXED_CELLS or (deadline.passed and found):
            return
        result = search.solved.get(k) or search.solve(k, deadline)
        nearest = round_cut(problem, result.x, search_cells=0)
        for cut in (nearest, on_vertices(problem, convex, result.x)):
            if cut is not None and cut not in found:
                found[cut] = cut_us(problem, np.array(cut))
                yield Candidate(cut, tuple(result.x.tolist()) if len(cut) == k else None)


def _counts(search: CountSearch, found: dict[Cut, float]) -> list[int]:
    """The best relaxed count, those of the best known cuts, and some of all that could win."""
    first, last = search.lines.k_min, search.lines.k_min + len(search.lower) - 1
    known = sorted(found, key=lambda cut: (found[cut], len(cut)))[:2]
    wanted = [search.best.k, *(len(cut) for cut in known)]
    limit = min(found.values(), default=np.inf)
    could_win = np.flatnonzero(search.lower < limit - search.problem.pipeline.delay_us) + first
    if len(could_win):
        spread = np.geomspace(could_win[0], could_win[-1], SPREAD_COUNTS).astype(np.int64)
        wanted += [int(k) for k in spread]
    return [k for k in dict.fromkeys(wanted) if first <= k <= last]


def _starts(found: dict[Cut, float]) -> list[Cut]:
    """The best cuts, at most two of one count."""
    chosen: list[Cut] = []
    for cut in sorted(found, key=lambda cut: (found[cut], len(cut), cut)):
        if sum(len(other) == len(cut) for other in chosen) < 2:
            chosen.append(cut)
        if len(chosen) == STARTS:
            break
    return chosen
