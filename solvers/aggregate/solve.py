"""What can be answered from outside: single, static, repeat, fixed, the best of them, and tables.

Source    Wang98 sec. 5.3; docs/theory.md, "From outside".
Notation  k: fragments.
Cost      O(number of admitted k) NumPy passes for the bound; see the modules of each strategy.
Exact     `fixed` over real equal sizes and `repeat` over all repeated sizes, of the latency that no
          pipeline with these costs exceeds; what other cuts could gain is what the bound leaves.
Traps     strategies that shape fragments by single stages have nothing to go by.

A table has repeated sizes, and the cuts that repeat them in place of schedules. Repeated sizes are
compiled for the slowest pipeline with these costs (`Aggregate.slowest_pipeline`), through which
they take what the evaluator says, so that each gap is against every repeated size. The gap of a
cut is against a bound on every cut of every pipeline with these costs, which is far: of messages
B1 <= B <= B2, min over cuts of B1 <= min over cuts of B, for the last bytes of a cut can be left
out; and a cut that is interpolated between two has no fragment above the greater of theirs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf

import numpy as np

from domain.aggregate import Aggregate
from domain.errors import Infeasible, StrategyDeclined
from domain.hiding import HiddenBehind
from domain.plan_table import PlanTable, TableCut, TableRepeat, repeated_size
from domain.problem import AggregateProblem, FragmentLimits, Problem
from domain.solution import Notice, Solution, Strategy, relative_excess
from solvers.aggregate.bound import is_convex, lower_bound_us
from solvers.aggregate.costs import Costs
from solvers.aggregate.fixed import best_count, fixed_cut
from solvers.aggregate.repeat import repeat_cut
from solvers.assemble import evaluated_us, solution_of
from solvers.backends import Backend
from solvers.contract import Candidate, Deadline, SolveOptions
from solvers.default_settings import BaselineSet, baselines_by
from solvers.heuristics.constant import repeated_cut, run_single, run_static
from solvers.tables.budget import MARGIN, CompileProgress, EvenCompilation
from solvers.tables.compile import Over, as_lines, compilers

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

    def cut_by(strategy: Strategy, static_bytes: int | None) -> Sequence[int]:
        options = SolveOptions(static_bytes=static_bytes)
        return _RUNS[strategy](problem, options, Deadline.after(_BASELINE_S)).fragment_bytes

    return baselines_by(problem, current_bytes, cut_by, problem.aggregate.latency_us)


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


# --- tables ---------------------------------------------------------------------------------------

_APART = 1.02  # ratio of the messages of neighbouring cuts, at most
_BOUNDS_APART = 1.05  # and of those whose bound is computed
_SAFE = 1e-12
_MAX_GAP = 1e300  # where nothing is proven
_FINISH_S = 60.0  # after the time limit, for what is taken as it is then


def compile_aggregate_table(
    aggregate: Aggregate,
    limits: FragmentLimits,
    *,
    min_message_bytes: int,
    max_message_bytes: int,
    relative_gap: float,
    fragment_cap: int,
    time_limit_s: float,
    behind: HiddenBehind | None,
    on_progress: Callable[[float], None],
    on_loosened: Callable[[float], None],
    on_cut_off: Callable[[], None],
    is_ended: Callable[[], bool] | None,
) -> PlanTable:
    """Return a table as `solvers.compile_table` does; its pipeline is the slowest with these costs.

    The tolerance is that of the repeated sizes. Raises what that raises, and StrategyDeclined for
    hidden messages, for a smallest fragment or an alignment, and for costs of no such pipeline.
    """
    if behind is not None or limits.min_fragment_bytes > 1 or limits.alignment_bytes > 1:
        raise StrategyDeclined(
            "where only the total and the bottleneck are known, a table keeps max_fragment_bytes "
            "and max_fragments alone, and is of messages that are waited for",
            field="constraints",
        )
    pipeline = aggregate.slowest_pipeline()
    deadline = Deadline.after(time_limit_s, is_ended)
    last = Deadline.after(time_limit_s + _FINISH_S)
    lines = as_lines(pipeline, limits, min_message_bytes, max_message_bytes)
    problem = Problem(lines or pipeline, max_message_bytes, limits, fragment_cap)
    over = Over(min_message_bytes, max_message_bytes, relative_gap * MARGIN)
    _, compiler = compilers(problem, over, None, are_lines=lines is not None)
    progress = CompileProgress(min_message_bytes, max_message_bytes, on_progress)
    even = EvenCompilation(compiler, relative_gap)
    even.first(deadline, progress.repeats_at, last=last)
    if even.is_cut_off:
        on_cut_off()
    repeats, loosened_gap = even.loosened(deadline, progress.again)
    if loosened_gap > relative_gap:
        on_loosened(loosened_gap)
    whole = AggregateProblem(aggregate, max_message_bytes, limits, fragment_cap)
    cuts = tuple(_repeating_cuts(whole, repeats))
    progress.end()
    return PlanTable(
        pipeline=pipeline,
        limits=limits,
        fragment_cap=fragment_cap,
        min_message_bytes=min_message_bytes,
        max_message_bytes=max_message_bytes,
        relative_gap=relative_gap,
        cuts=cuts,
        repeats=tuple(repeats),
    )


def _repeating_cuts(problem: AggregateProblem, repeats: list[TableRepeat]) -> Iterator[TableCut]:
    """Yield the cuts that repeat these sizes: two for each stretch, its ends.

    Between two repeats the number of fragments stays that of the first.
    """
    bounds = _Bounds(problem, repeats[0].message_bytes)
    for here, after in pairwise([*repeats, None]):
        assert here is not None
        behind = here.message_bytes + 1 if after is None else after.message_bytes
        for first, last in _parts(here.message_bytes, behind - 1):
            ends = [
                _repeated(problem, _size_at(here, after, message), message)
                for message in dict.fromkeys((first, last))
            ]
            # T is monotone in every fragment, and no fragment is above the greater of both ends.
            sizes = tuple(map(max, ends[0], ends[-1]))
            bound_us = bounds.at(first)
            gap = relative_excess(problem.aggregate.latency_us(sizes), bound_us, bound_us)
            for message, cut in zip((first, last), ends, strict=False):
                yield TableCut(
                    message, cut, problem.aggregate.latency_us(cut), min(gap, _MAX_GAP) + _SAFE
                )


def _parts(first: int, last: int, apart: float = _APART) -> Iterator[tuple[int, int]]:
    """Yield the messages of a stretch, in parts whose ends are near each other."""
    while first <= last:
        end = min(last, max(first, int(first * apart)))
        yield first, end
        first = end + 1


def _size_at(here: TableRepeat, after: TableRepeat | None, message_bytes: int) -> int:
    if after is None or message_bytes == here.message_bytes:
        return here.size_bytes
    return repeated_size(here, after, message_bytes, FragmentLimits())


def _repeated(problem: AggregateProblem, size: int, message_bytes: int) -> tuple[int, ...]:
    return repeated_cut(replace(problem, message_bytes=message_bytes), size)


class _Bounds:
    """Bounds on every cut of a message, from those of some messages below it."""

    def __init__(self, problem: AggregateProblem, min_message_bytes: int) -> None:
        self._problem = problem
        self._known: dict[int, float] = {}
        parts = _parts(min_message_bytes, problem.message_bytes, _BOUNDS_APART)
        self._sizes = [first for first, _ in parts]

    def at(self, message_bytes: int) -> float:
        """Return a bound (µs, delay included) on every cut of this message and of longer ones."""
        size = self._sizes[bisect_right(self._sizes, message_bytes) - 1]
        if size not in self._known:
            self._known[size] = lower_bound_us(replace(self._problem, message_bytes=size))
        return self._known[size]


BACKEND = Backend(
    solve=solve_aggregate,
    is_quick=is_quick_aggregate,
    baselines=baselines_of_aggregate,
    repeated_us=lambda model, q, s, r: Costs(model).repeated_us(q, s, r),
    costs=lambda _: 2,
    compile_table=compile_aggregate_table,
)
