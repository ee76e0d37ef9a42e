"""Stages with ranges: bounds below every schedule, a certified optimum of the minorants."""

import numpy as np
import pytest

from domain.errors import StrategyDeclined
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from domain.solution import Status
from solvers import solve
from solvers.contract import Deadline
from solvers.exact import strategy as exact
from solvers.exact.convex_dual import bound_above, bound_below, resampled, true_value_us, value_us
from solvers.exact.convex_problem import ConvexProblem
from solvers.exact.count_search import CountSearch
from solvers.exact.dual import repaired
from solvers.exact.lp.convex import solve_convex_count
from solvers.exact.lp.lines import solve_count
from solvers.heuristics.fixed import best_count
from solvers.line_problem import LineProblem
from tests.solvers.ranged_pipelines import (
    Rule,
    best_of_every_cut,
    every_cut,
    random_cut,
    random_problems,
)
from tests.solvers.reference_convex_lp import convex_optimum_us
from tests.support.counts import count

SMALL = Rule(stages=(1, 4), message_bytes=(2, 12))
MANY = Rule(stages=(2, 5), message_bytes=(20, 100_000))
JUMP = Stage("wire", (FitRange(2.0, 1.0, 8192), FitRange(60.0, 1.0)))


def searched(problem: Problem, *, relative_gap: float = 1e-6) -> CountSearch:
    """A search run to its end."""
    search = exact.start(problem)
    near = best_count(problem)
    search.run(near=near, relative_gap=relative_gap, deadline=Deadline.after(60.0))
    return search


def test_the_bound_is_below_every_cut_of_short_messages() -> None:
    """All compositions of messages up to 12 bytes; and each count's own bound below its own."""
    for problem in random_problems(count(300), seed=3, rule=SMALL):
        best = best_of_every_cut(problem)
        minimum = min(best.values())
        for strategy in ("auto", "exact", "fixed", "repeat"):
            try:
                solution = solve(problem, strategy)
            except StrategyDeclined:
                continue
            assert solution.lower_bound_us <= minimum
            assert solution.latency_us >= minimum * (1 - 1e-12)
        search = searched(problem)
        search.tighten(minimum * (1 + 1e-9), Deadline.after(60.0))
        for k, value in best.items():
            if k - search.lines.k_min < len(search.lower):
                assert search.lower[k - search.lines.k_min] <= value * (1 + 1e-12)


def test_the_bound_is_below_random_cuts_and_every_answer() -> None:
    """Longer messages: cuts that snap to the ends of ranges, and what other strategies answer."""
    rng = np.random.default_rng(7)
    for problem in random_problems(count(300, share=30), seed=17, rule=MANY):
        auto = solve(problem, time_limit_s=30.0)
        assert problem.admits(auto.schedule.fragment_bytes)
        assert auto.latency_us == latency_us(problem.pipeline, auto.schedule.fragment_bytes)
        for strategy in ("exact", "fixed", "repeat", "single"):
            try:
                other = solve(problem, strategy, time_limit_s=30.0)
            except StrategyDeclined:
                continue
            assert auto.lower_bound_us <= other.latency_us * (1 + 1e-12)
            assert other.lower_bound_us <= auto.latency_us * (1 + 1e-12)
            if LineProblem.of(problem) is None:
                assert auto.latency_us <= other.latency_us * (1 + 1e-12), strategy
        for _ in range(20):
            cut = random_cut(problem, rng)
            if cut is not None:
                assert auto.lower_bound_us <= latency_us(problem.pipeline, cut) * (1 + 1e-12)


def test_short_messages_are_mostly_solved_to_the_best_cut_there_is() -> None:
    """The improvement is a heuristic; against all compositions it rarely misses, and never far."""
    misses = []
    for problem in random_problems(count(300), seed=23, rule=SMALL):
        minimum = min(best_of_every_cut(problem).values())
        found = solve(problem).latency_us
        misses.append((found - minimum) / minimum if minimum > 0.0 else found)
    assert np.mean(np.array(misses) <= 1e-9) >= 0.95


