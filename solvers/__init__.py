"""Problems in, certified solutions out: `solve` is the one entry point.

Nothing heavy is imported before it is called.

from solvers import solve
solution = solve(Problem(pipeline, 4096))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from contract.limits import DEFAULT_RELATIVE_GAP, DEFAULT_TIME_LIMIT_S
from domain.errors import InvalidInput
from domain.regret import Objective
from domain.solution import Solution, Strategy

if TYPE_CHECKING:
    from domain.fragment_setting import FragmentSetting
    from domain.hiding import HiddenBehind
    from domain.model import CostModel
    from domain.pipeline import Pipeline
    from domain.plan_table import PlanTable
    from domain.problem import AnyProblem, FragmentLimits, Problem
    from domain.regret import BestKnown, ChosenSetting, Regret, SizeRule
    from domain.workload import Workload
    from solvers.contract import StrategySpec
    from solvers.count_points import CountPoint
    from solvers.default_settings import BaselineSet
    from solvers.kernels import Evaluator


__all__ = [
    "DEFAULT_RELATIVE_GAP",
    "DEFAULT_TIME_LIMIT_S",
    "baselines",
    "choose_size",
    "choose_size_steps",
    "compile_table",
    "count_curve",
    "evaluator_of",
    "is_quick",
    "registered_strategies",
    "regrets",
    "solve",
    "warm_up",
]


def solve(
    problem: AnyProblem,
    strategy: Strategy | str = Strategy.AUTO,
    *,
    relative_gap: float = DEFAULT_RELATIVE_GAP,
    time_limit_s: float = DEFAULT_TIME_LIMIT_S,
    static_bytes: int | None = None,
    on_incumbent: Callable[[Solution], None] | None = None,
) -> Solution:
    """Return the best schedule that the strategy finds within the time limit, and a proof of its
    quality.

    `relative_gap` is the gap (0 to 1) at which an answer counts as optimal, `static_bytes` the size
    that `static` repeats. `on_incumbent` is called with each better answer on the way. Raises
    InvalidInput, Infeasible where no cut satisfies the limits, and StrategyDeclined where the
    strategy cannot run on this problem: over an aggregate, which does not tell the stages apart,
    `single`, `static`, `repeat`, `fixed` and `auto` can.
    """
    from solvers.backends import backend_of
    from solvers.contract import SolveOptions

    options = SolveOptions(
        relative_gap=relative_gap,
        time_limit_s=time_limit_s,
        static_bytes=static_bytes,
        on_incumbent=on_incumbent,
    )
    return backend_of(problem.model).solve(problem, strategy_named(strategy), options)


def strategy_named(name: Strategy | str) -> Strategy:
    """Return the strategy of this name. Raises InvalidInput with the names there are."""
    try:
        return Strategy(name)
    except ValueError:
        raise InvalidInput(
            f"expected strategy to be one of {', '.join(Strategy)}", field="strategy"
        ) from None


def registered_strategies() -> tuple[StrategySpec, ...]:
    """Return the registered strategies: names, what each needs, when each is optimal."""
    from solvers.strategies import REGISTRY

    return REGISTRY


def is_quick(problem: AnyProblem, strategy: Strategy) -> bool:
    """Return whether solving this is certain to end within 50 ms, so that it needs no child
    process.
    """
    from solvers.backends import backend_of

    return backend_of(problem.model).is_quick(problem, strategy)


def baselines(problem: AnyProblem, *, current_bytes: int | None = None) -> BaselineSet:
    """Return what other settings cost on this problem, µs: the size that is repeated today, one
    piece, the sizes that systems come with, and the best repeated one. Raises Infeasible.
    """
    from solvers.backends import backend_of

    return backend_of(problem.model).baselines(problem, current_bytes)


def evaluator_of(pipeline: Pipeline) -> Evaluator:
    """Return the latency of any cut through this pipeline, in µs, as `domain.schedule.latency_us`
    has it.

    For many cuts, one at a time: what the pipeline needs is made ready once.
    """
    from solvers.kernels import evaluator_of as prepared

    return prepared(pipeline)


def compile_table(
    pipeline: CostModel,
    limits: FragmentLimits,
    *,
    min_message_bytes: int,
    max_message_bytes: int,
    relative_gap: float = 1e-3,
    fragment_cap: int = 100_000,
    time_limit_s: float = 60.0,
    behind: HiddenBehind | None = None,
    on_progress: Callable[[float], None] | None = None,
    on_loosened: Callable[[float], None] | None = None,
    on_cut_off: Callable[[], None] | None = None,
    is_ended: Callable[[], bool] | None = None,
) -> PlanTable:
    """Return schedules and repeated sizes for every message of a range, each with a proven gap.

    Whatever a reader computes between two entries is within the gap that its stretch states;
    `relative_gap` is what is aimed at, and missed only where whole bytes, alignment, limits or
    costs with several ranges do not let it be met, or where it takes more cuts than are tried:
    `on_loosened` is then called with the tolerance that all of them are compiled to,
    `on_progress` with the share that is done, `on_cut_off` where time ended the search for cuts
    and gaps are those reached by then. `is_ended` is asked on the way whether time is up before
    its limit. Where messages are hidden `behind` a calculation, the run
    time takes the place of the latency. Raises InvalidInput, Infeasible, TimeLimitReached and
    StrategyDeclined where models of this kind have no tables.
    """
    from solvers.backends import table_compiler

    return table_compiler(pipeline)(
        pipeline,
        limits,
        min_message_bytes=min_message_bytes,
        max_message_bytes=max_message_bytes,
        relative_gap=relative_gap,
        fragment_cap=fragment_cap,
        time_limit_s=time_limit_s,
        behind=behind,
        on_progress=on_progress or _quietly,
        on_loosened=on_loosened or _quietly,
        on_cut_off=on_cut_off or (lambda: None),
        is_ended=is_ended,
    )


def count_curve(
    problem: Problem, counts: Sequence[int], *, near: int, time_limit_s: float
) -> tuple[CountPoint, ...]:
    """Return the latency of equal fragments, the optimum and the proven bound at each admitted
    count of these.

    Optima as far as the time goes, that of the count nearest to `near` first. Raises Infeasible.
    """
    from solvers.count_points import count_points as computed

    return computed(problem, counts, near=near, time_limit_s=time_limit_s)


def regrets(
    pipeline: CostModel, setting: FragmentSetting, best: Sequence[BestKnown]
) -> tuple[Regret, ...]:
    """Return what a setting costs on each of these messages, beside the best known for it."""
    from solvers.settings.regret import regrets as priced

    return priced(pipeline, setting, best)


def choose_size(
    pipeline: CostModel,
    best: Sequence[BestKnown],
    workload: Workload,
    *,
    rule: SizeRule,
    objective: Objective = Objective.MEAN,
) -> ChosenSetting:
    """Return the single size, among those that the rule admits, of least regret over the workload.

    `best` has each size of the workload and each power of two in its range. Raises InvalidInput.
    """
    from solvers.settings.regret import choose_size as chosen

    return chosen(pipeline, best, workload, rule=rule, objective=objective)


def choose_size_steps(
    pipeline: CostModel,
    best: Sequence[BestKnown],
    workload: Workload,
    *,
    rule: SizeRule,
    objective: Objective = Objective.MEAN,
    max_steps: int = 24,
) -> ChosenSetting:
    """Return a size for each octave of messages, neighbours merged where one size serves both.

    `best` has each size of the workload and each power of two in its range. Raises InvalidInput.
    """
    from solvers.settings.regret import choose_size_steps as chosen

    return chosen(pipeline, best, workload, rule=rule, objective=objective, max_steps=max_steps)


def _quietly(share: float) -> None:
    """Nobody asked how far it is."""


def warm_up() -> None:
    """Import the solvers and solve one tiny problem, so that the next one starts at full speed."""
    from domain.pipeline import pipeline_of_lines
    from domain.problem import Problem
    from solvers.contract import Deadline
    from solvers.exact.lp.lines import solve_count
    from solvers.line_problem import LineProblem

    problem = Problem(pipeline_of_lines([("first", 1.0, 1.0), ("second", 1.0, 2.0)]), 64)
    solve(problem)
    baselines(problem)
    lines = LineProblem.of(problem)
    if lines is not None:  # the general solver's libraries: few problems need it
        solve_count(lines, 2, Deadline.after(1.0))
