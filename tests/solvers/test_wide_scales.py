"""Random problems over wide scales: both bounds, every strategy, an independent linear program."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from domain.errors import StrategyDeclined
from domain.problem import Problem
from domain.solution import Solution, Status, Strategy
from solvers import solve
from solvers.contract import Deadline
from solvers.exact import strategy as exact
from solvers.exact import structured
from solvers.heuristics.fixed import best_count
from solvers.kernels import native
from solvers.kernels.native import Choice
from solvers.line_problem import LineProblem
from tests.solvers.reference_lp import proven_optimum_us
from tests.solvers.wide_cases import wide_problem
from tests.support.counts import count, is_campaign
from tests.support.kernels import computed_by

ONE_CUT = (
    Strategy.EXACT,
    Strategy.AUTO,
    Strategy.SINGLE,
    Strategy.REPEAT,
    Strategy.FIXED,
    Strategy.RAMP,
    Strategy.RAMP_UP_DOWN,
    Strategy.STATIC,
)
GAP = 1e-9
ROUNDING = 1e-12  # of the evaluator, which adds k + n times one by one
LP_CELLS = 1200  # k n up to which the independent program is solved
FEW = 8  # fragments of the problems whose counts are all solved
BLOCKS = range(10 if is_campaign() else 4)


@pytest.fixture
def chosen(kernels: Choice) -> Iterator[Choice]:
    """Either implementation for everything that is solved in a test."""
    with computed_by(kernels):
        yield kernels


def number_of(full: int, kernels: Choice) -> int:
    """How many problems: fewer without a campaign where NumPy computes, which takes ten times as
    long for the same numbers.
    """
    return count(full, share=40 if kernels == "native" else 60)


def seeds_of(block: int, full: int, kernels: Choice) -> range:
    """One of the parts of the seeds."""
    total = number_of(full, kernels)
    return range(block * total // len(BLOCKS), (block + 1) * total // len(BLOCKS))


def answer(problem: Problem, name: Strategy) -> Solution | None:
    """What a strategy says within a second, None where it cannot run."""
    static = 1024 if name is Strategy.STATIC else None
    try:
        return solve(problem, name, relative_gap=GAP, time_limit_s=1.0, static_bytes=static)
    except StrategyDeclined:
        return None


def real_us(solution: Solution) -> float:
    """Latency of the real cut behind an answer, else of the answer."""
    unrounded = solution.unrounded_latency_us
    return solution.latency_us if unrounded is None else unrounded


def lines_of(problem: Problem) -> LineProblem:
    """The relaxation of a problem whose stages are lines."""
    lines = LineProblem.of(problem)
    assert lines is not None
    return lines


def assert_honest(solution: Solution) -> None:
    """The bound is below, and the status claims no more than bound and latency show."""
    assert np.isfinite(solution.latency_us)
    assert 0.0 <= solution.lower_bound_us <= solution.latency_us
    assert solution.problem.admits(solution.schedule.fragment_bytes)
    limit = solution.lower_bound_us * (1.0 + GAP)
    if solution.status is Status.OPTIMAL:
        assert solution.latency_us <= limit
    if solution.status is Status.OPTIMAL_BEFORE_ROUNDING:
        assert real_us(solution) <= limit
    if solution.status is Status.TIME_LIMIT:
        assert solution.cut_off


@pytest.mark.parametrize("block", BLOCKS)
def test_bound_then_optimum_then_every_strategy_of_one_cut(block: int, chosen: Choice) -> None:
    """In this order, whatever the scales; and within the gap wherever time was not up."""
    seen: Counter[bool] = Counter()
    for seed in seeds_of(block, 1000, chosen):
        problem = wide_problem(seed)
        found = [one for one in (answer(problem, name) for name in ONE_CUT) if one is not None]
        best = found[0]
        for solution in found:
            assert_honest(solution)
            minimum = min(real_us(solution), solution.latency_us)
            assert best.lower_bound_us <= minimum * (1.0 + ROUNDING), (seed, solution.strategy)
            assert solution.lower_bound_us <= real_us(best) * (1.0 + ROUNDING), seed
            if not best.cut_off:
                assert real_us(best) <= minimum * (1.0 + GAP), (seed, solution.strategy)
        if not best.cut_off:
            assert best.status in (Status.OPTIMAL, Status.OPTIMAL_BEFORE_ROUNDING), seed
        seen[best.cut_off] += 1
    assert seen[False] >= 0.7 * seen.total()


def counts_of(problem: Problem, seed: int) -> set[int]:
    """The best number of fragments and one drawn, where the program is not too large."""
    lines, rng = lines_of(problem), np.random.default_rng([5, seed])
    search = exact.start(problem)
    search.run(near=best_count(problem), relative_gap=1e-6, deadline=Deadline.after(30.0))
    maximum = LP_CELLS // lines.n
    drawn = int(np.exp(rng.uniform(np.log(2.0), np.log(maximum))))
    admitted = {search.best.k, min(max(drawn, lines.k_min), lines.k_max)}
    return {k for k in admitted if k <= maximum}


@pytest.mark.parametrize("block", BLOCKS)
def test_a_count_agrees_with_an_independent_program(block: int, chosen: Choice) -> None:
    """Both bounds, to 1e-7, where that program can prove its own answer; it nearly always can."""
    seen: Counter[bool] = Counter()
    for seed in seeds_of(block, 1000, chosen):
        problem = wide_problem(seed)
        lines = lines_of(problem)
        for k in counts_of(problem, seed):
            result = structured.solve_count(lines, k, Deadline.after(60.0))
            assert result.upper_us - result.lower_us <= GAP * result.upper_us, (seed, k)
            expected = proven_optimum_us(
                problem.pipeline, problem.message_bytes, k, minimum=lines.m, maximum=lines.M
            )
            seen[expected is not None] += 1
            if expected is not None:
                assert result.upper_us == pytest.approx(expected, rel=1e-7, abs=0.0), (seed, k)
                assert result.lower_us == pytest.approx(expected, rel=1e-7, abs=0.0), (seed, k)
    assert seen[True] >= 0.9 * seen.total()


@pytest.mark.parametrize("block", BLOCKS)
def test_the_optimum_over_few_counts_agrees_with_all_of_their_programs(
    block: int, chosen: Choice
) -> None:
    """Up to eight fragments: the least of the independent optima, to 1e-7."""
    for seed in seeds_of(block, 300, chosen):
        problem = wide_problem(10_000 + seed, max_fragments=FEW)
        lines = lines_of(problem)
        every = [
            proven_optimum_us(
                problem.pipeline, problem.message_bytes, k, minimum=lines.m, maximum=lines.M
            )
            for k in range(lines.k_min, lines.k_max + 1)
        ]
        proven = [value for value in every if value is not None]
        if len(proven) < len(every):
            continue
        search = exact.start(problem)
        search.run(near=best_count(problem), relative_gap=GAP, deadline=Deadline.after(60.0))
        assert search.unrounded_us == pytest.approx(min(proven), rel=1e-7, abs=0.0), seed
        assert search.bound_us <= min(proven) * (1.0 + 2e-8), seed


@pytest.mark.parametrize("limit_s", [1e-6, 1e-3, 0.03])
def test_a_time_limit_leaves_an_honest_answer(limit_s: float, chosen: Choice) -> None:
    """Nothing is claimed that was not reached, however little time there was."""
    for seed in range(number_of(200, chosen)):
        for name in (Strategy.EXACT, Strategy.AUTO):
            solution = solve(wide_problem(seed), name, relative_gap=GAP, time_limit_s=limit_s)
            assert_honest(solution)
    assert chosen in native.CHOICES
