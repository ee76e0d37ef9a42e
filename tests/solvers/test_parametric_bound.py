"""Bounds over every count and every byte of a stretch lie below optima found by another library."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from domain.pipeline import Pipeline, pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from solvers.line_problem import LineProblem
from solvers.tables.bound import Stretch
from solvers.tables.points import Point, between, count_grid
from tests.solvers import reference_lp
from tests.solvers.table_cases import random_pipeline
from tests.support.counts import count

ERROR = 1e-8  # relative, of the reference
MAX_COUNT = 9
LIMITS = (
    FragmentLimits(max_fragments=MAX_COUNT),
    FragmentLimits(5, None, 1, MAX_COUNT),
    FragmentLimits(1, 16, 1, MAX_COUNT),
    FragmentLimits(3, 12, 1, MAX_COUNT),
    FragmentLimits(2, 17, 4, MAX_COUNT),
)


def stretch_between(
    pipeline: Pipeline, limits: FragmentLimits, ends: tuple[int, int], counts: list[int]
) -> Stretch:
    """The stretch between two message sizes with the bounds of these counts."""
    first, last = (Point.of(Problem(pipeline, size, limits)) for size in ends)
    lines = LineProblem.of(last.problem)
    assert lines is not None
    needed = sorted({*counts, first.minimum, last.minimum})
    return Stretch.between(first, last, lines, needed)


@cache
def optima_us(pipeline: Pipeline, limits: FragmentLimits, size: int) -> dict[int, float]:
    """T*(k, B) in real sizes of every admitted k, without delay, by the reference."""
    problem = Problem(pipeline, size, limits)
    counts, minimum = problem.count_range(), problem.smallest_fragment_bytes
    return {
        k: reference_lp.optimum_us(
            pipeline, size, k, minimum=minimum, maximum=problem.largest_fragment_bytes
        )
        for k in range(counts.minimum, counts.maximum + 1)
    }


def drawn(number: int) -> tuple[Pipeline, FragmentLimits, tuple[int, int], list[int]]:
    """A pipeline, limits, a short stretch, and some of its counts."""
    rng = np.random.default_rng([8, number])
    pipeline = random_pipeline(rng)
    low = int(rng.integers(12, 90))
    high = min(108, low + int(rng.integers(1, 20)))
    counts = sorted({int(k) for k in rng.integers(1, MAX_COUNT + 1, int(rng.integers(1, 6)))})
    return pipeline, LIMITS[number % len(LIMITS)], (low, max(low + 1, high)), counts


@pytest.mark.parametrize("number", range(count(120)))
def test_below_every_count_at_every_byte(number: int) -> None:
    """Counts in between, and counts beyond, are bounded by those that are solved."""
    pipeline, limits, ends, counts = drawn(number)
    stretch = stretch_between(pipeline, limits, ends, counts)
    for size in range(ends[0], ends[1] + 1):
        best = min(optima_us(pipeline, limits, size).values())
        assert float(stretch.lower_us(np.array([float(size)]))[0]) <= best * (1.0 + ERROR), size


@pytest.mark.parametrize("number", range(count(120)))
def test_the_worst_quotient_is_no_smaller_at_any_byte(number: int) -> None:
    """Of any chord and the best count; also at both ends themselves."""
    pipeline, limits, ends, counts = drawn(number)
    stretch = stretch_between(pipeline, limits, ends, counts)
    known = [min(optima_us(pipeline, limits, size).values()) for size in ends]
    chord = 1.3 * known[0], 1.1 * known[1]
    ratio = stretch.worst_ratio(*chord, pipeline.delay_us)
    for size in range(ends[0], ends[1]):
        best = min(optima_us(pipeline, limits, size).values()) + pipeline.delay_us
        share = (size - ends[0]) / (ends[1] - ends[0])
        latency = chord[0] * (1.0 - share) + chord[1] * share + pipeline.delay_us
        assert latency <= ratio * best * (1.0 + ERROR), size


def test_bounds_are_sharp_where_all_counts_are_solved() -> None:
    """At the ends of a stretch nothing is lost."""
    for number in range(count(100)):
        pipeline, limits, ends, _ = drawn(number)
        limits = replace(limits, alignment_bytes=1)  # counts that it rules out are real ones
        stretch = stretch_between(pipeline, limits, ends, list(range(1, MAX_COUNT + 1)))
        for size in ends:
            best = min(optima_us(pipeline, limits, size).values())
            found = float(stretch.lower_us(np.array([float(size)]))[0])
            assert found == pytest.approx(best, rel=1e-6)


def test_a_line_is_below_its_count_at_every_message() -> None:
    """A dual of one message size is one of every other."""
    for number in range(count(100)):
        pipeline, limits, ends, _ = drawn(number)
        point = Point.of(Problem(pipeline, ends[0], limits))
        for size in (ends[0], (ends[0] + ends[1]) // 2, ends[1], 13, 107):
            for k, best in optima_us(pipeline, limits, size).items():
                solve = point.solve(k)
                if solve is not None:
                    lower_us = max(float(line.us(float(size))) for line in solve.lines)
                    assert lower_us <= best * (1.0 + ERROR)


def test_counts_in_between_are_bounded_by_secants() -> None:
    """Only 1, 2 and 8, 9 are solved; the best lies between them, and is not missed by much."""
    pipeline = pipeline_of_lines([("a", 1.0, 100.0), ("b", 1.0, 200.0), ("c", 1.0, 100.0)])
    limits = FragmentLimits(max_fragments=MAX_COUNT)
    stretch = stretch_between(pipeline, limits, (100, 101), [1, 2, 8, 9])
    best = min(optima_us(pipeline, limits, 100), key=optima_us(pipeline, limits, 100).__getitem__)
    assert 2 < best < 8
    bound = float(stretch.lower_us(np.array([100.0]))[0])
    assert 0.0 < bound < optima_us(pipeline, limits, 100)[best]


def test_the_first_message_may_be_the_last_of_a_count() -> None:
    """20 bytes in fragments of at most 10: two do, and only for this one message of the stretch."""
    pipeline = pipeline_of_lines([("a", 10.0, 1.0), ("b", 10.0, 1.0)])
    limits = FragmentLimits(max_fragment_bytes=10)
    stretch = stretch_between(pipeline, limits, (20, 30), [2, 3, 4])
    two, three = (reference_lp.optimum_us(pipeline, 20, k) for k in (2, 3))
    assert three > 1.2 * two
    assert stretch.worst_ratio(three, three + 0.01, 0.0) >= three / two * (1.0 - ERROR)
    assert float(stretch.lower_us(np.array([21.0]))[0]) > 1.2 * two


def test_points_admit_what_the_problem_admits() -> None:
    """No solve for other counts."""
    pipeline = pipeline_of_lines([("a", 1.0, 1.0), ("b", 1.0, 2.0)])
    problem = Problem(pipeline, 100, FragmentLimits(10, 30))
    point = Point.of(problem)
    assert [k for k in range(1, 14) if point.solve(k)] == [4, 5, 6, 7, 8, 9, 10]
    smaller = Point.of(replace(problem, message_bytes=9))
    assert [k for k in range(1, 4) if smaller.solve(k)] == [1]


@pytest.mark.parametrize("maximum", [1, 2, 24, 25, 1000, 100_000])
def test_the_grid_of_counts(maximum: int) -> None:
    """It ascends from 1 to the greatest, without holes at first, in steps of at most 6 %."""
    grid = count_grid(maximum)
    assert grid[0] == 1
    assert grid[-1] == maximum
    assert all(0 < high - low <= max(1.0, 0.06 * low) for low, high in pairwise(grid))


def test_between_is_strictly_between() -> None:
    """Whatever the two ends are."""
    for low, high in ((1, 3), (1, 2**48), (7, 9), (10**6, 10**6 + 2)):
        assert low < between(low, high) < high
