"""Bounds from the reduced dual hold whatever is put in."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bench.pipelines import named, stored
from domain.pipeline import pipeline_of_lines
from domain.problem import Problem
from solvers.contract import Deadline
from solvers.exact import structured
from solvers.exact.dual import (
    bound_above,
    bound_below,
    capped_value_us,
    drift,
    largest_below,
    levelled,
    projected,
    repaired,
    restored,
    sharper,
    value_us,
    weights,
)
from solvers.exact.lp.lines import solve_count
from solvers.line_problem import LineProblem
from tests.support.compiler import require_native_kernels
from tests.support.kernels import computed_by

costs = st.one_of(st.just(0.0), st.floats(1e-3, 100.0))


@st.composite
def line_problems(draw: st.DrawFn) -> LineProblem:
    """Two to six stages, with and without least and greatest sizes."""
    n = draw(st.integers(2, 6))
    g = np.array(draw(st.lists(costs, min_size=n, max_size=n)))
    G = np.array(draw(st.lists(costs, min_size=n, max_size=n)))
    size = draw(st.floats(50.0, 5000.0))
    minimum = draw(st.sampled_from([0.0, 1.0, size / 40]))
    maximum = draw(st.sampled_from([size, size / 3]))
    return LineProblem(g, G, size, minimum, maximum, 1, 1000)


def random_cut(lines: LineProblem, k: int, rng: np.random.Generator) -> np.ndarray:
    """Some admitted real cut: between the least size and equal shares, mixed at random."""
    spread = min(lines.M, lines.B) - lines.m
    y = np.minimum(rng.dirichlet(np.full(k, 0.7)) * lines.free_bytes(k), spread)
    rest = lines.free_bytes(k) - y.sum()
    room = spread - y
    return lines.m + y + (room * (rest / room.sum()) if rest > 0 else 0.0)


@given(line_problems(), st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_any_repaired_distribution_bounds_every_cut(lines: LineProblem, k: int, seed: int) -> None:
    """Results sec. 1: no property of a solver is needed."""
    assume(k * lines.M >= lines.B and lines.free_bytes(k) > 0)
    rng = np.random.default_rng(seed)
    p = repaired(rng.normal(size=(k - 1, lines.n)))
    running = np.cumsum(p, axis=1)
    assert (p >= 0).all()
    np.testing.assert_allclose(running[:, -1], 1.0)
    assert (np.diff(running, axis=0) <= 1e-12).all()
    for _ in range(5):
        latency = lines.latency_us(random_cut(lines, k, rng))
        assert value_us(lines, p) <= latency * (1 + 1e-12)


@given(line_problems(), st.integers(3, 10), st.integers(0, 2**32 - 1))
def test_neighbouring_bounds_hold_for_any_distribution(
    lines: LineProblem, k: int, seed: int
) -> None:
    """Stretched and squeezed duals are feasible, so they bound every cut of k+1 and k-1."""
    assume((k - 1) * lines.M >= lines.B and lines.free_bytes(k + 1) > 0)
    rng = np.random.default_rng(seed)
    p = repaired(rng.normal(size=(k - 1, lines.n)))
    above, below = bound_above(lines, p), bound_below(lines, p)
    for _ in range(5):
        assert above <= lines.latency_us(random_cut(lines, k + 1, rng)) * (1 + 1e-12)
        assert below <= lines.latency_us(random_cut(lines, k - 1, rng)) * (1 + 1e-12)


@given(line_problems(), st.integers(3, 12))
def test_the_optimum_is_convex_in_k(lines: LineProblem, k: int) -> None:
    """Results sec. 2: the two neighbouring bounds of one optimal dual add up to twice T*(k)."""
    assume((k - 1) * lines.M >= lines.B and lines.free_bytes(k + 1) > 0)
    result = solve_count(lines, k, Deadline.after(30.0))
    assert result.upper_us - result.lower_us <= 1e-7 * result.upper_us
    both = bound_above(lines, result.p) + bound_below(lines, result.p)
    assert both == pytest.approx(2 * result.upper_us, rel=1e-6) or both > 2 * result.upper_us


@given(costs, costs, st.lists(st.tuples(costs, costs), max_size=6), st.integers(2, 300))
def test_the_drift_proves_equal_sizes_where_the_ends_are_the_slowest(
    g: float, G: float, between: list[tuple[float, float]], k: int
) -> None:
    """Against the recurrence: the bound is the latency of equal sizes, but for rounding."""
    stages = [(g, G), *((min(g, a), min(G, b)) for a, b in between), (g, G)]
    overheads, slopes = np.array(stages).T
    size = 7.0 * k
    lines = LineProblem(overheads, slopes, size, 0.0, size, 1, 1000)
    rows = drift(lines.n, k)
    np.testing.assert_allclose(repaired(rows), rows, atol=1e-14)
    equal_us = lines.latency_us(np.full(k, size / k))
    assert value_us(lines, rows) == pytest.approx(equal_us, rel=1e-10, abs=1e-9)


@given(line_problems(), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_no_fragment_is_larger_than_its_latency_allows(
    lines: LineProblem, k: int, seed: int
) -> None:
    """Against the recurrence: each cut's greatest size is below the cap of its own latency."""
    assume(k * lines.M >= lines.B and lines.free_bytes(k) > 0)
    rng = np.random.default_rng(seed)
    for _ in range(5):
        x = random_cut(lines, k, rng)
        assert x.max() <= largest_below(lines, k, lines.latency_us(x)) * (1 + 1e-9) + 1e-9


