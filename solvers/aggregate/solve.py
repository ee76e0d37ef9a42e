"""What can be answered from outside: single, static, repeat, fixed, and the best of them.

Source    Wang98 sec. 5.3; docs/theory.md, "From outside".
Notation  k: fragments.
Cost      O(number of admitted k) NumPy passes for the bound; see the modules of each strategy.
Exact     `fixed` over real equal sizes and `repeat` over all repeated sizes, of the latency that no
          pipeline with these costs exceeds; what other cuts could gain is what the bound leaves.
Traps     strategies that shape fragments by single stages have nothing to go by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf

import numpy as np

from domain.errors import Infeasible, StrategyDeclined
from domain.problem import AggregateProblem
from domain.solution import Notice, Solution, Strategy
from solvers.aggregate.costs import Costs, is_convex, lower_bound_us
from solvers.aggregate.cuts import best_count, fixed_cut, repeat_cut
from solvers.assemble import evaluated_us, solution_of
from solvers.backends import Backend
from solvers.contract import Candidate, Deadline, SolveOptions
from solvers.default_settings import Baseline, BaselineSet, BestRepeat, priced_settings
from solvers.heuristics.constant import run_single, run_static

QUICK_COUNTS = 120_000  # admitted counts times ranges: what bound and search pass through
QUICK_FRAGMENTS = 5_000
_BASELINE_S = 2.0  # what a baseline may take; only thousands of ranges come near it

Run = Callable[[AggregateProblem, SolveOptions, Deadline], Candidate]
_RUNS: dict[Strategy, Run] = {
    Strategy.SINGLE: run_single,
    Strategy.STATIC: run_static,
    Strategy.REPEAT: lambda problem, _, deadline: repeat_cut(problem, deadline),
    Strategy.FIXED: lambda problem, *_: fixed_cut(problem),
}
_AUTO = (Strategy.SINGLE, Strategy.REPEAT, Strategy.FIXED)  # in the order in which ties are settled


def solve_aggregate(
    problem: AggregateProblem, strategy: Strategy, options: SolveOptions
) -> Solution:
    """Solve by one strategy, or by the best of them. Raises StrategyDeclined, Infeasible."""
    problem.count_range()  # raises Infeasible before any work
    deadline = Deadline.after(options.time_limit_s)
    contest = _Contest(problem, options, lower_bound_us(problem))
    if strategy is not Strategy.AUTO:
        contest.offer(strategy, _run_of(strategy)(problem, options, deadline))
        return contest.best()
    for name in _AUTO:
        try:
            contest.offer(name, _RUNS[name](problem, options, deadline))
        except (StrategyDeclined, Infeasible):
            continue
    return contest.best()


def baselines_of_aggregate(
    problem: AggregateProblem, current_bytes: int | None = None
) -> BaselineSet:
    """Return what the setting in use and the default settings cost at most. Raises Infeasible
    where nothing is admitted.
    """
    problem.count_range()
    entries = priced_settings(
        problem, current_bytes, lambda strategy, size: _baseline(problem, strategy, size)
    )
    return BaselineSet(tuple(entries), _best_repeat(problem))


def is_quick_aggregate(problem: AggregateProblem, strategy: Strategy) -> bool:
    """Return whether solving this is certain to end within 50 ms; a rule about work, not about
    time.
    """
    counts = problem.count_range()
    pieces = 1 + len(problem.aggregate.range_ends)
    if (counts.maximum - counts.minimum) * pieces > QUICK_COUNTS:
        return False
    return best_count(problem) <= QUICK_FRAGMENTS


def _run_of(strategy: Strategy) -> Run:
    if strategy not in _RUNS:
        raise StrategyDeclined(
            f"{strategy} shapes fragments by the time of every stage, and that measurement is "
            "missing (a direct trace): only all stages together and the slowest of them are known. "
            f"Strategies for that: {', '.join(_RUNS)}, {Strategy.AUTO}",
            field="strategy",
        )
    return _RUNS[strategy]


class _Contest:
    """Keeps the best candidate and reports each better one; of equals the first."""

    def __init__(self, problem: AggregateProblem, options: SolveOptions, bound_us: float) -> None:
        self._problem, self._options, self._bound_us = problem, options, bound_us
        self._best: tuple[Strategy, Candidate] | None = None
        self._rank = (inf, 0, 0)
        self._is_cut_off = False

    def offer(self, strategy: Strategy, candidate: Candidate) -> None:
        """Let a candidate take part."""
        self._is_cut_off |= candidate.cut_off
        cut = candidate.fragment_bytes
        rank = (evaluated_us(self._problem, candidate), len(cut), cut[0])
        if rank >= self._rank:
            return
        self._best, self._rank = (strategy, candidate), rank
        if self._options.on_incumbent is not None:
            self._options.on_incumbent(self.best())

    def best(self) -> Solution:
        """The best so far. Raises StrategyDeclined where no strategy found a cut."""
        if self._best is None:
            raise StrategyDeclined(
                "the limits admit neither one fragment, nor equal ones, nor a repeated size with "
                "its remainder, and other cuts need the time of every stage",
                field="strategy",
            )
        return self._solution(*self._best)

    def _solution(self, strategy: Strategy, candidate: Candidate) -> Solution:
        problem, real = self._problem, candidate.real_sizes
        notices = tuple(self._notices(candidate))
        return solution_of(
            problem,
            strategy,
            replace(candidate, notices=notices, cut_off=self._is_cut_off),
            bound_us=self._bound_us,
            relative_gap=self._options.relative_gap,
            evaluated=self._rank[0],
            unrounded_us=None if real is None else problem.aggregate.latency_us(real),
            limited_by=_limited_by(problem, len(candidate.fragment_bytes)),
        )

    def _notices(self, candidate: Candidate) -> list[Notice]:
        found = []
        if len(set(candidate.fragment_bytes)) > 1:
            found.append(_UPPER_BOUND)
        if not is_convex(self._problem):
            found.append(_ONE_BOTTLENECK)
        return found


_UPPER_BOUND = Notice(
    "latency_is_upper_bound",
    "the fragments are not all of one size, and the total and the bottleneck alone do not tell the "
    "order of the stages: the latency is the most that this cut can take, not what it takes",
)
_ONE_BOTTLENECK = Notice(
    "bound_assumes_one_bottleneck",
    "the bottleneck's time jumps or bends downwards between ranges of fragment sizes: the lower "
    "bound holds where one and the same stage is the slowest at all of them",
)


def _limited_by(problem: AggregateProblem, fragments: int) -> str | None:
    """The cap on the count, where the answer stands at it and one more fragment would win."""
    counts = problem.count_range()
    if fragments < counts.maximum:
        return None
    costs = Costs(problem.aggregate)
    here_us, beyond_us = costs.equal_us(
        problem.message_bytes, np.array([fragments, fragments + 1], dtype=np.int64)
    )
    return counts.capped_by if beyond_us < here_us else None


def _baseline(problem: AggregateProblem, strategy: Strategy, static_bytes: int | None) -> Baseline:
    options = SolveOptions(static_bytes=static_bytes)
    try:
        cut = _RUNS[strategy](problem, options, Deadline.after(_BASELINE_S)).fragment_bytes
    except (StrategyDeclined, Infeasible) as refusal:
        return Baseline(strategy, static_bytes, None, None, refusal.detail)
    return Baseline(strategy, static_bytes, problem.aggregate.latency_us(cut), len(cut))


def _best_repeat(problem: AggregateProblem) -> BestRepeat | None:
    try:
        cut = repeat_cut(problem, Deadline.after(_BASELINE_S)).fragment_bytes
    except (StrategyDeclined, Infeasible):
        return None
    return BestRepeat(cut[0], len(cut), problem.aggregate.latency_us(cut))


BACKEND = Backend(
    solve=solve_aggregate,
    is_quick=is_quick_aggregate,
    baselines=baselines_of_aggregate,
    repeated_us=lambda model, q, s, r: Costs(model).repeated_us(q, s, r),
    costs=lambda _: 2,
)
