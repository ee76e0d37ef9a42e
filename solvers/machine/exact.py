"""The best real sizes for a machine over every number of fragments, with their proof.

Source    docs/theory.md, "Machines".
Notation  k fragments; T*(k): the least latency of k fragments of real sizes.
Cost      one linear program for each region that bounds leave, some ten in the median.
Exact     the bound is below every cut of every admitted count, at every lag of the processors and
          with the places that its greatest size leaves in windows of bytes. It is the least of
          those of programs that were solved and of closed forms for all others.
Traps     T*(k) is neither convex nor unimodal: one count proves nothing of another one. A program
          that was not solved in time leaves its closed form, and so a gap.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import inf

import numpy as np
from numpy.typing import NDArray

from domain.errors import StrategyDeclined
from domain.problem import MachineProblem
from solvers.assemble import rank_of
from solvers.contract import Candidate, Deadline, SolveOptions
from solvers.machine.costs import Costs
from solvers.machine.counts import bounds_us
from solvers.machine.program import Dual, PartialLags, Region, bound_by_us, solve_region, within
from solvers.machine.regions import BoundedRegion, parts_of, regions_of
from solvers.machine.whole import SEARCHED_CELLS, whole_cut

Floats = NDArray[np.float64]

MAX_FRAGMENTS = 300  # of one program
MOST_BOUNDED = 600  # fragments of a count that duals of others bound
_REPEATED = (0.5, 0.0, 1.0, 1 / 3, 2 / 3)  # where a dual of another count is made longer or shorter
_FIRST_STEP = 4  # of the count, the part by which it changes at first
_SHARPER = 0.05  # of the gap asked for: the bound of counts that are not solved is this close
_PROGRAM_CELLS = 64  # that solving takes beside k fragments times nodes
_BOUND_SHARE = 1 / 64  # of a program's work is that of bounding by the dual of another one
_SEARCH_SHARE = 0.8  # of the time; the rest is for whole bytes
_ROUNDED = 8  # counts that are rounded to whole bytes


@dataclass(frozen=True, slots=True)
class Work:
    """How much a search may do, counted and not timed, so that it ends alike on every machine.

    `cells` are fragments times nodes of all programs, `moved_cells` those of the moves by which one
    count is rounded to whole bytes.
    """

    cells: float
    moved_cells: int


WHOLE_TIME = Work(inf, SEARCHED_CELLS)
BOUNDED = Work(12_000.0, SEARCHED_CELLS // 10)  # some 2 s


@dataclass(frozen=True, slots=True)
class Exact:
    """The best whole-byte cut found, the bound over every cut, and the real optimum, both in µs.

    `unrounded_us` is what the evaluator says of the best real sizes; None where none were found.
    `is_unfinished` says that the search ended with the work that it may do.
    """

    candidate: Candidate
    bound_us: float
    unrounded_us: float | None
    is_unfinished: bool = False


def exact_cut(
    problem: MachineProblem,
    start: Candidate,
    options: SolveOptions,
    deadline: Deadline,
    work: Work = WHOLE_TIME,
) -> Exact:
    """Return the best cut, with a bound on every cut of every admitted count.

    `start` is the best cut known. A window of bytes holds as many fragments as of the greatest one:
    the bound is the least over all that this may be. Raises StrategyDeclined for stages with
    several ranges in the admitted sizes, and where the best count is above MAX_FRAGMENTS.
    """
    minimum, most = problem.smallest_fragment_bytes, problem.largest_fragment_bytes
    if any(stage.line_over(minimum, most) is None for stage in problem.machine.stages):
        raise StrategyDeclined(
            "exact needs stages of one line over the admitted sizes, beside lanes, windows, "
            "delays and processors",
            field="strategy",
        )
    if len(start.fragment_bytes) > MAX_FRAGMENTS:
        raise StrategyDeclined(
            f"exact solves up to {MAX_FRAGMENTS} fragments, and the best known cut has "
            f"{len(start.fragment_bytes)}",
            field="strategy",
        )
    search = _Search(problem, start, options.relative_gap, work.cells)
    ended = search.run(deadline.share(_SEARCH_SHARE))
    delay_us = problem.machine.delay_us
    bound_us = float(search.lower_us.min()) + delay_us
    enough_us = bound_us * (1.0 + options.relative_gap) - delay_us
    found = _whole(problem, search, start, enough_us, deadline, work)
    is_unfinished = not ended and search.cells_left <= 0.0
    candidate = Candidate(found[0], found[1], cut_off=not ended and not is_unfinished)
    unrounded_us = search.best_us + delay_us if search.best_us < inf else None
    return Exact(candidate, bound_us, unrounded_us, is_unfinished)


def _whole(
    problem: MachineProblem,
    search: _Search,
    start: Candidate,
    enough_us: float,
    deadline: Deadline,
    work: Work,
) -> tuple[tuple[int, ...], tuple[float, ...] | None]:
    """The best whole-byte cut of the counts that could still win, and the real one behind it."""
    costs = Costs(problem.machine)
    best, real = start.fragment_bytes, start.real_sizes
    best_us = costs.cut_us(best)
    ranked = sorted((latency_us, k) for k, (latency_us, _) in search.real.items())
    for real_us, k in ranked[:_ROUNDED]:
        if best_us <= enough_us or real_us >= best_us or deadline.passed:
            break
        sizes = search.real[k][1]
        cut = whole_cut(
            problem, sizes, enough_us=enough_us, deadline=deadline, cells=work.moved_cells
        )
        if cut is None:
            continue
        cut_us = costs.cut_us(cut)
        if rank_of(cut_us, cut) < rank_of(best_us, best):
            best, best_us, real = cut, cut_us, tuple(sizes.tolist())
    return best, real


@dataclass(slots=True)
class _Count:
    """The regions of one count: a heap of those to be solved, and the least bound in µs of those of
    which nothing is left to be solved. `solved` has what programs proved.
    """

    left: list[BoundedRegion]
    closed_us: float = inf
    solved: dict[Region, float] = field(default_factory=dict)

    @property
    def min_us(self) -> float:
        """The bound on all cuts of this count."""
        return min(self.closed_us, self.left[0].bound_us if self.left else inf)

    def is_open(self, limit_us: float) -> bool:
        """Whether a region that was not solved could hold a cut below this latency."""
        return bool(self.left) and self.left[0].bound_us < limit_us


class _Search:
    """Solves regions of counts until no other one can win. Latencies leave out the constant delay.

    `lower_us` has the bound of each admitted count, `real` the best real sizes of each that was
    solved, with their latency. `cells_left` is the work that may still be done.
    """

    def __init__(
        self, problem: MachineProblem, start: Candidate, relative_gap: float, cells: float
    ) -> None:
        self.lower_us = bounds_us(problem) - problem.machine.delay_us
        self.real: dict[int, tuple[float, Floats]] = {}
        self.best_us = inf
        self.cells_left = cells
        self._problem, self._start = problem, start
        self._sharper = 1.0 + _SHARPER * relative_gap
        self._first = problem.count_range().minimum
        self._counts: dict[int, _Count] = {}
        self._duals: dict[tuple[tuple[int, ...], PartialLags], dict[int, Dual]] = {}
        self._costs = Costs(problem.machine)

    @property
    def _limit_us(self) -> float:
        """Regions with a bound above it cannot win."""
        return self.best_us / self._sharper

    def run(self, deadline: Deadline) -> bool:
        """Whether every region that could win was solved with the time and the work there are."""
        self._approach(deadline)
        while not self._has_ended(deadline):
            open_us = self.lower_us[: MOST_BOUNDED - self._first + 1].copy()
            for k, count in self._counts.items():
                if not count.is_open(self._limit_us):
                    open_us[k - self._first] = inf
            index = int(np.argmin(open_us))
            if open_us[index] >= self._limit_us:
                return True
            self._close_next(index + self._first, deadline)
        return False

    def _has_ended(self, deadline: Deadline) -> bool:
        return self.cells_left <= 0.0 or deadline.passed

    def _take(self, k: int, share: float = 1.0) -> None:
        """Count the work of a program of k fragments, or a share of it."""
        self.cells_left -= share * (k * len(self._problem.machine.network) + _PROGRAM_CELLS)

    def _approach(self, deadline: Deadline) -> None:
        """Go from the count that is known to better ones, by steps that halve."""
        last = min(MAX_FRAGMENTS, self._problem.count_range().maximum)
        k = len(self._start.fragment_bytes)
        self._solve_likely(k, deadline)
        step = max(1, k // _FIRST_STEP)
        while step and not self._has_ended(deadline):
            beside = [at for at in (k + step, k - step) if self._first <= at <= last]
            known_us = self.best_us
            for at in beside:
                self._solve_likely(at, deadline)
            better = [at for at in beside if at in self.real and self.real[at][0] < known_us]
            if better:
                k = min(better, key=lambda at: self.real[at][0])
            else:
                step //= 2

    def _solve_likely(self, k: int, deadline: Deadline) -> None:
        """Solve the region in which the best known cut is when it has k fragments."""
        if k in self.real or self.lower_us[k - self._first] >= self._limit_us:
            return
        sizes = self._resampled(k)
        maximum, lags = float(sizes.max()), self._costs.best_lags(sizes.tolist())
        roots = [one.region for one in self._count(k).left]
        holding = [region for region in roots if region.most >= maximum]
        region = min(holding or roots, key=lambda one: one.most)
        self._solve(replace(region, lags=lags, live_lags=lags), deadline)

    def _resampled(self, k: int) -> Floats:
        """The best known sizes as k fragments that change alike along the message."""
        known = min(self.real.values(), key=lambda one: one[0], default=None)
        sizes = np.array(self._start.fragment_bytes, float) if known is None else known[1]
        positions = np.concatenate([[0.0], np.cumsum(sizes)])
        at = np.linspace(0.0, len(sizes), k + 1)
        parts = np.diff(np.interp(at, np.arange(len(sizes) + 1), positions))
        minimum, most = self._problem.smallest_fragment_bytes, self._problem.largest_fragment_bytes
        return within(parts, float(self._problem.message_bytes), float(minimum), float(most))

    def _count(self, k: int) -> _Count:
        """The regions of k fragments."""
        if k not in self._counts:
            of_count_us = float(self.lower_us[k - self._first])
            self._counts[k] = _Count(
                [
                    BoundedRegion(max(of_count_us, one.bound_us), one.region)
                    for one in sorted(regions_of(self._problem, k))
                ]
            )
        return self._counts[k]

    def _close_next(self, k: int, deadline: Deadline) -> None:
        """Bound, solve or divide the region of least bound, and let the count's bound rise."""
        count = self._count(k)
        self._take(k, _BOUND_SHARE)
        bounded = heappop(count.left)
        proven_us = max(bounded.bound_us, self._like_us(bounded.region))
        if proven_us < self._limit_us and k <= MAX_FRAGMENTS:
            proven_us = max(proven_us, self._solve(bounded.region, deadline))
        bounded = BoundedRegion(proven_us, bounded.region)
        parts = parts_of(self._problem, bounded) if proven_us < self._limit_us else []
        for part in parts:
            heappush(count.left, part)
        if not parts:
            count.closed_us = min(count.closed_us, proven_us)
        self.lower_us[k - self._first] = count.min_us

    def _like_us(self, region: Region) -> float:
        """The best bound by the duals of the next counts on both sides, as far as it is needed."""
        solved_us = self._count(region.k).solved.get(region)
        if solved_us is not None:
            return solved_us
        best_us, duals = 0.0, self._duals.get((region.places, region.lags), {})
        below, above = [k for k in duals if k < region.k], [k for k in duals if k > region.k]
        for k in (*sorted(below)[-1:], *sorted(above)[:1]):
            for share in _REPEATED:
                if best_us >= self._limit_us:
                    return best_us
                self._take(region.k, _BOUND_SHARE)
                dual = duals[k].of_count(region.k, int(share * (min(k, region.k) - 1)))
                best_us = max(best_us, bound_by_us(self._problem, region, dual))
        return best_us

    def _solve(self, region: Region, deadline: Deadline) -> float:
        """The bound that the program of a region proves; keeps its sizes where they are the best of
        their count.
        """
        k, solved_us = region.k, self._count(region.k).solved
        if region not in solved_us:
            self._take(k)
            found = solve_region(self._problem, region, deadline)
            solved_us[region] = found.bound_us
            if found.dual is not None:
                of_rules = self._duals.setdefault((region.places, region.lags), {})
                of_rules[k] = found.dual
            if found.sizes is not None:
                latency_us = self._costs.cut_us(found.sizes.tolist())
                self.best_us = min(self.best_us, latency_us)
                if latency_us < self.real.get(k, (inf,))[0]:
                    self.real[k] = latency_us, found.sizes
        return solved_us[region]
