"""Whole bytes: the rounding lemma, and limits kept wherever a count is admitted."""

import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bench.reference.integer_optimum import IntegerStatus, integer_optimum
from domain.errors import Infeasible, InvalidInput
from domain.pipeline import Pipeline, pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from domain.solution import Status
from solvers import solve
from solvers.contract import Deadline
from solvers.kernels import latencies_us
from solvers.line_problem import LineProblem
from solvers.rounding import EXCHANGE_CELLS, _lengths, round_cut, steady_ramps, steady_start
from tests.solvers.integer_cases import small_problems
from tests.support.counts import count, is_campaign
from tests.support.kernels import computed_by

costs = st.floats(0.0, 50.0)
pipelines = st.lists(st.tuples(st.just("s"), costs, costs), min_size=2, max_size=6).map(
    pipeline_of_lines
)


def rounding_loss_us(pipeline: Pipeline, unit: int) -> float:
    """rho of results sec. 4, in µs for this alignment."""
    cost = np.array([stage.ranges[0].ns_per_byte for stage in pipeline.stages]) / 1000.0
    nearest = cost.sum() - (cost[0] + cost[-1]) / 2.0
    return float(unit * min(cost[1:].sum(), cost[:-1].sum(), nearest))


@given(pipelines, st.lists(st.floats(1.0, 500.0), min_size=1, max_size=40), st.integers(1, 16))
def test_rounding_adds_no_more_than_the_lemma_says(
    pipeline: Pipeline, sizes: list[float], unit: int
) -> None:
    """Results sec. 4: at most rho, whatever the number of fragments."""
    total = int(np.ceil(sum(sizes)))
    real = np.array(sizes) * (total / sum(sizes))
    assume(real.min() >= unit)
    problem = Problem(pipeline, total, FragmentLimits(alignment_bytes=unit))
    cut = round_cut(problem, real, search_cells=0)
    assert cut is not None
    loss = latency_us(pipeline, cut) - latency_us(pipeline, real.tolist())
    assert loss <= rounding_loss_us(pipeline, unit) + 1e-9


@given(
    pipelines,
    st.integers(1, 400),
    st.integers(1, 20),
    st.none() | st.integers(1, 60),
    st.integers(1, 9),
    st.data(),
)
def test_every_admitted_count_is_rounded_into_the_limits(
    pipeline: Pipeline,
    size: int,
    minimum: int,
    maximum: int | None,
    unit: int,
    data: st.DataObject,
) -> None:
    """Whatever the real sizes look like, a count that some cut has is never lost."""
    problem = Problem(pipeline, size, FragmentLimits(minimum, maximum, unit))
    try:
        counts = problem.count_range()
    except Infeasible:
        assume(False)
        raise AssertionError from None
    k = data.draw(st.integers(counts.minimum, counts.maximum))
    shares = np.array(data.draw(st.lists(st.floats(0.0, 1.0), min_size=k, max_size=k))) + 1e-3
    cut = round_cut(problem, shares * (size / shares.sum()))
    assert cut is not None
    assert len(cut) == k
    assert problem.admits(cut)


@given(pipelines, st.lists(st.floats(1.0, 500.0), min_size=2, max_size=12))
def test_the_local_search_only_improves(pipeline: Pipeline, sizes: list[float]) -> None:
    """Neighbouring cuts are taken only where the evaluator agrees that they are better."""
    total = int(np.ceil(sum(sizes)))
    real = np.array(sizes) * (total / sum(sizes))
    problem = Problem(pipeline, total)
    plain, improved = round_cut(problem, real, search_cells=0), round_cut(problem, real)
    assert plain is not None
    assert improved is not None
    assert latency_us(pipeline, improved) <= latency_us(pipeline, plain) * (1 + 1e-12)


@given(pipelines, st.integers(1, 11), st.sampled_from([None, 2, 3, 4, 7]), st.integers(1, 3))
def test_no_whole_byte_cut_is_below_its_bound(
    pipeline: Pipeline, size: int, maximum: int | None, minimum: int
) -> None:
    """Against every cut there is: the bound of the greatest fragment's path holds for all."""
    try:
        problem = Problem(pipeline, size, FragmentLimits(minimum, maximum))
        problem.count_range()
    except (Infeasible, InvalidInput):
        assume(False)
    lines = LineProblem.of(problem)
    assert lines is not None
    places = range(1, size)
    cuts = [
        tuple(np.diff((0, *inner, size)).tolist())
        for k in range(size)
        for inner in combinations(places, k)
    ]
    best_us = min(latency_us(pipeline, cut) for cut in cuts if problem.admits(cut))
    assert lines.whole_byte_bound_us() <= best_us * (1 + 1e-12)


def test_stages_alike_without_overheads_are_proven_in_whole_bytes() -> None:
    """Eight stages of 10 ns a byte, 1 MiB: 11 bytes a fragment, which no more fragments can better.

    (B + 7 * 11) * 10 ns, by hand; in real sizes 10.49 bytes would do.
    """
    alike = pipeline_of_lines([("s", 0.0, 10.0)] * 8)
    answer = solve(Problem(alike, 1 << 20), "auto")
    assert answer.status is Status.OPTIMAL
    assert answer.latency_us == pytest.approx(((1 << 20) + 77) * 0.01, rel=1e-12)
    assert answer.lower_bound_us == pytest.approx(answer.latency_us, rel=1e-12)


