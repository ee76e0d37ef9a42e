"""Real schedules on stages with ranges: what is held, and what a linear program then decides.

Source    own derivation; docs/theory.md sec. 7.
Notation  k fragments, n stages; region: sizes on which no stage changes its range, whole bytes
          low..high; x: (k,) real sizes; phi_j: minorants; t_j: true costs.
Cost      one linear program of 2k-1 rows for each set of regions that is held; see moves.py.
Exact     for the regions that are held, in real sizes; which regions to hold is a heuristic.
Traps     between two ends of ranges a minorant may lie far below the cost: sizes of the relaxed
          optimum that lie there are rounded to the ends, so that their mean stays.

Whole-byte cuts on stages with ranges: from the relaxed optima and from what others propose.

Source    own derivation; docs/theory.md sec. 7.
Notation  k fragments; L(k): proven bound on the relaxed optimum; V: least whole-byte latency known.
Cost      one relaxed program for each count that is tried, and the work of what is above.
Exact     no: where costs are not convex the best cut is not found with proof, and the bound of the
          minorants may lie below it. The gap between the two is stated.
Traps     the best count of the relaxation need not be that of the true costs: counts all over the
          range that could still win are tried, and those of the cuts already known.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from domain.problem import Problem
from solvers.contract import Candidate, Deadline
from solvers.exact.convex import ConvexProblem
from solvers.exact.count_search import CountSearch
from solvers.exact.lp.cells import Cells, cells_dual
from solvers.exact.lp.lines import (
    NO_ROWS,
    PARAMETER_SETS,
    run_glop,
    spread_shares,
    with_violated,
)
from solvers.kernels import stage_times_us
from solvers.kernels.native_dual import NativeRegions
from solvers.ranges.moves import WORTHWHILE, cut_us, descend
from solvers.ranges.nodes import Relaxed
from solvers.ranges.regions import Region
from solvers.rounding import nearest_cut, round_cut

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIXED_REGION_CELLS = 2_000  # k*n up to which a linear program with held regions is solved
_ROUNDS = 3  # times that regions are held, sizes solved for and moved, for one start
_ROUNDING = 1e-12  # relative gain of a move that may be rounding alone
_ABOVE = 1.0 + 1e-9  # how far a cost must lie above its minorant for a size to be moved to an end
_ANNEALED, _PER_FRAGMENT = 100_000, 25  # fragments that random moves evaluate, of cuts up to these
_MAX_CELLS, _MAX_ANNEALED = 50_000_000, 1_000_000  # k n of all their cuts, and of one cut
_CELLS_OF_ANNEALED = 1_000_000  # that they count for
_THRESHOLD = 0.01  # of the latency: how much worse a cut may be that is gone on from
_FEW = 16  # fragments up to which random moves are enough
_MORE = 8  # fragments, or as many again, that random moves may add
_AT_END = 1e-6  # bytes, relative: what a solver's size may miss an end by


def improved(
    problem: Problem, start: tuple[int, ...], deadline: Deadline, *, cells: int
) -> tuple[Candidate, int]:
    """Return this cut after moves between, and programs within, the regions; and the cells that are
    left.

    What it returns is no worse than the start.
    """
    best = sizes = np.array(start, dtype=np.int64)
    best_us, real = cut_us(problem, best), None
    native = Region.of(problem, float(problem.largest_fragment_bytes)).in_native(problem)
    if native is not None:
        cells -= _CELLS_OF_ANNEALED
        moved, _ = annealed(problem, native, sizes, each=_ANNEALED)
        if cut_us(problem, moved) < best_us:
            best, best_us = moved, cut_us(problem, moved)
    is_enough = native is not None and len(start) <= _FEW
    sizes = best if is_enough else sizes
    for _ in range(_ROUNDS):
        if not is_enough:
            sizes, cells = descend(problem, sizes, deadline, cells=cells)
        latency = cut_us(problem, sizes)
        if latency < best_us:
            best, best_us = sizes, latency
        x = fixed_region_optimum(problem, sizes, deadline) if cells > 0 else None
        whole = None if x is None else round_cut(problem, x, search_cells=0)
        if x is None or whole is None or deadline.passed:
            break
        real, sizes = x, np.array(whole, dtype=np.int64)
        if cut_us(problem, sizes) >= best_us * (1.0 - WORTHWHILE):
            break
    return _candidate(best, real), cells


def annealed(
    problem: Problem,
    native: NativeRegions,
    sizes: Ints,
    *,
    each: int,
    first: float = _THRESHOLD,
    seed: int = 1,
) -> tuple[Ints, int]:
    """Return the best cut that random moves from this one meet, no worse than it is, and the cells
    that they took.

    `each`: fragments whose time in all stages is computed, where these are few; `first`: how much
    worse, relative, a cut may be that is gone on from at the beginning.
    """
    counts, k, n = problem.count_range(), len(sizes), len(problem.pipeline)
    if k * n > _MAX_ANNEALED:
        return sizes, 0
    cells = min(each * (1 + k // _PER_FRAGMENT) * n, _MAX_CELLS)
    most = min(counts.maximum, max(2 * k, k + _MORE))
    limits = min(counts.minimum, k), most
    return native.annealed(sizes, counts=limits, first=first, cells=cells, seed=seed), cells


def polished(
    problem: Problem, candidate: Candidate, deadline: Deadline, *, cells: int
) -> Candidate:
    """Return the same after every move that gains anything at all, of the least units too."""
    sizes = np.array(candidate.fragment_bytes, dtype=np.int64)
    moved, _ = descend(problem, sizes, deadline, cells=cells, worthwhile=_ROUNDING)
    real = candidate.real_sizes
    return _candidate(moved, np.array(real) if real else None)


def _candidate(sizes: Ints, real: Floats | None) -> Candidate:
    cut = tuple(int(size) for size in sizes)
    known = real is not None and len(real) == len(cut)
    return Candidate(cut, tuple(real.tolist()) if known and real is not None else None)


def fixed_region_optimum(problem: Problem, sizes: Ints, deadline: Deadline) -> Floats | None:
    """Return the best real sizes with every fragment in its region; None where that is too
    large.
    """
    count, stages = len(sizes), problem.pipeline.stages
    if count < 2 or len(stages) < 2 or count * len(stages) > FIXED_REGION_CELLS:
        return None
    low, high = regions_of(problem, sizes)
    ranges = [[stage.range_at(int(size)) for stage in stages] for size in sizes]
    overhead = np.array([[part.overhead_us for part in row] for row in ranges])
    G = np.array([[part.ns_per_byte for part in row] for row in ranges]) / 1000.0
    none = np.zeros(0, dtype=np.int64)
    cells = Cells(
        c=overhead + G * low[:, None],
        G=G,
        i=none,
        j=none,
        extra_c=np.zeros(0),
        extra_G=np.zeros(0),
        total=float(problem.message_bytes - low.sum()),
        spread=(high - low).astype(float),
        unit_us=cut_us(problem, sizes),
    )
    shares = _shares(cells, deadline) if cells.total > 0.0 else None
    if shares is None:
        return None
    x = low + spread_shares(shares, cells.total, cells.spread)
    return _on_ends(x, low, high, float(problem.message_bytes))


def _shares(cells: Cells, deadline: Deadline) -> Floats | None:
    """The multipliers of the byte rows, order rows added until none is violated."""
    rows, (k, n), shares = NO_ROWS, cells.c.shape, None
    for _ in range(4):
        found = run_glop(cells_dual(cells, rows), PARAMETER_SETS[0], deadline)
        if found is None or deadline.passed:
            break
        shares = found[1][:k]
        grown = with_violated(rows, found[0][: (k - 1) * n].reshape(k - 1, n))
        if len(grown[0]) == len(rows[0]):
            break
        rows = grown
    return shares


def _on_ends(x: Floats, low: Ints, high: Ints, total: float) -> Floats:
    """Sizes that miss an end by a solver's error are put on it; one other takes the difference."""
    close = _AT_END * np.maximum(1.0, x)
    fixed = np.where(x - low <= close, low, np.where(high - x <= close, high, x)).astype(float)
    rest = total - float(fixed.sum())
    i = int(np.argmax(np.minimum(x - low, high - x)))
    if low[i] <= fixed[i] + rest <= high[i]:
        fixed[i] += rest
        return fixed
    return x