@given(line_problems(), st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_capped_and_projected_bounds_hold_for_any_distribution(
    lines: LineProblem, k: int, seed: int
) -> None:
    """Whatever p and the known cut are, no cut is below; and the cap never weakens the bound."""
    assume(k * lines.M >= lines.B and lines.free_bytes(k) > 0)
    rng = np.random.default_rng(seed)
    cuts = [random_cut(lines, k, rng) for _ in range(5)]
    latencies = [lines.latency_us(x) for x in cuts]
    p = repaired(rng.normal(size=(k - 1, lines.n)))
    for q in (p, *(repaired(projected(lines, p, cut)) for cut in (1e-6, 1e-8))):
        bound = capped_value_us(lines, q, latencies[0])
        assert bound >= value_us(lines, q)
        assert bound <= min(latencies) * (1 + 1e-12)


@given(line_problems(), st.integers(3, 12), st.integers(0, 2**32 - 1))
def test_a_projection_restores_lost_digits(lines: LineProblem, k: int, seed: int) -> None:
    """An optimal p with errors of 1e-9: the better of before and after is as good as before."""
    assume((k - 1) * lines.M >= lines.B and lines.free_bytes(k + 1) > 0)
    result = solve_count(lines, k, Deadline.after(30.0))
    noise = np.random.default_rng(seed).normal(size=result.p.shape) * 1e-9
    blurred = repaired(result.p + noise * (result.p > 0.0))
    before = value_us(lines, blurred)
    after = value_us(lines, repaired(projected(lines, blurred, 1e-7)))
    assert max(before, after) >= result.upper_us * (1 - 1e-6)
    assert after <= result.upper_us * (1 + 1e-9)


@given(line_problems(), st.integers(2, 12), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.2]))
def test_restored_rows_bound_every_cut(lines: LineProblem, k: int, seed: int, cut: float) -> None:
    """They are distributions in order, whatever p was."""
    assume(k * lines.M >= lines.B and lines.free_bytes(k) > 0)
    rng = np.random.default_rng(seed)
    p = restored(lines, rng.normal(size=(k - 1, lines.n)), k, cut)
    assert (p >= 0.0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert (np.diff(np.cumsum(p, axis=1), axis=0) <= 1e-15).all()
    known = lines.latency_us(random_cut(lines, k, rng))
    bound = capped_value_us(lines, p, known)
    for _ in range(5):
        assert bound <= max(known, lines.latency_us(random_cut(lines, k, rng))) * (1 + 1e-12)


@given(line_problems(), st.integers(3, 12), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e-3]))
def test_restored_rows_keep_what_each_side_has_of_a_byte_row(
    lines: LineProblem, k: int, seed: int, cut: float
) -> None:
    """Of the stages before the slowest one, and of the others, where anything is left to keep."""
    rng = np.random.default_rng(seed)
    p = repaired(rng.dirichlet(np.full(lines.n, 0.5), size=k - 1))
    p = p * (1.0 + 1e-3 * rng.random(p.shape))  # somewhat out of order
    p /= p.sum(axis=1, keepdims=True)
    b = int(np.argmax(lines.g + lines.G * (lines.B / k)))
    error = 1e-12 * (1.0 + lines.G.sum())
    had, has = (np.cumsum(rows, axis=1)[:, :-1] for rows in (p, restored(lines, p, k, cut)))
    for t in range(1, k - 1):
        left, kept = (
            sums[t - 1, :b] @ lines.G[:b] - sums[t, :b] @ lines.G[1 : b + 1] for sums in (had, has)
        )
        assert kept >= left - error or has[t, :b].max(initial=0.0) == 0.0
        right, kept = (
            (1.0 - sums[t, b:]) @ lines.G[b + 1 :] - (1.0 - sums[t - 1, b:]) @ lines.G[b:-1]
            for sums in (had, has)
        )
        assert kept >= right - error or has[t - 1, b:].min(initial=1.0) >= 1.0 - 1e-15