def every_cut(size: int, k: int) -> list[tuple[int, ...]]:
    """All ways to cut so many bytes into k fragments."""
    places = combinations(range(1, size), k - 1)
    return [tuple(np.diff((0, *inner, size)).tolist()) for inner in places]


@given(pipelines, st.lists(st.integers(1, 500), min_size=1, max_size=9), st.floats(1e-3, 3.0))
def test_smooth_maxima_add_no_more_than_the_theory_says(
    pipeline: Pipeline, sizes: list[int], share: float
) -> None:
    """Section 6: at most half a width for each maximum, and never less than the true length."""
    slowest = max(sum(stage.time_us(size) for size in sizes) for stage in pipeline.stages)
    assume(slowest == 0.0 or slowest > 1e-100)  # squares of less are no numbers
    width = (share * slowest) ** 2
    problem, cuts = Problem(pipeline, sum(sizes)), np.array([sizes], dtype=np.int64)
    smooth, true = (float(lengths[0]) for lengths in _lengths(problem, cuts, width))
    maxima = (len(sizes) - 1) * (len(pipeline) - 1)
    assert true == pytest.approx(latency_us(pipeline, sizes), rel=1e-12)
    assert true * (1 - 1e-12) <= smooth
    assert smooth <= (true + maxima * share * slowest / 2.0) * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_exchanges_find_what_trying_every_cut_finds(seed: int) -> None:
    """Five fragments of 24 bytes, from sizes at random: never worse, and the optimum as a rule."""
    rng, met, before = np.random.default_rng(seed), 0, 0
    cuts = every_cut(24, 5)
    for small in small_problems(12, seed=seed):
        problem = Problem(small.pipeline, 24)
        best_us = latencies_us(problem.pipeline, np.array(cuts, dtype=float)).min()
        real = rng.dirichlet(np.full(5, 3.0)) * 24.0
        found = []
        for cells in (0, EXCHANGE_CELLS):
            cut = round_cut(problem, real, exchange_cells=cells)
            assert cut is not None
            found.append(latency_us(problem.pipeline, cut))
        assert best_us * (1 - 1e-12) <= found[1] <= found[0] * (1 + 1e-12)
        before += found[0] <= best_us * (1 + 1e-9)
        met += found[1] <= best_us * (1 + 1e-9)
    assert met >= 10
    assert met >= before


@settings(max_examples=count(60), deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(2, 8),
    st.sampled_from([0, EXCHANGE_CELLS]),
    st.sampled_from([0.0, 1.0, 1.01]),
)
@pytest.mark.usefixtures("native_kernels")
def test_c_and_numpy_round_to_the_same_cut(seed: int, k: int, cells: int, enough: float) -> None:
    """Ties are broken by place, whatever the last digits: both give the same sizes."""
    (problem,) = small_problems(1, seed=seed)
    k = min(k, problem.count_range().maximum)
    real = np.random.default_rng(seed).dirichlet(np.full(k, 3.0)) * problem.message_bytes
    enough_us = enough * latency_us(problem.pipeline, real.tolist())
    with computed_by("native"):
        native = round_cut(problem, real, exchange_cells=cells, enough_us=enough_us)
    with computed_by("numpy"):
        assert round_cut(problem, real, exchange_cells=cells, enough_us=enough_us) == native


@pytest.mark.usefixtures("native_kernels")
def test_auto_is_not_above_exact_by_what_the_gap_allows() -> None:
    """Three fragments are better than four by 2.8e-7 here: less than the gap, and still found."""
    rows = [(5681.68, 20893900.0), (1.72e-8, 0.0), (1.14e-4, 0.658132), (16005.4, 1.438e-5)]
    pipeline = pipeline_of_lines([("s", *row) for row in [*rows, (0.0, 79344.0)]])
    problem = Problem(pipeline, 822_893, FragmentLimits(max_fragments=20))
    auto, exact = solve(problem, "auto"), solve(problem, "exact")
    assert auto.latency_us <= exact.latency_us * (1 + 1e-9)


@given(
    st.lists(st.tuples(st.floats(0.0, 5.0), st.floats(0.1, 9.0)), min_size=2, max_size=6),
    st.integers(1, 3000),
    st.integers(1, 40),
    st.booleans(),
)
def test_a_steady_ramp_never_lets_the_slowest_stage_wait(
    rows: list[tuple[float, float]], size: int, first: int, mirrored: bool
) -> None:
    """Against the recurrence: the end stage works on all bytes without a gap that a size makes."""
    slowest = (max(g for g, _ in rows), 1.05 * max(G for _, G in rows))
    stages = [*rows, slowest][:: -1 if mirrored else 1]
    problem = Problem(pipeline_of_lines([("s", *row) for row in stages]), size)
    ends = np.array([float(min(first, size))] * 2)
    for cut in steady_ramps(problem, ends):
        assert problem.admits(cut)
        begin = cut[-1] if mirrored else cut[0]
        through = sum(g + G * begin / 1000.0 for g, G in rows)
        work = len(cut) * slowest[0] + slowest[1] * size / 1000.0
        assert latency_us(problem.pipeline, cut) == pytest.approx(through + work, rel=1e-9)


