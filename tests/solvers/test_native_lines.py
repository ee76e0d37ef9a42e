"""Bounds, solves, roundings, equal and repeated sizes in C against the same in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from domain.errors import Infeasible, StrategyDeclined
from domain.pipeline import Pipeline, pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from solvers.bounds import closed_form_us
from solvers.contract import Deadline
from solvers.exact.count_search import _last_that_could_win
from solvers.exact.dual import bound_above, bound_below, marginal_us, repaired, value_us
from solvers.exact.structured import AIM, CLOSE, default_method, solve_count
from solvers.heuristics.constant import repeated_cut
from solvers.heuristics.fixed import best_count, equal_cut, equal_latency_us
from solvers.heuristics.repeat import search
from solvers.heuristics.repeat_search import Best
from solvers.kernels.native import Choice
from solvers.kernels.native_whole import whole_of
from solvers.line_problem import LineProblem
from solvers.rounding import round_cut
from tests.support.compiler import require_native_kernels
from tests.support.kernels import computed_by, native_kernels

NATIVE: Choice = "native"
NUMPY: Choice = "numpy"
BOTH: tuple[Choice, Choice] = (NUMPY, NATIVE)
LATER = Deadline.after(1e9)
TIE = 1e-11  # relative: what another order of the same sums may change


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    """The kernels as the service would load them."""
    require_native_kernels()


costs = st.one_of(st.just(0.0), st.floats(1e-3, 1e4))
overheads = st.one_of(st.just(0.0), st.floats(1e-3, 1e5))


@st.composite
def problems(draw: st.DrawFn, *, max_bytes: int = 20_000) -> Problem:
    """One to eight stages over wide scales, with and without limits and alignment."""
    stages = draw(st.integers(1, 8))
    rows = [(str(j), draw(overheads), draw(costs)) for j in range(stages)]
    pipeline = Pipeline(pipeline_of_lines(rows).stages, delay_us=draw(st.sampled_from([0.0, 3.5])))
    size = draw(st.integers(1, max_bytes))
    limits = FragmentLimits(
        min_fragment_bytes=draw(st.sampled_from([1, 1, 7, 64])),
        max_fragment_bytes=draw(st.sampled_from([None, None, 100, 1_000, 5_001])),
        alignment_bytes=draw(st.sampled_from([1, 1, 8, 12])),
        max_fragments=draw(st.sampled_from([None, None, 40])),
    )
    problem = Problem(pipeline, size, limits)
    try:
        problem.count_range()
    except Infeasible:
        assume(False)
    return problem


@st.composite
def duals(draw: st.DrawFn) -> tuple[LineProblem, np.ndarray]:
    """Lines, and rows near which there is a dual: random ones, or one stage throughout."""
    lines = LineProblem.of(draw(problems()))
    assert lines is not None
    k = draw(st.integers(2, 30))
    assume(k * lines.M >= lines.B and lines.free_bytes(k) > 0)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    p = rng.normal(size=(k - 1, lines.n))
    if draw(st.booleans()):
        p = np.zeros_like(p)
        p[:, draw(st.integers(0, lines.n - 1))] = 1.0
    return lines, p


@given(duals())
def test_repair_and_value_are_the_same(case: tuple[LineProblem, np.ndarray]) -> None:
    """With and without a greatest size; both are proven bounds, so both may differ by rounding."""
    lines, p = case
    with computed_by(NUMPY):
        rows = repaired(p)
        expected = value_us(lines, rows)
    scale = float(lines.g.sum() * len(rows) + lines.B * lines.G.sum())
    with computed_by(NATIVE):
        np.testing.assert_allclose(repaired(p), rows, rtol=0.0, atol=1e-14)
        assert value_us(lines, rows) == pytest.approx(expected, rel=0, abs=1e-12 * scale)


@given(st.integers(2, 8), st.integers(2, 30), st.booleans(), st.integers(0, 2**32 - 1))
def test_neighbouring_bounds_are_the_same(n: int, k: int, capped: bool, seed: int) -> None:
    """Stretched and squeezed alike, where what decides between the cases is not rounding alone."""
    rng = np.random.default_rng(seed)
    g, G = 10.0 ** rng.uniform(-3, 5, n), 10.0 ** rng.uniform(-7, 1, n)
    lines = LineProblem(g, G, 5_000.0, 1.0, 7_500.0 / k if capped else 5_000.0, 1, 5_000)
    running = np.sort(rng.uniform(0.0, 1.0, n)) ** np.cumsum(rng.uniform(0.05, 1.0, (k - 1, 1)), 0)
    with computed_by(NUMPY):
        rows = repaired(np.diff(running, axis=1, prepend=0.0))
    step, price = rows @ lines.G, marginal_us(lines, rows)
    assume((abs(step - price) > 1e-6 * price).all())
    slow = np.unique((rows @ lines.g)[step > price])
    assume((np.diff(slow) > 1e-9 * slow[1:]).all())
    scale = float(g.sum() * (k + 1) + lines.B * G.sum())
    for bound, fewest in ((bound_above, 1), (bound_below, 2)):
        if k <= fewest:
            continue
        with computed_by(NUMPY):
            expected = bound(lines, rows)
        with computed_by(NATIVE):
            found = bound(lines, rows)
        assert found == pytest.approx(expected, rel=0, abs=1e-9 * scale)


@pytest.mark.parametrize("kernels", BOTH)
def test_repair_takes_what_is_no_distribution(kernels: Choice) -> None:
    """NaN, infinity and nothing at all; the rows that come out are distributions in order."""
    p = np.array([[np.nan, 1.0, 2.0], [np.inf, 1.0, 0.0], [0.0, 0.0, 0.0], [-1.0, -2.0, -3.0]])
    with computed_by(kernels):
        rows = repaired(p)
    assert (rows >= 0.0).all()
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    assert (np.diff(np.cumsum(rows, axis=1), axis=0) <= 1e-15).all()


@given(problems())
def test_closed_form_has_the_same_bits(problem: Problem) -> None:
    """The operations of one are those of the other; only sums of nine stages and more differ."""
    counts = problem.count_range()
    every = np.arange(counts.minimum, counts.maximum + 1, dtype=np.int64)
    with computed_by(NUMPY):
        expected = closed_form_us(problem, every)
    with computed_by(NATIVE):
        np.testing.assert_allclose(closed_form_us(problem, every), expected, rtol=1e-15)


@given(problems(), st.floats(1.0, 3.0), st.integers(1, 20_000))
def test_the_last_count_that_could_win_is_the_same(
    problem: Problem, factor: float, near: int
) -> None:
    """Wherever the search for it starts."""
    lines = LineProblem.of(problem)
    assert lines is not None
    assume(lines.k_max > lines.k_min + 1)
    counts = np.arange(lines.k_min + 1, lines.k_max + 1, dtype=np.int64)
    values = closed_form_us(problem, counts)
    known = float(values.min()) * factor
    with computed_by(NATIVE):
        last = _last_that_could_win(problem, lines, known, near=near, worth_bisecting=0)
    assert last >= counts[np.flatnonzero(values <= known)[-1]]
    assert values[last - counts[0]] <= known * (1 + 2e-9)


@given(problems(max_bytes=4_000))
def test_equal_counts_and_cuts_are_the_same(problem: Problem) -> None:
    """Counts that tie to rounding may differ; the latencies then do not."""
    pair, cuts = [], []
    for kernels in BOTH:
        with computed_by(kernels):
            pair.append(best_count(problem))
            cuts.append(equal_cut(problem, LATER)[0])
    times = equal_latency_us(problem, np.array(pair))
    assert times[1] == pytest.approx(times[0], rel=TIE)
    old, new = cuts
    if old is None or new is None:
        assert old is new
        return
    assert problem.admits(tuple(new.tolist()))
    if pair[0] == pair[1]:
        assert _evaluated(problem, new) == pytest.approx(_evaluated(problem, old), rel=TIE)


@given(problems())
def test_repeated_sizes_are_the_same(problem: Problem) -> None:
    """The best one, or none on both sides."""
    found = [_repeated(problem, kernels) for kernels in BOTH]
    if None in found:
        assert found == [None, None]
        return
    old, new = (best for best in found if best is not None)
    assert new.latency_us == pytest.approx(old.latency_us, rel=TIE, abs=1e-300)
    cut = repeated_cut(problem, new.size)
    evaluated = latency_us(problem.pipeline, cut) - problem.pipeline.delay_us
    assert evaluated == pytest.approx(new.latency_us, rel=1e-9, abs=1e-9)


@given(problems(), st.integers(2, 40), st.integers(0, 2**32 - 1))
def test_roundings_are_the_same(problem: Problem, k: int, seed: int) -> None:
    """From random sizes, so that limits and moves both matter."""
    counts = problem.count_range()
    assume(counts.minimum <= k <= counts.maximum)
    shares = np.random.default_rng(seed).dirichlet(np.full(k, 3.0))
    x = shares * problem.message_bytes
    cuts = []
    for kernels in BOTH:
        with computed_by(kernels):
            cuts.append(round_cut(problem, x))
    old, new = cuts
    if old is None or new is None:
        assert old is new
        return
    assert problem.admits(new)
    # Moves that tie to rounding may lead the two to different, equally good places.
    here, there = _evaluated(problem, np.array(new)), _evaluated(problem, np.array(old))
    assert new == old or here == pytest.approx(there, rel=1e-3)


@given(problems(), st.integers(2, 40))
def test_a_solve_in_one_call_is_certified_like_any_other(problem: Problem, k: int) -> None:
    """Both close, so both near the same optimum."""
    lines, native = LineProblem.of(problem), native_kernels().dual
    assert lines is not None
    assume(lines.k_min <= k <= lines.k_max)
    general = solve_count(lines, k, LATER, method=default_method())
    found = native.solve(lines.native, k, whole=True, close=CLOSE, aim=AIM, time_limit_s=10.0)
    assert found is not None
    lower, upper, x, p = found
    assert lower <= upper
    assume(upper <= lower + CLOSE * upper)
    assert x.sum() == pytest.approx(lines.B, rel=1e-12)
    assert x.min() >= lines.m * (1 - 1e-12)
    assert x.max() <= lines.M * (1 + 1e-12)
    with computed_by(NUMPY):
        assert lines.latency_us(x) == pytest.approx(upper, rel=1e-12)
        assert value_us(lines, p) == pytest.approx(lower, rel=1e-12)
    assert lower <= general.upper_us
    assert general.lower_us <= upper


def test_what_is_not_lines_is_left_to_numpy() -> None:
    """Stages with ranges have no one line, so the kernels are not told of them."""
    from domain.pipeline import FitRange, Stage

    switch = Stage("wire", (FitRange(5.0, 24.3, 2000), FitRange(30.0, 12.0)))
    problem = Problem(Pipeline((switch,)), 4096)
    assert whole_of(problem) is None
    counts = np.arange(1, 100, dtype=np.int64)
    with computed_by(NATIVE):
        same = closed_form_us(problem, counts)
    with computed_by(NUMPY):
        np.testing.assert_array_equal(same, closed_form_us(problem, counts))


def _evaluated(problem: Problem, cut: np.ndarray) -> float:
    return latency_us(problem.pipeline, tuple(cut.tolist()))


def _repeated(problem: Problem, kernels: Choice) -> Best | None:
    best = Best()
    try:
        with computed_by(kernels):
            search(problem, best, LATER)
    except StrategyDeclined:
        return None
    return best
