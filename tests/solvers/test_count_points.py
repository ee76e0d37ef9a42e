"""Latency against the number of fragments: between the proven bound and equal fragments."""

from __future__ import annotations

import pytest

import solvers
from domain.errors import Infeasible
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us

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
        assert point.best_us is not None
        assert point.bound_us <= point.best_us * (1 + 1e-9)
        assert point.best_us <= point.equal_us * (1 + 1e-9)


def test_the_least_of_the_curve_is_the_optimum() -> None:
    """Over all counts the bound of the curve is that of the answer."""
    problem = Problem(FOUR, 4096)
    best = solvers.solve(problem)
    points = solvers.count_curve(problem, range(1, 25), near=6, time_limit_s=30.0)
    minimum = min(points, key=lambda point: point.best_us or point.equal_us)
    assert minimum.fragments == best.schedule.fragments
    assert minimum.bound_us == pytest.approx(best.unrounded_latency_us, rel=1e-6)


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
    assert sum(point.best_us is not None for point in points) <= 1
    assert all(0.0 < point.bound_us <= point.equal_us * (1 + 1e-9) for point in points)


def test_through_ranges_the_best_sizes_are_attained_and_not_the_minorants() -> None:
    """A step in the cost puts the relaxed optimum below every cut; what is shown is a cut's."""
    jump = Stage("jump", (FitRange(1.0, 1.0, up_to_bytes=1024), FitRange(40.0, 1.0)))
    problem = Problem(Pipeline((jump, Stage("wire", (FitRange(5.0, 2.0),)))), 4096)
    points = solvers.count_curve(problem, range(1, 9), near=4, time_limit_s=30.0)
    best = solvers.solve(problem, relative_gap=1e-9)
    minimum = min(points, key=lambda point: point.best_us or point.equal_us)
    assert minimum.best_us is not None
    assert minimum.best_us >= best.lower_bound_us * (1 - 1e-9)
    assert points[1].best_us is not None
    # Two fragments of 4096 bytes: one of them at least is above 1024 and pays the jump.
    assert points[1].best_us >= min(_two_us(problem.pipeline, first) for first in range(1, 4096))
    for point in points:
        assert point.bound_us <= (point.best_us or point.equal_us) * (1 + 1e-9)


def _two_us(pipeline: Pipeline, first: int) -> float:
    """Two fragments, less what a fraction of a byte may gain."""
    return latency_us(pipeline, (first, 4096 - first)) - 0.02
