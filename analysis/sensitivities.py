"""How an answer's latency moves with the costs of its stages and with its message.

Source    docs/theory.md, "Sensitivities of an answer": Danskin's theorem on the reduced dual.
Cost      two solves of the answer's count, each a small part of the search for it; at a kink
          4n + 4 more.
Exact     the bounds of CostChange are proven, for a repaired p is a feasible dual at any costs.
          Derivatives of the optimum are those of a primal and a dual solution that agree to 1e-9;
          those of a cut that is kept are cut_slopes.py's.
Traps     an interior point gives the centre of all optimal duals, so that at a kink its derivative
          lies between the two sides and is that of neither. Both sides are then solved beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from math import inf, nan

from analysis.cut_slopes import cut_slopes
from analysis.explain import Explained
from analysis.machine_sensitivities import machine_sensitivities
from domain.pipeline import Pipeline
from domain.problem import MachineProblem, Problem
from domain.sensitivity import Basis, CostChange, Sensitivities, Slope, StageSensitivity
from domain.solution import Solution, Strategy
from solvers.contract import Deadline
from solvers.exact.dual import value_us
from solvers.exact.structured import Gradient, Slopes, gradient_of, slopes_of, solve_count
from solvers.kernels import active
from solvers.line_problem import LineProblem

CHANGES = (-0.1, 0.1)
MAX_CELLS = 200_000  # fragments times stages of an answer that is looked at
_OPTIMUM_CELLS = 2_000  # of one whose optimum is solved again: each solve takes a few ms
_CHANGED_CELLS = 500  # of one whose optimum is solved at changed costs
_CHANGED = 1e-6  # of the latency: how closely
_UNSOLVED = (nan, nan)
_NO_DEADLINE = Deadline(inf)
_OPTIMAL = (Strategy.AUTO, Strategy.EXACT)


def sensitivities(
    solution: Solution, asked: Strategy, *, repeated_bytes: int | None = None
) -> Sensitivities | None:
    """Return how a solution's latency moves; None of an aggregate, of very many fragments, and of
    costs so near the greatest that 10 % more is none.

    The optimum's derivatives where the stages are lines and the strategy asked for seeks the
    optimum, else those of the solution's own cut, as of machines. Of these `repeated_bytes` is the
    best repeated size, for which lanes and places are changed where the cut repeats none.
    """
    problem = solution.problem
    if isinstance(problem, MachineProblem):
        return machine_sensitivities(
            problem,
            solution.schedule.fragment_bytes,
            CHANGES,
            latency_us=solution.latency_us,
            repeated_bytes=repeated_bytes,
        )
    if not isinstance(problem, Problem):
        return None
    if solution.cells > MAX_CELLS or solution.latency_us <= 0.0:
        return None
    if not problem.pipeline.derived(_may_cost_more):
        return None
    optimum = _optimum(solution, problem, asked)
    slopes = None
    if optimum is not None:
        slopes = slopes_of(*optimum)
    if slopes is not None:
        return _assembled(solution, problem, Basis.OPTIMUM, slopes, optimum)
    n = len(problem.pipeline)
    unknown = ([Slope()] * n, [Slope()] * n, Slope())
    kept = None
    if not solution.levels:
        kept = cut_slopes(problem.pipeline, solution.schedule.fragment_bytes)
    slopes = unknown if kept is None else (*kept, Slope())
    return _assembled(solution, problem, Basis.CUT, slopes, optimum)


def _assembled(
    solution: Solution,
    problem: Problem,
    basis: Basis,
    slopes: Slopes,
    optimum: tuple[LineProblem, Gradient] | None,
) -> Sensitivities:
    pipeline = problem.pipeline
    changed = [(stage, by) for stage in range(len(pipeline)) for by in CHANGES]
    solved: list[tuple[float | None, float | None]] = [(None, None)] * len(changed)
    if optimum is not None:
        solved = [*_at_changed_costs(*optimum, changed)]
    same_us = _same_cut_us(solution, problem, changed)
    delay_us, found = pipeline.delay_us, list[CostChange]()
    for (_, by), latency_us, (best_us, bound_us) in zip(changed, same_us, solved, strict=True):
        if bound_us is not None:
            bound_us = min(latency_us, delay_us + bound_us)
            best_us = None if best_us is None else delay_us + best_us
        found.append(CostChange(by, latency_us, best_us, bound_us))
    rows = zip(*[iter(found)] * len(CHANGES), strict=True)  # by stage
    overhead, per_byte, message = slopes
    return Sensitivities(
        basis,
        solution.latency_us,
        None if optimum is None else pipeline.delay_us + optimum[1].found.upper_us,
        message,
        tuple(
            StageSensitivity(by_overhead, by_byte, changes)
            for by_overhead, by_byte, changes in zip(overhead, per_byte, rows, strict=True)
        ),
    )


def _same_cut_us(
    solution: Solution, problem: Problem, changed: Sequence[tuple[int, float]]
) -> Sequence[float]:
    """The latencies of the same cuts where the costs of a stage are changed by a share."""
    pipeline, native = problem.pipeline, active.NATIVE
    cuts = solution.levels or (solution.schedule.fragment_bytes,)
    factors = [(stage, 1.0 + by) for stage, by in changed]
    if native is None or len(cuts) > 1 or pipeline.without_handoffs is not pipeline:
        variants = (pipeline.scaled(stage, overhead=by, per_byte=by) for stage, by in factors)
        same = Explained(pipeline, cuts, problem.limits, problem.fragment_cap)
        return list(same.latencies_us(variants))
    return native.recurrence.changed_us(pipeline, factors, cuts[0])


def _may_cost_more(pipeline: Pipeline) -> bool:
    return pipeline.may_cost(1.0 + max(CHANGES))


def _optimum(
    solution: Solution, problem: Problem, asked: Strategy
) -> tuple[LineProblem, Gradient] | None:
    """The relaxation and its gradient at the solution's count; None where it is not solved."""
    count = solution.schedule.fragments
    pipeline = problem.pipeline
    if solution.levels or asked not in _OPTIMAL:
        return None
    if count * len(pipeline) > _OPTIMUM_CELLS or pipeline.without_handoffs is not pipeline:
        return None
    lines = LineProblem.of(problem)
    gradient = None if lines is None else gradient_of(lines, count)
    return None if lines is None or gradient is None else (lines, gradient)


