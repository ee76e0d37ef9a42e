"""What is small enough to be tried in the service's own process, and how it is told when not."""

import pytest

from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from domain.solution import Strategy
from solvers import is_quick, solve
from solvers.assemble import rank_of
from tests.support.compiler import require_native_kernels
from tests.support.kernels import computed_by

MYRINET = pipeline_of_lines([("a", 7.2, 7.03), ("b", 5.2, 24.3), ("c", 7.5, 24.3), ("d", 7.4, 7.7)])
# Small, but nearly every count can win in whole bytes: overheads next to nothing.
FLAT = pipeline_of_lines([("a", 0.0, 3.0), ("b", 0.01, 1.0), ("c", 0.0, 1.2)])
FLAT_BYTES, FLAT_FRAGMENTS = 20_000, 33


@pytest.mark.parametrize(
    ("size", "in_numpy", "in_c"),
    [
        (1, True, True),
        (4096, True, True),
        (1 << 16, True, True),
        (1 << 20, False, True),
        (1 << 24, False, False),
    ],
)
def test_myrinet_is_quick_up_to_64_kib_and_in_c_up_to_1_mib(
    size: int, in_numpy: bool, in_c: bool
) -> None:
    """The rule is about k*n near the optimum."""
    require_native_kernels()
    problem = Problem(MYRINET, size)
    with computed_by("numpy"):
        assert is_quick(problem, Strategy.AUTO) is in_numpy
    with computed_by("native"):
        assert is_quick(problem, Strategy.AUTO) is in_c


def test_where_many_counts_could_win_less_is_quick() -> None:
    """Each of them may have to be rounded and compared: overheads next to nothing."""
    require_native_kernels()
    few, many = FragmentLimits(max_fragments=FLAT_FRAGMENTS), FragmentLimits(max_fragments=200)
    for limits, expected in ((few, True), (many, False)):
        problem = Problem(FLAT, FLAT_BYTES, limits)
        with computed_by("native"):
            assert is_quick(problem, Strategy.AUTO) is expected


@pytest.mark.parametrize(("size", "expected"), [(4096, True), (1 << 20, False)])
def test_ranges_are_quick_only_where_few_fragments_are(size: int, expected: bool) -> None:
    """Schedules are improved on the ranges, which takes longer; beyond the range it does not."""
    switch = Stage("wire", (FitRange(5.0, 24.3, 2000), FitRange(30.0, 12.0)))
    pipeline = Pipeline((*MYRINET.stages[:1], switch))
    assert is_quick(Problem(pipeline, size), Strategy.AUTO) is expected
    small = Problem(pipeline, 1 << 14, FragmentLimits(max_fragment_bytes=2000))
    assert is_quick(small, Strategy.AUTO)


def test_refragmentation_is_never_taken_for_quick() -> None:
    """Nested cuts multiply the work."""
    assert not is_quick(Problem(MYRINET, 4096), Strategy.HIERARCHICAL)
    assert not is_quick(Problem(MYRINET, 4096, allow_refragmentation=True), Strategy.AUTO)


def test_a_small_problem_that_takes_long_says_that_it_was_cut_off() -> None:
    """So that the caller can have it solved elsewhere; with time it ends by itself."""
    problem = Problem(FLAT, FLAT_BYTES, FragmentLimits(max_fragments=FLAT_FRAGMENTS))
    assert is_quick(problem, Strategy.AUTO)
    cut_off = solve(problem, time_limit_s=0.001)
    assert cut_off.cut_off
    assert cut_off.lower_bound_us <= cut_off.latency_us
    complete = solve(problem, time_limit_s=60.0)
    assert not complete.cut_off
    # Latencies are compared as the rule for ties does: of two that only rounding tells apart,
    # the one of fewer fragments wins, whose sum of other terms may end in other digits.
    (best_us, _, _), (known_us, _, _) = (
        rank_of(one.latency_us, one.schedule.fragment_bytes) for one in (complete, cut_off)
    )
    assert best_us <= known_us
