"""Equal fragments: the closed form against enumeration, and its whole bytes."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from domain.errors import Infeasible, StrategyDeclined
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from solvers import solve
from solvers.fixed import best_count, equal_latency_us

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
def test_the_formula_is_the_judge_on_equal_sizes(pipeline: Pipeline, size: int, k: int) -> None:
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
    pipeline: Pipeline, size: int, unit: int, greatest: int | None
) -> None:
    """The last fragment carries what is not a unit; no equal cut of the same count is better."""
    problem = Problem(
        pipeline, size, FragmentLimits(max_fragment_bytes=greatest, alignment_bytes=unit)
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


def test_a_bottleneck_that_moves_with_the_size() -> None:
    """Two local minima lie on single stages' curves, one minimum on the latency."""
    pipeline = pipeline_of_lines([("slow start", 50.0, 0.1), ("slow wire", 1.0, 10.0)])
    problem = Problem(pipeline, 100_000)
    every = [latency_us(pipeline, [100_000 / k] * k) for k in range(1, 500)]
    assert best_count(problem) == 1 + int(np.argmin(every))
