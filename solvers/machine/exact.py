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

from dataclasses import dataclass, field
from math import inf

import numpy as np
from numpy.typing import NDArray

from domain.errors import StrategyDeclined
from domain.problem import MachineProblem
from solvers.assemble import rank_of
from solvers.contract import Candidate, Deadline, SolveOptions
from solvers.machine.bound import bounds_us
from solvers.machine.costs import Costs
from solvers.machine.program import Region, solve_region, within
from solvers.machine.regions import regions_of
from solvers.machine.whole import whole_cut

Floats = NDArray[np.float64]

MAX_FRAGMENTS = 300  # of one program
_FIRST_STEP = 4  # of the count, the part by which it changes at first
_SHARPER = 0.05  # of the gap asked for: the bound of counts that are not solved is this close
_SEARCH_SHARE = 0.8  # of the time; the rest is for whole bytes
_ROUNDED = 8  # counts that are rounded to whole bytes


@dataclass(frozen=True, slots=True)
class Exact:
    """The best whole-byte cut found, the bound over every cut, and the real optimum, both in µs.

    `unrounded_us` is what the evaluator says of the best real sizes; None where none were found.
    """

    candidate: Candidate
    bound_us: float
    unrounded_us: float | None


def exact_cut(
    problem: MachineProblem, start: Candidate, options: SolveOptions, deadline: Deadline
) -> Exact:
    """Return the best cut, with a bound on every cut of every admitted count.

    `start` is the best cut known. A window of bytes holds as many fragments as of the greatest one:
    the bound is the least over all that this may be. Raises StrategyDeclined for stages with
    several ranges in the admitted sizes, and where the best count is above MAX_FRAGMENTS.
    """
    least, most = problem.smallest_fragment_bytes, problem.largest_fragment_bytes
    if any(stage.line_over(least, most) is None for stage in problem.machine.stages):
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
    search = _Search(problem, start, options.relative_gap)
    in_time = search.run(deadline.share(_SEARCH_SHARE))
    delay_us = problem.machine.delay_us
    bound_us = float(search.lower_us.min()) + delay_us
    enough_us = bound_us * (1.0 + options.relative_gap) - delay_us
    found = _whole(problem, search, start, enough_us, deadline)
    candidate = Candidate(found[0], found[1], cut_off=not in_time)
    has_found = search.best_us < inf
    return Exact(candidate, bound_us, search.best_us + delay_us if has_found else None)


def _whole(
    problem: MachineProblem, search: _Search, start: Candidate, enough_us: float, deadline: Deadline
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
        cut = whole_cut(problem, sizes, enough_us=enough_us, deadline=deadline)
        if cut is None:
            continue
        cut_us = costs.cut_us(cut)
        if rank_of(cut_us, cut) < rank_of(best_us, best):
            best, best_us, real = cut, cut_us, tuple(sizes.tolist())
    return best, real


@dataclass(slots=True)
class _Count:
    """The regions of one count, and of each a bound in µs; `is_solved` where nothing is left."""

    regions: list[Region]
    bounds_us: Floats
    is_solved: NDArray[np.bool_]


@dataclass(slots=True)
class _Search:
    """Solves regions of counts until no other one can win. Latencies leave out the constant delay.

    `lower_us` has the bound of each admitted count, `real` the best real sizes of each that was
    solved, with their latency.
    """

    problem: MachineProblem
    start: Candidate
    relative_gap: float
    lower_us: Floats = field(init=False)
    real: dict[int, tuple[float, Floats]] = field(default_factory=dict)
    best_us: float = inf
    _counts: dict[int, _Count] = field(default_factory=dict)
    _costs: Costs = field(init=False)
    _first: int = field(init=False)

    def __post_init__(self) -> None:
        self.lower_us = bounds_us(self.problem) - self.problem.machine.delay_us
        self._costs = Costs(self.problem.machine)
        self._first = self.problem.count_range().minimum

    @property
    def _limit_us(self) -> float:
        """Regions with a bound above it cannot win."""
        return self.best_us / (1.0 + _SHARPER * self.relative_gap)

    def run(self, deadline: Deadline) -> bool:
        """Whether every region that could win was solved in time."""
        self._approach(deadline)
        while not deadline.passed:
            is_open = self.lower_us[: MAX_FRAGMENTS - self._first + 1].copy()
            for k, count in self._counts.items():
                if not (~count.is_solved & (count.bounds_us < self._limit_us)).any():
                    is_open[k - self._first] = inf
            index = int(np.argmin(is_open))
            if is_open[index] >= self._limit_us:
                return True
            k = index + self._first
            count = self._count(k)
            if count is None:
                return True
            left = np.where(count.is_solved, inf, count.bounds_us)
            self._solve(k, int(np.argmin(left)), deadline)
        return False

    def _approach(self, deadline: Deadline) -> None:
        """Go from the count that is known to better ones, by steps that halve."""
        last = min(MAX_FRAGMENTS, self.problem.count_range().maximum)
        k = len(self.start.fragment_bytes)
        self._solve_likely(k, deadline)
        step = max(1, k // _FIRST_STEP)
        while step and not deadline.passed:
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
        if k in self._counts or self.lower_us[k - self._first] >= self._limit_us:
            return
        count = self._count(k)
        if count is None:
            return
        sizes = self._resampled(k)
        times = self.problem.machine.node_times(sizes.tolist())
        greatest = float(sizes.max())
        fits = [
            (one.most if one.most >= greatest else inf, one.lags != times.lags, at)
            for at, one in enumerate(count.regions)
        ]
        self._solve(k, min(fits)[-1], deadline)

    def _resampled(self, k: int) -> Floats:
        """The best known sizes as k fragments that change alike along the message."""
        known = min(self.real.values(), key=lambda one: one[0], default=None)
        sizes = np.array(self.start.fragment_bytes, float) if known is None else known[1]
        positions = np.concatenate([[0.0], np.cumsum(sizes)])
        at = np.linspace(0.0, len(sizes), k + 1)
        parts = np.diff(np.interp(at, np.arange(len(sizes) + 1), positions))
        least, most = self.problem.smallest_fragment_bytes, self.problem.largest_fragment_bytes
        whole = Region(k, float(least), float(most), (), None)
        return within(parts, float(self.problem.message_bytes), whole)

    def _count(self, k: int) -> _Count | None:
        """The regions of k fragments; None where they are too many."""
        if k not in self._counts:
            bounded = regions_of(self.problem, k)
            if bounded is None:
                return None
            of_count_us = float(self.lower_us[k - self._first])
            bounds = np.array([max(of_count_us, one.bound_us) for one in bounded])
            regions = [one.region for one in bounded]
            self._counts[k] = _Count(regions, bounds, np.zeros(len(bounds), dtype=bool))
            self.lower_us[k - self._first] = bounds.min()
        return self._counts[k]

    def _solve(self, k: int, at: int, deadline: Deadline) -> None:
        """Solve one region, and let the count's bound rise to the least of its regions."""
        count = self._counts[k]
        solved = solve_region(self.problem, count.regions[at], deadline)
        count.is_solved[at] = True
        count.bounds_us[at] = max(float(count.bounds_us[at]), solved.bound_us)
        self.lower_us[k - self._first] = count.bounds_us.min()
        if solved.sizes is None:
            return
        latency_us = self._costs.cut_us(solved.sizes.tolist())
        self.best_us = min(self.best_us, latency_us)
        if latency_us < self.real.get(k, (inf,))[0]:
            self.real[k] = latency_us, solved.sizes
