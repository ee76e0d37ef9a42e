"""Equal fragments: the closed form against enumeration, and its whole bytes."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from domain.errors import Infeasible, StrategyDeclined
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from solvers import solve
from solvers.contract import Deadline, SolveOptions
from solvers.heuristics.balanced_cuts import BalancedCuts
from solvers.heuristics.fixed import best_count, equal_latency_us, run

costs = st.one_of(st.just(0.0), st.floats(1e-3, 100.0), st.sampled_from([1.0, 5.0]))
pipelines = st.lists(st.tuples(st.just("s"), costs, costs), min_size=1, max_size=6).map(
    pipeline_of_lines
)


@given(pipelines, st.integers(1, 3000))
def test_the_closed_form_finds_the_best_count(pipeline: Pipeline, size: int) -> None:
    """Over every k, whichever stage is slowest at that size."""
    problem = Problem(pipeline, size)
    every = equal_latency_us(problem, np.arange(1, size + 1))
    k = best_count(problem)
    assert every[k - 1] == pytest.approx(every.min(), rel=1e-12)


@given(pipelines, st.integers(1, 500), st.integers(1, 20))
def test_the_formula_is_the_evaluator_on_equal_sizes(pipeline: Pipeline, size: int, k: int) -> None:
    """Wang98 (10) against the recurrence."""
    value = float(equal_latency_us(Problem(pipeline, size), np.array([k]))[0])
    assert value == pytest.approx(latency_us(pipeline, [size / k] * k), rel=1e-12)


@given(
    pipelines,
    st.integers(1, 800),
    st.sampled_from([1, 8, 64]),
    st.sampled_from([None, 100]),
)
def test_sizes_differ_by_at_most_one_unit(
    pipeline: Pipeline, size: int, unit: int, maximum: int | None
) -> None:
    """The last fragment carries what is not a unit; no equal cut of the same count is better."""
    problem = Problem(
        pipeline, size, FragmentLimits(max_fragment_bytes=maximum, alignment_bytes=unit)
    )
    try:
        solution = solve(problem, "fixed")
    except (StrategyDeclined, Infeasible):
        assume(False)
        raise AssertionError from None
    cut = solution.schedule.fragment_bytes
    assert max(cut) - min(cut) <= unit
    assert problem.admits(cut)


def test_with_no_overhead_at_all_the_answer_is_the_greatest_count() -> None:
    """Splitting is free, so equal fragments are as many as allowed, and the answer says by what."""
    pipeline = pipeline_of_lines([("a", 0.0, 2.0), ("b", 0.0, 1.0)])
    problem = Problem(pipeline, 10_000, FragmentLimits(max_fragments=37))
    assert solve(problem, "fixed").schedule.fragments == 37


def test_a_range_makes_the_best_size_jump() -> None:
    """A stage that switches protocol above 1 000 bytes: enumeration over every count agrees."""
    wire = Stage("wire", (FitRange(1.0, 20.0, 1000), FitRange(40.0, 5.0)))
    pipeline = Pipeline((wire, Stage.of_line("copy", overhead_us=2.0, ns_per_byte=6.0)))
    problem = Problem(pipeline, 20_000)
    every = [latency_us(pipeline, [20_000 / k] * k) for k in range(1, 2000)]
    assert best_count(problem) == 1 + int(np.argmin(every))


@st.composite
def ranged_pipelines(draw: st.DrawFn) -> Pipeline:
    """One to four stages with up to three switches each."""
    stages = []
    for _ in range(draw(st.integers(1, 4))):
        ends = sorted(draw(st.lists(st.integers(1, 3000), max_size=3, unique=True)))
        parts = [FitRange(draw(costs), draw(costs), end) for end in (*ends, None)]
        stages.append(Stage("s", tuple(parts)))
    return Pipeline(tuple(stages))


@given(
    ranged_pipelines(),
    st.integers(1, 4000),
    st.sampled_from([1, 3, 100]),
    st.sampled_from([None, 500]),
)
def test_every_interval_without_a_change_of_range_is_searched(
    pipeline: Pipeline, size: int, minimum: int, maximum: int | None
) -> None:
    """Stages with ranges, where T is not convex in k: enumeration over every admitted k agrees."""
    problem = Problem(pipeline, size, FragmentLimits(minimum, maximum))
    try:
        counts = problem.count_range()
    except Infeasible:
        assume(False)
        raise AssertionError from None
    every = equal_latency_us(problem, np.arange(counts.minimum, counts.maximum + 1))
    value = every[best_count(problem) - counts.minimum]
    assert value == pytest.approx(every.min(), rel=1e-12)


@given(
    pipelines,
    st.integers(1, 60),
    st.integers(1, 6),
    st.sampled_from([1, 4]),
    st.integers(1, 9),
)
def test_the_bound_of_a_count_is_below_every_order_of_its_sizes(
    pipeline: Pipeline, size: int, k: int, unit: int, minimum: int
) -> None:
    """Sizes differ by at most a unit and add up; the order that is taken is one of them."""
    problem = Problem(pipeline, size, FragmentLimits(minimum, alignment_bytes=unit))
    cuts = BalancedCuts.of(problem, np.array([k]))
    assume(len(cuts.k) == 1)
    latency, cut = cuts.best_order(0)
    chosen = tuple(cut.tolist())
    assert problem.admits(chosen)
    assert max(chosen) - min(chosen) <= unit
    assert latency == pytest.approx(latency_us(pipeline, chosen), rel=1e-12)
    orders = {order for order in permutations(chosen) if problem.admits(order)}
    times = [latency_us(pipeline, order) for order in orders]
    assert cuts.lower_us[0] <= min(times) * (1 + 1e-12)


@given(pipelines, st.integers(1, 400), st.sampled_from([1, 8]), st.sampled_from([1, 5, 60]))
def test_a_count_with_admitted_equal_sizes_is_never_missed(
    pipeline: Pipeline, size: int, unit: int, minimum: int
) -> None:
    """Where the limits admit equal sizes for some count, there is an answer."""
    problem = Problem(pipeline, size, FragmentLimits(minimum, 90, unit))
    try:
        counts = problem.count_range()
    except Infeasible:
        assume(False)
        raise AssertionError from None
    admitted = BalancedCuts.of(problem, np.arange(counts.minimum, counts.maximum + 1)).k
    if len(admitted):
        assert problem.admits(run(problem, SolveOptions(), Deadline.after(60.0)).fragment_bytes)
    else:
        with pytest.raises(StrategyDeclined, match="equal sizes"):
            run(problem, SolveOptions(), Deadline.after(60.0))


@pytest.mark.parametrize("size", [97, 4096, 1 << 20])
def test_free_splitting_of_any_size_is_as_fine_as_allowed(size: int) -> None:
    """Sizes that do not divide the message included."""
    pipeline = pipeline_of_lines([("a", 0.0, 1.0), ("b", 0.0, 2.0), ("c", 0.0, 1.5)])
    problem = Problem(pipeline, size, FragmentLimits(max_fragments=5000))
    candidate = run(problem, SolveOptions(), Deadline.after(60.0))
    assert len(candidate.fragment_bytes) == min(size, 5000)


def test_where_nothing_but_the_slow_stage_costs_anything_one_fragment_is_best() -> None:
    """The sum of the other G is 0 and so are the overheads: T is the same for every count."""
    pipeline = pipeline_of_lines([("a", 0.0, 0.0), ("b", 0.0, 3.7), ("c", 0.0, 0.0)])
    assert best_count(Problem(pipeline, 999_983)) == 1


def test_a_bottleneck_that_moves_with_the_size() -> None:
    """Two local minima lie on single stages' curves, one minimum on the latency."""
    pipeline = pipeline_of_lines([("slow start", 50.0, 0.1), ("slow wire", 1.0, 10.0)])
    problem = Problem(pipeline, 100_000)
    every = [latency_us(pipeline, [100_000 / k] * k) for k in range(1, 500)]
    assert best_count(problem) == 1 + int(np.argmin(every))
