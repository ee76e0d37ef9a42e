"""Latency against the number of fragments: between the proven bound and equal fragments."""

from __future__ import annotations

import pytest

import solvers
from domain.errors import Infeasible
from domain.pipeline import Pipeline, pipeline_of_lines
from domain.problem import FragmentLimits, Problem

FOUR = pipeline_of_lines(
    [("copy", 7.2, 7.03), ("dma", 5.2, 24.3), ("wire", 7.5, 24.3), ("out", 7.4, 7.7)]
)


@pytest.mark.parametrize(
    "pipeline",
    [FOUR, pipeline_of_lines([("free", 0.0, 0.0)]), pipeline_of_lines([("one", 3.0, 2.0)])],
)
def test_the_bound_is_below_the_optimum_below_equal_fragments(pipeline: Pipeline) -> None:
    """At every count; each is the exact search's own where that ends at the same count."""
    points = solvers.count_curve(Problem(pipeline, 4096), range(1, 13), near=6, time_limit_s=30.0)
    assert [point.fragments for point in points] == list(range(1, 13))
    for point in points:
        assert point.optimum_us is not None
        assert point.bound_us <= point.optimum_us * (1 + 1e-9)
        assert point.optimum_us <= point.equal_us * (1 + 1e-9)


def test_the_least_of_the_curve_is_the_optimum() -> None:
    """Over all counts the bound of the curve is that of the answer."""
    problem = Problem(FOUR, 4096)
    best = solvers.solve(problem)
    points = solvers.count_curve(problem, range(1, 25), near=6, time_limit_s=30.0)
    least = min(points, key=lambda point: point.optimum_us or point.equal_us)
    assert least.fragments == best.schedule.fragments
    assert least.bound_us == pytest.approx(best.unrounded_latency_us, rel=1e-6)


def test_counts_that_are_not_admitted_are_left_out() -> None:
    """Limits say how many fragments there may be."""
    limits = FragmentLimits(max_fragment_bytes=1024, max_fragments=8)
    points = solvers.count_curve(
        Problem(FOUR, 4096, limits), [1, 3, 4, 8, 9, 100], near=4, time_limit_s=30.0
    )
    assert [point.fragments for point in points] == [4, 8]
    none = Problem(FOUR, 4096, FragmentLimits(min_fragment_bytes=3000, max_fragment_bytes=3500))
    with pytest.raises(Infeasible):
        solvers.count_curve(none, [1], near=1, time_limit_s=1.0)


def test_without_time_one_count_at_most_is_solved() -> None:
    """The bound and equal fragments are there all the same."""
    points = solvers.count_curve(Problem(FOUR, 2**20), range(1, 200), near=70, time_limit_s=1e-9)
    assert len(points) == 199
    assert sum(point.optimum_us is not None for point in points) <= 1
    assert all(0.0 < point.bound_us <= point.equal_us * (1 + 1e-9) for point in points)