def test_the_optimum_of_the_minorants_equals_an_independent_program() -> None:
    """To 1e-7 relative, for a random count; and both proven bounds hold."""
    rng = np.random.default_rng(5)
    for problem in random_problems(count(300), seed=29, rule=MANY):
        convex = ConvexProblem.of(problem)
        k = int(rng.integers(convex.k_min, min(convex.k_max, convex.k_min + 9) + 1))
        result = solve_convex_count(convex, k, Deadline.after(30.0))
        value = convex_optimum_us(convex.hulls, convex.B, k, minimum=convex.m, maximum=convex.M)
        assert result.upper_us == pytest.approx(value, rel=1e-7, abs=1e-15)
        assert result.lower_us == pytest.approx(value, rel=1e-7, abs=1e-15)
        assert result.lower_us <= result.upper_us
        for other, bound in ((k + 1, bound_above), (k - 1, bound_below)):
            if k < 2 or not max(2, convex.k_min) <= other <= convex.k_max:
                continue
            limits = {"minimum": convex.m, "maximum": convex.M}
            neighbour = convex_optimum_us(convex.hulls, convex.B, other, **limits)
            assert bound(convex, result.p, result.steps) <= neighbour * (1 + 1e-7) + 1e-15


def test_any_mixture_of_paths_bounds_every_cut() -> None:
    """No property of a solver is needed; the true costs give no less than the minorants."""
    rng = np.random.default_rng(11)
    for problem in random_problems(count(300), seed=31, rule=MANY):
        convex, cut = ConvexProblem.of(problem), random_cut(problem, rng)
        if cut is None:
            continue
        p = repaired(rng.normal(size=(len(cut) - 1, convex.n)))
        exact_us = latency_us(problem.pipeline, cut)
        assert value_us(convex, p) <= true_value_us(convex, p) * (1 + 1e-9) + 1e-15
        assert true_value_us(convex, p) <= exact_us * (1 + 1e-12)
        adapted = resampled(repaired(rng.normal(size=(4, convex.n))), len(cut))
        assert true_value_us(convex, adapted) <= exact_us * (1 + 1e-12)


def test_the_reversed_pipeline_has_the_same_bound() -> None:
    """Wang98 sec. 4.1.1, for the relaxation; within the gap that the search was asked for."""
    proven = 0
    for problem in random_problems(count(100), seed=37, rule=MANY):
        back = Problem(problem.pipeline.reversed(), problem.message_bytes, problem.limits)
        one, other = searched(problem, relative_gap=1e-8), searched(back, relative_gap=1e-8)
        if one.is_proven(1e-8) and other.is_proven(1e-8):
            assert one.bound_us == pytest.approx(other.bound_us, rel=2e-8)
            proven += 1
    assert proven >= 0.8 * count(100)


def test_one_line_a_stage_gives_what_the_lines_give() -> None:
    """The same optimum by both methods, and the old one is the one that is used."""
    rng = np.random.default_rng(13)
    for _ in range(count(100)):
        n = int(rng.integers(2, 6))
        rows = [("s", *rng.exponential(10.0, 2)) for _ in range(n)]
        problem = Problem(pipeline_of_lines(rows), int(rng.integers(50, 5000)))
        lines, convex = LineProblem.of(problem), ConvexProblem.of(problem)
        assert lines is not None
        k = int(rng.integers(1, 12))
        one, other = (
            solve_count(lines, k, Deadline.after(30.0)),
            solve_convex_count(convex, k, Deadline.after(30.0)),
        )
        assert one.upper_us == pytest.approx(other.upper_us, rel=1e-8)
        assert one.lower_us == pytest.approx(other.lower_us, rel=1e-8)
        assert convex.is_tight
        assert convex.is_rising
        assert isinstance(exact.start(problem).lines, LineProblem)


def test_the_optimum_is_convex_in_k_where_no_minorant_falls() -> None:
    """Second differences of the optimum; the search relies on it there and only there."""
    checked = 0
    for problem in random_problems(count(100), seed=41, rule=MANY):
        convex = ConvexProblem.of(problem)
        if not convex.is_rising or convex.n < 2:
            continue
        counts = range(convex.k_min, min(convex.k_max, convex.k_min + 5) + 1)
        values = [solve_convex_count(convex, k, Deadline.after(30.0)).upper_us for k in counts]
        assert (np.diff(values, 2) >= -1e-7 * max(values)).all()
        checked += 1
    assert checked >= 0.2 * count(100)


