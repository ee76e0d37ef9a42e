"""What is solved of machines: single, static, repeat, fixed, ramp_repeat, exact, the best of them.

Source    docs/theory.md, "Machines".
Cost      see the modules of each strategy.
Exact     `repeat` over every repeated size; `exact` at its count; what other counts could gain is
          what the bound leaves.
Traps     strategies that shape fragments for one lane put one huge part on it: they are declined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

from contract.limits import MAX_LAG
from domain.errors import Infeasible, StrategyDeclined
from domain.machine import Machine
from domain.problem import DEFAULT_FRAGMENT_CAP, MachineProblem
from domain.solution import Notice, Solution, Status, Strategy
from solvers.assemble import check_limits, rank_of, solution_of
from solvers.backends import Backend
from solvers.contract import Candidate, Deadline, SolveOptions
from solvers.default_settings import BaselineSet, baselines_by
from solvers.heuristics.constant import run_single, run_static
from solvers.machine.costs import Costs
from solvers.machine.counts import lower_bound_us
from solvers.machine.exact import BOUNDED, WHOLE_TIME, exact_cut
from solvers.machine.fixed import best_count, fixed_cut
from solvers.machine.ramp_repeat import ramp_repeat_cut
from solvers.machine.repeat import repeat_cut

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

QUICK_COUNTS = 20_000  # admitted counts that bounds and searches pass through
QUICK_COUNTED = 4  # stages with lanes, and windows: of each is found how many are enough
QUICK_CELLS = 2_000  # fragments times nodes near the best count, for each choice of lags
_FOLLOWED_CELLS = 20_000  # fragments times nodes whose order of leaving is looked at
_BASELINE_S = 2.0  # what a baseline may take
_ROWS = 1000  # of fragments that pass before their rounds repeat, at most times

Run = Callable[[MachineProblem, SolveOptions, Deadline], Candidate]
_RUNS: dict[Strategy, Run] = {
    Strategy.SINGLE: run_single,
    Strategy.STATIC: run_static,
    Strategy.REPEAT: lambda problem, _, deadline: repeat_cut(problem, deadline),
    Strategy.FIXED: lambda problem, *_: fixed_cut(problem),
    Strategy.RAMP_REPEAT: lambda problem, _, deadline: ramp_repeat_cut(problem, deadline),
}
_ONE_SIZE = (Strategy.SINGLE, Strategy.REPEAT, Strategy.FIXED)  # in the order that settles ties


def solve_machine(problem: MachineProblem, strategy: Strategy, options: SolveOptions) -> Solution:
    """Solve by one strategy, or by the best of them. Raises StrategyDeclined, Infeasible."""
    problem.count_range()  # raises Infeasible before any work
    deadline = Deadline.after(options.time_limit_s)
    contest = _Contest(problem, options, lower_bound_us(problem))
    if strategy in _RUNS:
        contest.offer(strategy, _RUNS[strategy](problem, options, deadline))
        return contest.best()
    if strategy not in (Strategy.AUTO, Strategy.EXACT):
        raise StrategyDeclined(
            f"{strategy} needs plain stages: it shapes fragments for stages that handle one at a "
            f"time. Strategies for lanes, windows, delays and processors: {', '.join(_RUNS)}, "
            f"{Strategy.EXACT}, {Strategy.AUTO}",
            field="strategy",
        )
    starts = (*_ONE_SIZE, Strategy.RAMP_REPEAT)
    for name in starts:
        try:
            contest.offer(name, _RUNS[name](problem, options, deadline))
        except (StrategyDeclined, Infeasible):
            continue
    try:
        work = BOUNDED if strategy is Strategy.AUTO else WHOLE_TIME
        found = exact_cut(problem, contest.candidate(), options, deadline, work)
    except StrategyDeclined:
        if strategy is Strategy.EXACT:
            raise
        return contest.best()
    contest.prove(found.bound_us, found.unrounded_us)
    contest.offer(Strategy.EXACT, found.candidate)
    solution = contest.best()
    if found.is_unfinished and solution.status is Status.PROVEN_GAP:
        return replace(solution, notices=(*solution.notices, _GOES_ON))
    return solution


def baselines_of_machine(problem: MachineProblem, current_bytes: int | None = None) -> BaselineSet:
    """Return what the setting in use and the default settings cost. Raises Infeasible where nothing
    is admitted.
    """
    problem.count_range()

    def cut_by(strategy: Strategy, static_bytes: int | None) -> Sequence[int]:
        options = SolveOptions(static_bytes=static_bytes)
        return _RUNS[strategy](problem, options, Deadline.after(_BASELINE_S)).fragment_bytes

    def latency_us(cut: Sequence[int]) -> float:
        return _latency_us(problem.machine, cut)

    return baselines_by(problem, current_bytes, cut_by, latency_us)


def is_quick_machine(problem: MachineProblem, strategy: Strategy) -> bool:
    """Return whether solving this is certain to end within 50 ms; a rule about work, not about
    time.
    """
    counts, machine = problem.count_range(), problem.machine
    if strategy in (Strategy.AUTO, Strategy.EXACT) or machine.network.processors:
        return False
    counted = sum(rules.lanes > 1 for rules in machine.rules) + len(machine.windows)
    if counts.maximum - counts.minimum > QUICK_COUNTS or counted > QUICK_COUNTED:
        return False
    return best_count(problem) * len(machine.network) <= QUICK_CELLS


class _Contest:
    """Keeps the best candidate and reports each better one; of equals the first."""

    def __init__(self, problem: MachineProblem, options: SolveOptions, bound_us: float) -> None:
        self._problem, self._options, self._bound_us = problem, options, bound_us
        self._unrounded_us: float | None = None
        self._best: tuple[Strategy, Candidate, float] | None = None
        self._rank = (inf, 0, 0)
        self._is_cut_off = False

    def offer(self, strategy: Strategy, candidate: Candidate) -> None:
        """Let a candidate take part."""
        self._is_cut_off |= candidate.cut_off
        check_limits(self._problem, (candidate.fragment_bytes,))
        latency_us = _latency_us(self._problem.machine, candidate.fragment_bytes)
        rank = rank_of(latency_us, candidate.fragment_bytes)
        if rank >= self._rank:
            return
        self._best, self._rank = (strategy, candidate, latency_us), rank
        if self._options.on_incumbent is not None:
            self._options.on_incumbent(self.best())

    def prove(self, bound_us: float, unrounded_us: float | None) -> None:
        """Raise the bound over every cut, and keep the real optimum behind the candidates."""
        self._bound_us = max(self._bound_us, bound_us)
        self._unrounded_us = unrounded_us

    def candidate(self) -> Candidate:
        """The best so far. Raises StrategyDeclined where no strategy found a cut."""
        return self._found()[1]

    def best(self) -> Solution:
        """The best so far, as an answer. Raises StrategyDeclined."""
        strategy, candidate, latency_us = self._found()
        problem, real = self._problem, candidate.real_sizes
        unrounded = [] if self._unrounded_us is None else [self._unrounded_us]
        if real is not None:
            unrounded.append(_latency_us(problem.machine, real))
        notices = tuple(_notices(problem, candidate))
        return solution_of(
            problem,
            strategy,
            replace(candidate, notices=notices, cut_off=self._is_cut_off),
            bound_us=self._bound_us,
            relative_gap=self._options.relative_gap,
            evaluated=latency_us,
            unrounded_us=min(unrounded, default=None),
            limited_by=_limited_by(problem, len(candidate.fragment_bytes)),
        )

    def _found(self) -> tuple[Strategy, Candidate, float]:
        if self._best is None:
            raise StrategyDeclined(
                "the limits admit neither one fragment, nor equal ones, nor a repeated size with "
                "its remainder",
                field="strategy",
            )
        return self._best


def _latency_us(machine: Machine, cut: Sequence[float]) -> float:
    """What the evaluator says of a cut, by its kernel: the same bits for every order of a
    processor.
    """
    return Costs(machine).cut_us(cut) + machine.delay_us


def _notices(problem: MachineProblem, candidate: Candidate) -> list[Notice]:
    if _may_overtake(problem.machine, candidate.fragment_bytes):
        return [_MAY_OVERTAKE]
    return []


def _may_overtake(machine: Machine, cut: tuple[int, ...]) -> bool:
    """Whether a fragment leaves a stage with lanes before one that is ahead of it: while none does,
    lanes in turn are any free ones (docs/theory.md, "Machines").
    """
    network = machine.network
    of_lanes = [
        node
        for node, stage in enumerate(network.stage_of)
        if machine.rules[stage].lanes > 1 and not network.is_shared[node]
    ]
    if not of_lanes or all(size <= behind for size, behind in pairwise(cut)):
        return False
    if len(cut) * len(network) > _FOLLOWED_CELLS:
        return True
    costs = Costs(machine)
    _, ends_us = costs.node_times_us(cut, costs.best_lags(cut))
    return bool((np.diff(ends_us[:, of_lanes], axis=0) < 0.0).any())


_GOES_ON = Notice(
    "exact_goes_on",
    "other numbers of fragments could still gain what the gap says: auto stops after a set amount "
    "of work, and strategy exact goes on until the time limit",
)
_MAY_OVERTAKE = Notice(
    "rest_may_overtake",
    "a smaller fragment leaves a stage with lanes before a greater one: where fragments take any "
    "free lane it overtakes, and the message took 14 % less to 5 % more than is said here in "
    "simulations; here lanes are taken in turn",
)


def _limited_by(problem: MachineProblem, fragments: int) -> str | None:
    """The cap on the count, where the answer stands at it and one more fragment would win."""
    counts, total = problem.count_range(), problem.message_bytes
    if fragments < counts.maximum:
        return None
    tried = np.array([fragments, fragments + 1], dtype=np.int64)
    here_us, beyond_us = Costs(problem.machine).equal_us(total / tried, tried)
    return counts.capped_by if beyond_us < here_us else None


def _repeated_us(machine: Machine, q: Ints, s: Ints, r: Ints) -> Floats:
    return Costs(machine).repeated_us(q, s, r)


def _costs(machine: Machine) -> int:
    lags: int = (MAX_LAG + 1) ** len(machine.network.processors)
    return _ROWS * len(machine.network) * lags


BACKEND = Backend(
    solve=solve_machine,
    is_quick=is_quick_machine,
    baselines=baselines_of_machine,
    repeated_us=_repeated_us,
    costs=_costs,
    most_fragments=DEFAULT_FRAGMENT_CAP,
)