def regions_of(problem: Problem, sizes: Ints) -> tuple[Ints, Ints]:
    """Return the least and greatest whole size (k,) on which all stages keep the ranges they have
    here.
    """
    minimum, maximum = problem.smallest_fragment_bytes, problem.largest_fragment_bytes
    ends = {part.up_to_bytes for stage in problem.pipeline.stages for part in stage.ranges}
    inner = np.array(sorted(end for end in ends if end is not None and minimum <= end < maximum))
    lows = np.concatenate([[minimum], inner + 1]).astype(np.int64)
    highs = np.concatenate([inner, [maximum]]).astype(np.int64)
    at = np.searchsorted(highs, sizes, side="left")
    return lows[at], highs[at]


def on_vertices(problem: Problem, convex: ConvexProblem, x: Floats) -> tuple[int, ...] | None:
    """Return a whole-byte cut near relaxed sizes x that pays little more than the minorants say.

    Where some stage costs more than its minorant, the size goes to an end of the minorant's piece
    there, and the bytes that this moves are carried on to the next fragments.
    """
    above = stage_times_us(problem.pipeline, x) - convex.times_us(x) * _ABOVE
    worst, carry, out = np.argmax(above, axis=1), 0.0, x.copy()
    for i in range(len(x)):
        if above[i, worst[i]] <= 0.0:
            continue
        out[i] = _end_near(problem, convex, int(worst[i]), float(x[i]), x[i] + carry)
        carry += float(x[i] - out[i])
    kept = above.max(axis=1) <= 0.0
    if kept.any():
        out[kept] = np.maximum(convex.m, out[kept] + carry / int(kept.sum()))
    whole = nearest_cut(problem, out * (convex.B / out.sum()) if not kept.any() else out)
    return None if whole is None else tuple(int(size) for size in whole)