def test_a_falling_minorant_breaks_the_convexity_in_k() -> None:
    """docs/theory.md sec. 5: why such counts are bounded one by one."""
    pipeline = Pipeline(
        (
            Stage("a", (FitRange(5.0, 3000.0, 5), FitRange(4.0, 0.0))),
            Stage.of_line("b", overhead_us=2.0, ns_per_byte=3000.0),
            Stage("c", (FitRange(2.0, 2000.0, 4), FitRange(1.0, 0.0))),
        )
    )
    convex = ConvexProblem.of(Problem(pipeline, 6))
    assert not convex.is_rising
    limits = {"minimum": convex.m, "maximum": convex.M}
    values = [convex_optimum_us(convex.hulls, convex.B, k, **limits) for k in range(1, 6)]
    assert values == pytest.approx([25.0, 30.0, 33.0, 39.0, 48.0])


def test_a_size_stops_at_the_end_of_a_cheap_range() -> None:
    """The rendezvous switch costs more than it saves: no fragment goes beyond its end."""
    pipeline = Pipeline((JUMP, Stage.of_line("copy", overhead_us=2.0, ns_per_byte=0.9)))
    problem = Problem(pipeline, 3 * 8192)
    solution = solve(problem)
    assert max(solution.schedule.fragment_bytes) <= 8192
    assert solution.latency_us < solve(problem, "single").latency_us
    assert solution.lower_bound_us <= solution.latency_us


@pytest.mark.usefixtures("native_kernels")
def test_a_gap_that_convexity_leaves_is_explained() -> None:
    """Where nodes are left when the work is done the gap is stated, with what it means."""
    steep = Stage("disk", (FitRange(0.0, 5.0, 1000), FitRange(9.0, 0.1)))
    small = Stage("copy", (FitRange(0.3, 2.0, 256), FitRange(30.0, 1.0)))
    stages = (JUMP, steep, small, Stage("wire", (FitRange(0.1, 3.0, 512), FitRange(25.0, 0.7))))
    solution = solve(Problem(Pipeline(stages), 300_000), time_limit_s=600.0)
    assert solution.status is Status.PROVEN_GAP
    assert solution.relative_gap > 1e-6
    assert [notice.code for notice in solution.notices] == ["ranges_not_convex"]


@pytest.mark.usefixtures("native_kernels")
def test_convex_ranges_are_solved_like_lines() -> None:
    """Continuous and steeper with the size: the minorants are the costs, and whole bytes remain."""
    knee = Stage("cache", (FitRange(6.0, 1.0, 4000), FitRange(2.0, 2.0)))
    problem = Problem(
        Pipeline((knee, Stage.of_line("wire", overhead_us=3.0, ns_per_byte=1.2))), 50_000
    )
    solution = solve(problem)
    assert solution.status in (Status.OPTIMAL, Status.OPTIMAL_BEFORE_ROUNDING)
    assert solution.notices == ()
    assert solution.unrounded_latency_us is not None
    assert ConvexProblem.of(problem).is_tight


@pytest.mark.parametrize("strategy", ["auto", "exact"])
def test_limits_are_kept_while_schedules_are_improved(strategy: str) -> None:
    """Alignment, least and greatest sizes and the greatest count, at once."""
    limits = FragmentLimits(
        min_fragment_bytes=500, max_fragment_bytes=9000, alignment_bytes=64, max_fragments=12
    )
    pipeline = Pipeline((JUMP, Stage.of_line("copy", overhead_us=2.0, ns_per_byte=0.9), JUMP))
    for size in (9001, 40_000, 77_777):
        problem = Problem(pipeline, size, limits)
        solution = solve(problem, strategy)
        assert problem.admits(solution.schedule.fragment_bytes)
        assert solution == solve(problem, strategy)


def test_brute_force_really_sees_every_cut() -> None:
    """The helper of the tests above: as many cuts as there are compositions."""
    problem = Problem(pipeline_of_lines([("s", 1.0, 1.0)]), 10)
    assert [len(list(every_cut(problem, k))) for k in (1, 2, 3, 10)] == [1, 9, 36, 1]


def test_sizes_that_are_left_out_belong_to_slower_cuts() -> None:
    """Every cut that is as fast as a known one has only sizes up to the narrowed greatest one."""
    narrower = 0
    for problem in random_problems(count(300), seed=43, rule=SMALL):
        convex, values = ConvexProblem.of(problem), best_of_every_cut(problem)
        known_us = min(values.values()) * 1.1
        narrowed = convex.narrowed(known_us)
        narrower += narrowed.M < convex.M
        for k in values:
            for cut in every_cut(problem, k):
                if latency_us(problem.pipeline, cut) <= known_us:
                    assert max(cut) <= narrowed.M
                    assert k >= narrowed.k_min
    assert narrower > 0
