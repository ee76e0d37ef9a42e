"""Lines of repeated sizes lie below the best size of every count, and tables miss no size."""

from __future__ import annotations

import numpy as np
import pytest

from domain.errors import Infeasible, TimeLimitReached
from domain.pipeline import Pipeline, pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from solvers.contract import Deadline
from solvers.heuristics.repeat import best_repeat
from solvers.kernels import PipelineArrays
from solvers.tables import cuts
from solvers.tables.compile import compile_table
from solvers.tables.repeat import RepeatCompiler
from solvers.tables.repeat_points import outside, repeat_point, rows_us, value_us
from tests.solvers.table_cases import (
    TableCase,
    check_entries,
    check_repeat,
    random_pipeline,
    repeated,
)
from tests.support.counts import count

ERROR = 1e-11
LIMITS = (
    FragmentLimits(),
    FragmentLimits(max_fragments=4),
    FragmentLimits(5),
    FragmentLimits(1, 11),
    FragmentLimits(3, 14, 2),
    FragmentLimits(1, None, 7),
    FragmentLimits(6, 20, 4, 9),
)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("seed", range(4))
def test_no_schedule_is_slower_than_the_repeated_size(seed: int, limits: FragmentLimits) -> None:
    """At every message, by the evaluator; the certificates hold of what is computed now."""
    rng = np.random.default_rng(seed)
    pipeline = random_pipeline(rng)
    high = 9 * limits.max_fragment_bytes if limits.max_fragment_bytes else 900
    low = max(40, limits.min_fragment_bytes)
    try:
        table = compile_table(pipeline, limits, min_message_bytes=low, max_message_bytes=high)
    except Infeasible:
        return
    for size in range(low, high + 1):
        repeat = table.repeated_size_at(size)
        if repeat:
            repeat_us = latency_us(pipeline, repeated(size, repeat))
            assert latency_us(pipeline, table.cut_at(size)) <= repeat_us * (1.0 + 1e-9)


def test_a_schedule_that_rounding_made_slower_has_the_repeated_size() -> None:
    """Every message of four stages whose optimum has two fragments for long."""
    stages = [("a", 4.1, 7.2), ("b", 2.5, 26.4), ("c", 6.9, 11.3), ("d", 1.2, 3.8)]
    pipeline = pipeline_of_lines(stages)
    options = {"min_message_bytes": 1, "max_message_bytes": 3000}
    table = compile_table(pipeline, FragmentLimits(), **options)
    slower = [
        size
        for size in range(1, 3001)
        if latency_us(pipeline, table.cut_at(size))
        > latency_us(pipeline, repeated(size, table.repeated_size_at(size))) * (1.0 + 1e-9)
    ]
    assert not slower