def _end_near(
    problem: Problem, convex: ConvexProblem, stage: int, size: float, wanted: float
) -> float:
    """The end of the minorant's piece around this size that is nearer to the size wanted."""
    at = convex.hulls[stage][:, 0]
    right = min(len(at) - 1, max(1, int(np.searchsorted(at, size))))
    ends = []
    for vertex in (right - 1, right):
        true_us = problem.pipeline.stages[stage].time_us(float(at[vertex]))
        # A vertex that is the limit from the range behind it is reached one byte further on.
        beyond = true_us > convex.hulls[stage][vertex, 1] * _ABOVE
        ends.append(min(convex.M, float(at[vertex]) + beyond))
    return float(min(ends, key=lambda end: abs(end - wanted)))


def in_whole_numbers(found: Relaxed, at: Floats, message_bytes: int) -> list[Floats]:
    """Return sizes with whole numbers of fragments in each group of a node, scaled to the message.

    Those of a group one size (of `at`, bytes) after the other, and all of its sizes spread evenly.
    """
    cuts = []
    for is_spread in (False, True):
        parts = [found.x[:1]]
        for g, number in enumerate(found.in_groups):
            whole = np.rint(number).astype(np.int64)
            sizes = np.repeat(at, whole)
            if is_spread:
                places = [(np.arange(count) + 0.5) / count for count in whole if count]
                sizes = sizes[np.argsort(np.concatenate([[], *places]), kind="stable")]
            parts += [sizes, found.x[g + 1 : g + 2]]
        x = np.concatenate(parts)
        cuts.append(x * (message_bytes / x.sum()))
    return cuts


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
