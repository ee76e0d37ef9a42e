"""Legal problems at the ends of the number range that once gave a wrong bound or an error."""

import time

import pytest

from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from domain.solution import Status
from solvers import solve


def test_a_bound_survives_the_rounding_of_100_000_sums() -> None:
    """Counts left out for a known cut are bounded by that cut, not by nothing."""
    rows = [
        (3.79979217232099e-09, 2.0117261549383787e-07),
        (1e12, 1.3915898405077897e-09),
        (0.09016125793698078, 3.0),
        (1.0, 3.0),
        (0.09819858308448294, 3.0),
        (79336194.77178518, 7.682092350361006e-06),
        (0.0, 1e9),
        (1.7628900926273108e-06, 2.0),
    ]
    pipeline = pipeline_of_lines([("s", *row) for row in rows], delay_us=103.49959879188701)
    problem = Problem(pipeline, 194_107_910_636_876, FragmentLimits(8))
    solution = solve(problem, time_limit_s=1.0)
    assert solution.lower_bound_us <= solution.latency_us


@pytest.mark.parametrize("allow_refragmentation", [False, True])
def test_steep_ranges_do_not_raise_the_bound(allow_refragmentation: bool) -> None:
    """The cut into single bytes costs nothing here: the bound must be 0, and is."""
    stage = Stage(
        "s", (FitRange(0.0, 0.0, 1), FitRange(303.3, 11_821.0, 6), FitRange(6.0, 1_000.0))
    )
    problem = Problem(
        Pipeline((stage,)),
        10,
        FragmentLimits(max_fragment_bytes=5),
        allow_refragmentation=allow_refragmentation,
    )
    solution = solve(problem)
    assert latency_us(problem.pipeline, [1] * 10) == 0.0
    assert solution.lower_bound_us == 0.0
    assert solution.latency_us == 0.0
    assert solution.status is Status.OPTIMAL


@pytest.mark.parametrize("jump", [1e-9, 1.0, 1e9, 1e12])
@pytest.mark.parametrize("strategy", ["auto", "fixed", "repeat", "hierarchical"])
def test_ranges_at_the_limits_of_the_numbers(strategy: str, jump: float) -> None:
    """Cliffs up and down, next to a plain stage."""
    cliff = Stage(
        "cliff",
        (
            FitRange(jump, 0.0, 3),
            FitRange(0.0, 1e9, 4),
            FitRange(1e12, 1e-9, 1000),
            FitRange(0.0, jump / 1e3),
        ),
    )
    pipeline = Pipeline((cliff, Stage.of_line("plain", overhead_us=1.0, ns_per_byte=1.0)))
    for size in (1, 5, 2_000, 2**40):
        solution = solve(Problem(pipeline, size, fragment_cap=500), strategy)
        assert 0.0 <= solution.lower_bound_us <= solution.latency_us


@pytest.mark.parametrize("gap", [1e-2, 1e-3])
def test_auto_is_not_above_exact_at_a_wide_gap(gap: float) -> None:
    """The gap decides when an answer counts as optimal, not when a better one is ignored."""
    for step in range(40):
        rows = [("s", 1.0 + (7 * step + 3 * j) % 9, 0.5 + (5 * step + j) % 7) for j in range(4)]
        problem = Problem(
            pipeline_of_lines(rows), 2_000 + 411 * step, FragmentLimits(alignment_bytes=8)
        )
        auto = solve(problem, relative_gap=gap).latency_us
        for alternative in ("exact", "fixed", "repeat"):
            assert auto <= solve(problem, alternative, relative_gap=gap).latency_us * (1 + 1e-12)


def test_a_large_problem_reports_before_its_limit() -> None:
    """64 stages and 100 000 fragments: an answer to keep is there long before the search ends."""
    pipeline = pipeline_of_lines([(f"s{j}", 1.0 + j % 7, 0.5 + (j * 13) % 11) for j in range(64)])
    seen: list[float] = []
    began_s = time.monotonic()
    solution = solve(
        Problem(pipeline, 2**40),
        time_limit_s=0.2,
        on_incumbent=lambda one: seen.append(time.monotonic() - began_s),
    )
    assert seen, "the engine keeps the last report when it has to end a solve"
    assert solution.cut_off
    assert solution.lower_bound_us <= solution.latency_us


def test_a_real_cut_that_is_worse_than_the_whole_bytes_is_not_shown() -> None:
    """unrounded_latency_us never lies above latency_us."""
    pipeline = pipeline_of_lines([("a", 0.0, 9.0), ("b", 5.0, 1.0), ("c", 0.0, 7.0)])
    for size in range(3, 200, 7):
        solution = solve(Problem(pipeline, size), "fixed")
        real = solution.unrounded_latency_us
        assert real is None or real <= solution.latency_us