@given(line_problems(), st.integers(3, 12), st.integers(0, 2**32 - 1))
def test_levelled_rows_stay_in_order(lines: LineProblem, k: int, seed: int) -> None:
    """They need no repair; and the first and the last byte row come up to the others."""
    p = repaired(np.random.default_rng(seed).dirichlet(np.full(lines.n, 0.5), size=k - 1))
    moved = levelled(lines, p)
    assert (moved >= -1e-15).all()
    np.testing.assert_allclose(moved.sum(axis=1), 1.0, rtol=1e-12)
    assert (np.diff(np.cumsum(moved, axis=1), axis=0) <= 1e-14).all()
    before, after = weights(lines, p), weights(lines, moved)
    steps, Q, least = np.diff(p, axis=0), np.cumsum(lines.G), float(before[1:-1].min())
    first, last = least - before[0], least - before[-1]
    if first <= 0.0 < last < steps[-1] @ (Q - lines.G):
        assert after[-1] == pytest.approx(least, rel=1e-9)
    if last <= 0.0 < first < steps[0] @ Q:
        assert after[0] == pytest.approx(least, rel=1e-9)


def test_c_and_numpy_restore_alike() -> None:
    """To the last digits, from what the interior point leaves."""
    require_native_kernels()
    rng = np.random.default_rng(7)
    for one in stored():
        lines = one.lines_for(60)
        p = structured.solve_count(lines, 60, Deadline.after(30.0)).p
        p = p + 1e-6 * rng.random(p.shape)
        for cut in (0.0, 1e-5):
            with computed_by("native"):
                in_c = restored(lines, p, 60, cut)
            with computed_by("numpy"):
                in_numpy = restored(lines, p, 60, cut)
            np.testing.assert_allclose(in_c, in_numpy, atol=1e-12)


@pytest.mark.parametrize("name", ["c1", "c6"])
def test_long_tails_are_proven_before_they_are_in_order(name: str) -> None:
    """The rows that the method leaves are out of order by more than the bounds are apart."""
    require_native_kernels()
    lines, k = named(name).lines_for(4_000), 4_000
    found = structured.solve_count(lines, k, Deadline.after(60.0))
    assert found.upper_us - found.lower_us <= 1e-9 * found.upper_us


@pytest.mark.parametrize("cut", [1e-6, 1e-7, 1e-8])
def test_c_and_numpy_project_alike(cut: float) -> None:
    """Onto the same rows, to the last digits, from what the interior point leaves."""
    require_native_kernels()
    for one in stored():
        lines = one.lines_for(60)
        p = structured.solve_count(lines, 60, Deadline.after(30.0)).p
        with computed_by("native"):
            in_c = projected(lines, p, cut)
        with computed_by("numpy"):
            in_numpy = projected(lines, p, cut)
        np.testing.assert_allclose(in_c, in_numpy, atol=1e-9)


def test_what_a_cap_has_proven_is_proven_without_it() -> None:
    """100 000 fragments without overheads: what the optimum of one count says of the others."""
    stages = [(f"stage {j}", 0.0, 3.0 + j % 3) for j in range(8)]
    lines = LineProblem.of(Problem(pipeline_of_lines(stages), 1 << 17))
    assert lines is not None
    k = 12_500
    found = structured.solve_count(lines, k, Deadline.after(60.0), aim=5e-11)
    rows = sharper(lines, found.p, found.lower_us)
    assert value_us(lines, rows) >= found.upper_us * (1.0 - 1e-10)
    # A fragment less takes no less time; what rounding leaves is drawn out to the least count.
    assert bound_below(lines, rows) >= found.upper_us * (1.0 - 1e-10)