@pytest.mark.parametrize(("number", "low", "high"), [(11, 40, 200), (51, 1500, 3000)])
def test_a_stretch_that_takes_too_much_to_split_keeps_its_ends(
    number: int, low: int, high: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a reader's cuts are slower and the next entry would be of another count."""
    monkeypatch.setattr(cuts, "_SPLIT_CELLS", 300)
    pipeline = random_pipeline(np.random.default_rng([3, number]))
    table = compile_table(pipeline, FragmentLimits(), min_message_bytes=low, max_message_bytes=high)
    for size in range(low, high + 1):
        cut = table.cut_at(size)
        assert sum(cut) == size
        proven_us = latency_us(pipeline, cut) / (1.0 + table.relative_gap_at(size))
        repeat_us = latency_us(pipeline, repeated(size, table.repeated_size_at(size)))
        assert proven_us <= repeat_us * (1.0 + 1e-9)


def best_of_counts_us(pipeline: Pipeline, problem: Problem) -> dict[int, float]:
    """The best latency of each count without delay, over every size there is."""
    best: dict[int, float] = {}
    for size in range(1, problem.message_bytes + 1):
        cut = repeated(problem.message_bytes, size)
        if problem.admits(cut):
            latency = latency_us(pipeline, cut) - pipeline.delay_us
            best[len(cut)] = min(latency, best.get(len(cut), np.inf))
    return best


def drawn(number: int) -> tuple[Pipeline, FragmentLimits, int]:
    """A pipeline, limits, and a message of few bytes."""
    rng = np.random.default_rng([9, number])
    return random_pipeline(rng), LIMITS[number % len(LIMITS)], int(rng.integers(2, 90))


@pytest.mark.parametrize("number", range(count(300)))
def test_lines_are_below_every_count_at_every_byte(number: int) -> None:
    """Of this message and of all others up to 90 bytes, whatever the limits admit there."""
    pipeline, limits, at = drawn(number)
    try:
        point = repeat_point(Problem(pipeline, at, limits))
    except Infeasible:
        return
    for size in range(max(1, at - 25), min(90, at + 25)):
        lines = point.lines_us(np.array([float(size)]))[:, 0]
        try:
            best = best_of_counts_us(pipeline, Problem(pipeline, size, limits))
        except Infeasible:
            continue
        for k, latency in best.items():
            if 0 <= k - point.first < len(lines):
                assert lines[k - point.first] <= latency * (1.0 + ERROR), (size, k)


@pytest.mark.parametrize("number", range(count(300)))
def test_every_count_between_two_points_has_a_bound(number: int) -> None:
    """By a line of one of the points, or by what is known of the counts beyond them."""
    pipeline, limits, at = drawn(number)
    ends = at, min(99, 2 * at)
    try:
        first, last = (repeat_point(Problem(pipeline, size, limits)) for size in ends)
    except Infeasible:
        return
    start = min(first.first, last.first)
    for size in range(*ends):
        sizes = np.array([float(size)])
        rows = np.maximum(*rows_us(first, last, sizes))[:, 0]
        others = [float((start_us + cost * size).max()) for start_us, cost in outside(first, last)]
        for k, latency in best_of_counts_us(pipeline, Problem(pipeline, size, limits)).items():
            inside = 0 <= k - start < len(rows)
            bound = rows[k - start] if inside else min(others)
            assert bound <= latency * (1.0 + ERROR) + 1e-12, (size, k)


def test_value_is_the_evaluators() -> None:
    """For every size and count of random messages, slopes by differences."""
    for number in range(count(100)):
        pipeline, _, message = drawn(number)
        arrays = PipelineArrays.of(pipeline)
        for size in range(1, message + 1):
            cut = repeated(message, size)
            k, s = np.array([len(cut)]), np.array([float(size)])
            found, slope, _ = value_us(arrays.g, arrays.G, float(message), k, s)
            latency = latency_us(pipeline, cut) - pipeline.delay_us
            assert found[0] == pytest.approx(latency, rel=1e-11, abs=1e-9)
            moved, _, _ = value_us(arrays.g, arrays.G, float(message), k, s - 1e-3)
            assert moved[0] >= (found - 1e-3 * slope)[0] * (1.0 - ERROR) - 1e-9


@pytest.mark.parametrize("number", range(count(200)))
def test_every_byte_of_a_small_table(number: int) -> None:
    """Within its certificate of the search over every size; 0 exactly where it finds none."""
    pipeline, limits, maximum = drawn(number)
    minimum = max(1, maximum // 3, limits.min_fragment_bytes)
    try:
        table = TableCase(pipeline, limits, minimum, maximum).table()
    except Infeasible:
        return
    check_entries(table)
    for size in range(minimum, maximum + 1):
        check_repeat(table, size)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (FragmentLimits(16, 36), 1159),
        (FragmentLimits(16, 45, 7), 1309),
        (FragmentLimits(2, 14), 1561),
        (FragmentLimits(5, 15, 2), 1192),
    ],
)
def test_a_size_far_from_the_best_real_one_is_found(limits: FragmentLimits, message: int) -> None:
    """Few sizes leave a remainder that narrow limits admit; one that is there is given."""
    pipeline = pipeline_of_lines([("a", 1.0, 30.0), ("b", 2.0, 20.0)])
    table = TableCase(pipeline, limits, message, message).table()
    assert best_repeat(Problem(pipeline, message, limits))[0] > 0
    check_repeat(table, message)


def test_none_where_none_is_admitted() -> None:
    """41 bytes in fragments of 10 or 11: 10 + 10 + 10 + 11, but neither 10 repeated nor 11."""
    pipeline = pipeline_of_lines([("a", 1.0, 1.0), ("b", 1.0, 2.0)])
    table = TableCase(pipeline, FragmentLimits(10, 11), 40, 44).table()
    assert [table.repeated_size_at(size) for size in range(40, 45)] == [10, 0, 0, 11, 11]
    assert sorted(table.cut_at(41)) == [10, 10, 10, 11]
    none = [one for one in table.repeats if one.size_bytes == 0]
    assert all((one.latency_us, one.relative_gap) == (0.0, 0.0) for one in none)


def test_the_time_limit_ends_it() -> None:
    """At once where there is none left, and with no half of a table."""
    problem = Problem(pipeline_of_lines([("a", 1.0, 1.0), ("b", 1.0, 2.0)]), 10_000)
    compiler = RepeatCompiler(
        problem, min_message_bytes=1, max_message_bytes=10_000, tolerance=1e-3
    )
    reached: list[int] = []
    with pytest.raises(TimeLimitReached):
        compiler.run(Deadline.after(0.0), reached.append)
    assert reached == [1]


def test_a_unit_that_is_large_for_the_message_hides_no_size() -> None:
    """24 + 1 bytes are better than 25, and at 20 bytes, where the stretch begins, 24 are none."""
    stages = [("a", 0.866, 23.5), ("b", 0.264, 5.63), ("c", 0.0, 31.3)]
    table = compile_table(
        pipeline_of_lines(stages),
        FragmentLimits(1, None, 8),
        min_message_bytes=5,
        max_message_bytes=26,
    )
    for size in range(5, 27):
        check_repeat(table, size)
