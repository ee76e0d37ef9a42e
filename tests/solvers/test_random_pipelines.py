"""300 random pipelines: the exact method against every other, and against another library."""

import pytest

from domain.errors import StrategyDeclined
from domain.pipeline import Pipeline
from domain.problem import FragmentLimits, Problem
from domain.solution import Solution, Status, Strategy
from solvers import solve
from solvers.contract import Deadline
from solvers.exact import strategy as exact_module
from solvers.heuristics.fixed import best_count
from tests.solvers.pipelines import Case, random_cases, slow_middle_cases
from tests.solvers.reference_lp import optimum_us
from tests.support.counts import count

CASES = tuple(random_cases(count(300, share=5), seed=1998))
BLOCKS = [CASES[start::6] for start in range(6)]
MAX = 60  # keeps the independent linear programs small


def exact_answer(pipeline: Pipeline, size: int) -> Solution:
    """The exact answer with at most MAX fragments, its real optimum proven to 1e-9."""
    problem = Problem(pipeline, size, FragmentLimits(max_fragments=MAX))
    return solve(problem, "exact", relative_gap=1e-9, time_limit_s=0.5)


def real_us(solution: Solution) -> float:
    """The real-valued optimum of an exact answer's problem.

    It is behind the answer, but where whole bytes were proven without it: it is sought here then.
    """
    if solution.unrounded_latency_us is not None:
        return solution.unrounded_latency_us
    assert solution.status is Status.OPTIMAL
    assert not any(stage.ranges[0].overhead_us for stage in solution.problem.pipeline.stages)
    search = exact_module.start(solution.problem)
    near = best_count(solution.problem)
    search.run(near=near, relative_gap=1e-9, deadline=Deadline.after(60.0))
    return search.best.upper_us + solution.problem.pipeline.delay_us


def real_count(case: Case) -> int:
    """How many fragments the real optimum has."""
    problem = Problem(case.pipeline, case.message_bytes, FragmentLimits(max_fragments=MAX))
    search = exact_module.start(problem)
    search.run(near=best_count(problem), relative_gap=1e-9, deadline=Deadline.after(60.0))
    return search.best.k


@pytest.mark.parametrize("block", range(len(BLOCKS)))
def test_exact_equals_an_independent_linear_program(block: int) -> None:
    """To 1e-7 relative, at the best count; and no neighbouring count is better."""
    for case in BLOCKS[block]:
        value, k = real_us(exact_answer(case.pipeline, case.message_bytes)), real_count(case)
        assert value == pytest.approx(
            optimum_us(case.pipeline, case.message_bytes, k, minimum=1.0), rel=1e-7
        )
        for other in {max(1, k - 1), min(MAX, k + 1)}:
            alternative = optimum_us(case.pipeline, case.message_bytes, other, minimum=1.0)
            assert value <= alternative * (1 + 1e-7)


@pytest.mark.parametrize("block", range(len(BLOCKS)))
def test_exact_is_never_above_another_one_cut_strategy(block: int) -> None:
    """Before rounding; and the bound is never above a latency."""
    alternatives = (
        Strategy.SINGLE,
        Strategy.REPEAT,
        Strategy.FIXED,
        Strategy.RAMP,
        Strategy.RAMP_UP_DOWN,
    )
    for case in BLOCKS[block]:
        solution = exact_answer(case.pipeline, case.message_bytes)
        assert real_us(solution) <= solution.latency_us * (1 + 1e-9)
        above_bounds_us = solution.latency_us
        if solution.unrounded_latency_us is not None:  # else the bound is of whole bytes
            above_bounds_us = real_us(solution)
        assert solution.lower_bound_us <= above_bounds_us
        problem = solution.problem
        for name in alternatives:
            try:
                other = solve(problem, name)
            except StrategyDeclined:
                continue
            value = other.unrounded_latency_us or other.latency_us
            assert real_us(solution) <= min(value, other.latency_us) * (1 + 1e-9), name
            assert other.lower_bound_us <= above_bounds_us * (1 + 1e-9), name


@pytest.mark.parametrize("block", range(len(BLOCKS)))
def test_reversal_gives_the_same_latency(block: int) -> None:
    """Wang98 sec. 4.1.1, before rounding."""
    for case in BLOCKS[block]:
        there = exact_answer(case.pipeline, case.message_bytes)
        back = exact_answer(case.pipeline.reversed(), case.message_bytes)
        assert real_us(there) == pytest.approx(real_us(back), rel=2e-9)


def test_ramp_equals_exact_for_two_stages() -> None:
    """At the best count, where the whole byte does not bind at the optimum."""
    checked = 0
    for case in random_cases(100, seed=41, stages=2):
        checked += _agree(case, Strategy.RAMP)
    assert checked >= 50


def test_ramp_up_down_equals_exact_where_the_middle_stage_is_slowest() -> None:
    """At the best count, where the whole byte does not bind at the optimum."""
    checked = 0
    for case in slow_middle_cases(100, seed=42):
        checked += _agree(case, Strategy.RAMP_UP_DOWN)
    assert checked >= 50


def _agree(case: Case, strategy: Strategy) -> bool:
    """Whether the case was fit to compare; asserts that the two agree where it was."""
    problem = Problem(case.pipeline, case.message_bytes, FragmentLimits(max_fragments=400))
    best = solve(problem, "exact", relative_gap=1e-9, time_limit_s=2.0)
    free = optimum_us(case.pipeline, case.message_bytes, min(best.schedule.fragments + 1, 400))
    if real_us(best) > free * (1 + 1e-9) or min(best.schedule.fragment_bytes) <= 2:
        return False  # the least size of one byte binds
    try:
        other = solve(problem, strategy)
    except StrategyDeclined:
        assert not any(stage.ranges[0].ns_per_byte for stage in case.pipeline.stages)
        return False
    assert other.unrounded_latency_us == pytest.approx(real_us(best), rel=1e-8)
    return True
