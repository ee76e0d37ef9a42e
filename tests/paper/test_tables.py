"""Wang98 Tables 1 and 3: the published stages and what follows from them (theory.md sec. 9)."""

from dataclasses import replace

import pytest

from domain.pipeline import Pipeline, pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from domain.solution import Status
from solvers import solve
from solvers.contract import Deadline
from solvers.exact.lp.lines import solve_count
from solvers.line_problem import LineProblem

KIB = 1000.0 / 1024.0  # ns per byte in one µs per KB of 1024 bytes

MYRINET = pipeline_of_lines(
    [
        ("sender copy", 7.2, 7.2 * KIB),
        ("sender host DMA", 5.2, 24.9 * KIB),
        ("network DMAs and receiver host DMA", 7.5, 24.9 * KIB),
        ("receiver copy", 7.4, 7.9 * KIB),
    ]
)
GMS = pipeline_of_lines(
    [
        ("server DMA", 2.1, 25.6 * KIB),
        ("wire", 4.0, 60.1 * KIB),
        ("requester DMA", 2.1, 25.6 * KIB),
        ("requester CPU", 92.8, 26.2 * KIB),
    ]
)


def equal_us(pipeline: Pipeline, size: int, k: int) -> float:
    """Latency of k equal real fragments."""
    return latency_us(pipeline, [size / k] * k)


def optimum_us(pipeline: Pipeline, size: int, k: int) -> float:
    """Exact optimum for k real fragments of any size, below a byte included."""
    lines = LineProblem.of(Problem(pipeline, size))
    assert lines is not None
    return solve_count(replace(lines, m=0.0), k, Deadline.after(30.0)).upper_us


def test_table_1_at_4_kib() -> None:
    """One fragment 286.9 µs; 5 equal fragments are best, 188.9 µs, 51.88 % better; 4 take 189.4."""
    assert round(equal_us(MYRINET, 4096, 1), 1) == 286.9
    times = {k: equal_us(MYRINET, 4096, k) for k in range(1, 40)}
    assert min(times, key=lambda k: times[k]) == 5
    assert round(times[5], 1) == 188.9
    assert round(times[4], 1) == 189.4
    assert round(100 * (times[1] / times[5] - 1), 2) == 51.88


def test_table_1_exact() -> None:
    """184.3483 µs at k = 6, 184.4293 at k = 5, and 6 is the best of all."""
    assert round(optimum_us(MYRINET, 4096, 6), 4) == 184.3483
    assert round(optimum_us(MYRINET, 4096, 5), 4) == 184.4293
    solution = solve(Problem(MYRINET, 4096), "exact")
    assert solution.schedule.fragments == 6
    assert solution.unrounded_latency_us == pytest.approx(184.3483, abs=5e-5)
    assert solution.lower_bound_us == pytest.approx(184.3483, abs=5e-5)
    assert solution.status is Status.OPTIMAL_BEFORE_ROUNDING


def test_table_3_at_8_kib() -> None:
    """Equal fragments: 3 are best, 796.2 µs; 4 take 811.6. Exact: 731.222 at 5, 745.507 at 4."""
    times = {k: equal_us(GMS, 8192, k) for k in range(1, 40)}
    assert min(times, key=lambda k: times[k]) == 3
    assert round(times[3], 1) == 796.2
    assert round(times[4], 1) == 811.6
    assert round(optimum_us(GMS, 8192, 4), 3) == 745.507
    assert round(optimum_us(GMS, 8192, 5), 3) == 731.222
    assert round(optimum_us(GMS, 8192, 6), 1) == 774.6
    assert solve(Problem(GMS, 8192), "exact").schedule.fragments == 5


def test_one_size_for_64_kib_on_myrinet() -> None:
    """18 equal fragments take 1 890.6 µs; repeating 3 782 bytes 1 876.5; 3 784 is best, 1 876.3."""
    fixed = solve(Problem(MYRINET, 65536), "fixed")
    repeat = solve(Problem(MYRINET, 65536), "repeat")
    assert round(equal_us(MYRINET, 65536, 18), 1) == 1890.6
    assert fixed.schedule.fragments == 18
    assert round(latency_us(MYRINET, [3782] * 17 + [1242]), 1) == 1876.5
    assert repeat.schedule.fragment_bytes == (3784,) * 17 + (1208,)
    assert round(repeat.latency_us, 1) == 1876.3


def test_whole_bytes_are_not_unimodal_in_k() -> None:
    """theory.md sec. 6: 55, 42, 38, 40, 39 for k = 1..5, so a bisection over k could miss the 3."""
    pipeline = pipeline_of_lines([("a", 0.0, 3000.0), ("b", 2.0, 4000.0), ("c", 3.0, 3000.0)])
    best = []
    for k in range(1, 6):
        cuts = _compositions(5, k)
        best.append(min(latency_us(pipeline, cut) for cut in cuts))
    assert best == pytest.approx([55.0, 42.0, 38.0, 40.0, 39.0])
    assert solve(Problem(pipeline, 5)).latency_us == pytest.approx(38.0)
    assert solve(Problem(pipeline, 5, FragmentLimits(max_fragments=2))).latency_us == 42.0


def _compositions(total: int, parts: int) -> list[tuple[int, ...]]:
    if parts == 1:
        return [(total,)]
    return [
        (first, *rest)
        for first in range(1, total - parts + 2)
        for rest in _compositions(total - first, parts - 1)
    ]