@given(
    st.lists(st.tuples(st.floats(0.0, 5.0), st.floats(0.1, 9.0)), min_size=2, max_size=6),
    st.integers(1, 3000),
    st.integers(1, 40),
    st.booleans(),
)
def test_ramps_that_need_no_program_are_the_same_in_c_and_in_python(
    rows: list[tuple[float, float]], size: int, unit: int, mirrored: bool
) -> None:
    """Every ramp from a first size, and the best of them; admitted, and never above the first."""
    slowest = (max(g for g, _ in rows), max(G for _, G in rows))
    stages = [*rows, slowest][:: -1 if mirrored else 1]
    limits = FragmentLimits(alignment_bytes=unit)
    problem = Problem(pipeline_of_lines([("s", *row) for row in stages]), size, limits)
    ends = np.array([float(min(unit, size))] * 2)
    found = steady_ramps(problem, ends), _start(problem)
    with computed_by("numpy"):
        assert (steady_ramps(problem, ends), _start(problem)) == found
    ramps, best = found
    if best:
        assert problem.admits(best)
        begun = [latency_us(problem.pipeline, cut) for cut in ramps]
        assert latency_us(problem.pipeline, best) <= min(begun, default=np.inf) * (1 + 1e-9)


def _start(problem: Problem) -> tuple[int, ...]:
    return steady_start(problem, enough_us=0.0, deadline=Deadline.after(60.0))


def test_stages_without_overheads_meet_their_closed_form() -> None:
    """The ramp from one byte on is the optimum, and is proven without a program."""
    costs = [10.0 + 0.01 * j for j in range(8)]
    free = pipeline_of_lines([("s", 0.0, cost) for cost in costs])
    answer = solve(Problem(free, 4 << 20), "exact")
    filled = (sum(costs[:-1]) + costs[-1] * (4 << 20)) / 1000.0
    assert answer.status is Status.OPTIMAL
    assert answer.latency_us == pytest.approx(filled, rel=1e-12)


@given(
    st.integers(2, 5),
    st.integers(1, 12),
    st.booleans(),
    st.sampled_from([None, 2, 5]),
    st.sampled_from([None, 3]),
)
def test_auto_and_exact_are_one_answer_without_overheads(
    stages: int, size: int, is_alike: bool, maximum: int | None, most: int | None
) -> None:
    """Against every cut there is; of equals the fewest fragments that the closed forms know."""
    costs = [4.0 if is_alike else 1.0 + j for j in range(stages)]
    limits = FragmentLimits(max_fragment_bytes=maximum, max_fragments=most)
    try:
        problem = Problem(pipeline_of_lines([("s", 0.0, cost) for cost in costs]), size, limits)
        problem.count_range()
    except (Infeasible, InvalidInput):
        assume(False)
    cuts = [cut for k in range(1, size + 1) for cut in every_cut(size, k) if problem.admits(cut)]
    best_us = min(latency_us(problem.pipeline, cut) for cut in cuts)
    auto, exact = solve(problem, "auto"), solve(problem, "exact")
    assert auto.latency_us == pytest.approx(best_us, rel=1e-9)
    assert exact.latency_us == pytest.approx(best_us, rel=1e-9)
    assert max(auto.lower_bound_us, exact.lower_bound_us) <= best_us * (1 + 1e-12)


def test_flat_pipelines_are_proven_in_whole_bytes() -> None:
    """Stages that differ by a thousandth: the ramp in whole bytes is within 1e-6 of the bound."""
    flat = pipeline_of_lines([("s", 1e-4, 10.0 + 0.01 * j) for j in range(8)])
    answer = solve(Problem(flat, 4 << 20), "auto", time_limit_s=60.0)
    assert answer.status is Status.OPTIMAL


class TestAgainstTheIntegerOptimum:
    """800 small problems, each proven by the integer program."""

    __test__ = is_campaign()

    def test_the_optimum_is_met_in_95_of_100(self) -> None:
        """Of those that are proven; the others are within 2e-3."""
        over = []
        for problem in small_problems(800, seed=5):
            best = integer_optimum(problem, time_limit_s=60.0)
            if best.status is IntegerStatus.PROVEN:
                over.append(solve(problem, "auto").latency_us / best.latency_us - 1.0)
        assert len(over) >= 780
        assert np.mean(np.array(over) <= 1e-9) >= 0.95
        assert max(over) <= 2e-3


def test_many_fragments_take_no_array_of_all_pairs() -> None:
    pipeline = pipeline_of_lines([("a", 0.0, 5.9), ("b", 0.0, 7.3)])
    with computed_by("numpy"):
        tracemalloc.start()
        try:
            cut = round_cut(Problem(pipeline, 1 << 20), np.full(5000, (1 << 20) / 5000))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert cut is not None
    assert peak < 5000 * 5000