def _at_changed_costs(
    lines: LineProblem, here: Gradient, changes: Sequence[tuple[int, float]]
) -> list[tuple[float | None, float]]:
    """The optimum where a stage's costs are changed by a share, for each of these changes, µs
    without delay, None where not solved; and its bound.

    The dual of the unchanged costs is a feasible one of the changed costs too.
    """
    count, native = len(here.found.x), active.NATIVE
    if count > 1 and count * lines.n > _CHANGED_CELLS:
        return [(None, value_us(lines.with_changed(*one), here.found.p)) for one in changes]
    found = None
    if count > 1 and native is not None:
        factors = [(stage, 1.0 + by) for stage, by in changes]
        found = native.dual.changed(lines.native, count, factors, close=_CHANGED)
    return [
        (upper_us, lower_us)
        if upper_us - lower_us <= _CHANGED * upper_us
        else _at_changed_cost(lines, here, *one)
        for one, (lower_us, upper_us) in zip(changes, found or repeat(_UNSOLVED), strict=False)
    ]


def _at_changed_cost(
    lines: LineProblem, here: Gradient, stage: int, by: float
) -> tuple[float, float]:
    count = len(here.found.x)
    if count == 1:
        more_us = by * lines.whole_us(stage)
        return here.found.upper_us + more_us, here.found.lower_us + more_us
    changed = lines.with_changed(stage, by)
    found = solve_count(changed, count, _NO_DEADLINE, close=_CHANGED, aim=_CHANGED)
    return found.upper_us, found.lower_us
