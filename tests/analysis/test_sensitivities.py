"""Sensitivities against an independent linear program, against all paths, and their bounds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

import solvers
from analysis.cut_slopes import cut_slopes
from analysis.sensitivities import sensitivities
from domain.aggregate import Aggregate
from domain.pipeline import FitRange, Pipeline, Stage
from domain.problem import FragmentLimits, Problem, problem_of
from domain.sensitivity import Basis, Sensitivities
from domain.solution import Strategy
from solvers.contract import Deadline
from solvers.exact.structured import solve_count
from solvers.line_problem import LineProblem
from tests.support.counts import is_campaign

Floats = NDArray[np.float64]

PROBLEMS = 200 if is_campaign() else 8
STEP = 4e-6  # of a parameter, for finite differences
CLOSE = 1e-5  # of the latency: value * derivative against a difference


def min_us(g: Floats, G: Floats, B: float, k: int) -> float:
    """Return the optimum for k real-valued fragments: the recurrence as a linear program.

    Exit times and sizes are its variables; times in units of one fragment's passage.
    """
    n = len(g)
    unit = float(g.sum() + B * G.sum())
    columns = k * n + k
    rows, right = [], []
    for i in range(k):
        for j in range(n):
            for before in ((i - 1, j), (i, j - 1)):
                row = np.zeros(columns)
                row[i * n + j] = -1.0
                row[k * n + i] = G[j] * B / unit
                if min(before) >= 0:
                    row[before[0] * n + before[1]] = 1.0
                elif i + j:
                    continue
                rows.append(row)
                right.append(-g[j] / unit)
    cost = np.zeros(columns)
    cost[k * n - 1] = 1.0
    shares = np.concatenate([np.zeros(k * n), np.ones(k)])
    low = [(0.0, None)] * (k * n) + [(1.0 / B, None)] * k  # no fragment is empty
    found = linprog(
        cost,
        np.array(rows),
        np.array(right),
        shares[None],
        np.ones(1),
        low,
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0
    return float(found.fun) * unit


def pipeline_of(g: Floats, G: Floats) -> Pipeline:
    return Pipeline(
        tuple(
            Stage.of_line(f"s{j}", overhead_us=float(a), ns_per_byte=float(b) * 1e3)
            for j, (a, b) in enumerate(zip(g, G, strict=True))
        )
    )


def drawn(seed: int) -> tuple[Floats, Floats, int]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    g, G = rng.uniform(0.2, 10.0, n), rng.uniform(0.001, 0.05, n)
    return g, G, int(rng.integers(500, 12_000))


def found_of(pipeline: Pipeline, B: int) -> tuple[Sensitivities, int]:
    solution = solvers.solve(Problem(pipeline, B))
    found = sensitivities(solution, Strategy.AUTO)
    assert found is not None
    return found, solution.schedule.fragments


@pytest.mark.parametrize("seed", range(PROBLEMS))
def test_derivatives_are_finite_differences_of_another_linear_program(seed: int) -> None:
    g, G, B = drawn(seed)
    found, k = found_of(pipeline_of(g, G), B)
    assert found.basis is Basis.OPTIMUM
    here_us = min_us(g, G, B, k)
    n = len(g)
    values = np.concatenate([g, G, [B]])
    slopes = [
        *(stage.overhead for stage in found.stages),
        *(stage.per_byte for stage in found.stages),
        found.message,
    ]
    for at, (value, slope) in enumerate(zip(values, slopes, strict=True)):
        assert slope.falling is not None
        assert slope.rising is not None
        for sign, derivative in ((-1.0, slope.falling), (1.0, slope.rising)):

            def chord_us(share: float, at: int = at) -> float:
                moved = values.copy()
                moved[at] *= 1.0 + share
                there_us = min_us(moved[:n], moved[n:-1], moved[-1], k)
                return (there_us - here_us) / share

            assert abs(tangent_us(chord_us, sign, here_us) - value * derivative) <= CLOSE * here_us


def tangent_us(chord_us: Callable[[float], float], sign: float, here_us: float) -> float:
    """Return value * derivative on one side, of two steps that agree: no kink is between them."""
    tangents = []
    for step in (STEP, STEP / 4.0, STEP / 16.0):
        near, far = chord_us(sign * step), chord_us(2.0 * sign * step)
        tangents.append(2.0 * near - far)
        if len(tangents) > 1 and abs(tangents[-1] - tangents[-2]) <= CLOSE / 4.0 * here_us:
            return tangents[-1]
    raise AssertionError("kinks at every step")


@pytest.mark.parametrize(("n", "B"), [(3, 900), (4, 600), (5, 800)])
def test_at_a_kink_both_sides_are_given(n: int, B: int) -> None:
    """Equal stages: any of them grows into the bottleneck, and none shrinks out of it."""
    g, G = np.full(n, 3.0), np.full(n, 0.02)
    found, k = found_of(pipeline_of(g, G), B)
    assert k > 1
    here_us = min_us(g, G, B, k)
    for j, stage in enumerate(found.stages):
        for values, slope in ((g, stage.overhead), (G, stage.per_byte)):
            assert slope.falling is not None
            assert slope.rising is not None
            assert slope.rising > slope.falling * 1.01
            for sign, derivative in ((-1.0, slope.falling), (1.0, slope.rising)):

                def chord_us(share: float, j: int = j, values: Floats = values) -> float:
                    moved = values.copy()
                    moved[j] *= 1.0 + share
                    costs = (moved, G) if values is g else (g, moved)
                    return (min_us(*costs, B, k) - here_us) / share

                there_us = tangent_us(chord_us, sign, here_us)
                assert abs(there_us - values[j] * derivative) <= CLOSE * here_us


costs = st.tuples(st.integers(0, 4), st.integers(0, 4))


@given(
    stages=st.lists(costs, min_size=1, max_size=4),
    cut=st.lists(st.integers(1, 5), min_size=1, max_size=5),
)
def test_the_slopes_of_a_cut_are_the_extremes_of_its_longest_paths(
    stages: list[tuple[int, int]], cut: list[int]
) -> None:
    """Whole costs, so that equally long paths are equal in floating point too."""
    pipeline = Pipeline(
        tuple(
            Stage.of_line(f"s{j}", overhead_us=float(g), ns_per_byte=1000.0 * G)
            for j, (g, G) in enumerate(stages)
        )
    )
    slopes = cut_slopes(pipeline, tuple(cut))
    assert slopes is not None
    n, k = len(stages), len(cut)
    paths = []  # a path is where it steps from each stage to the next
    for steps in combinations_with_replacement(range(k), n - 1):
        ends = [0, *steps, k - 1]
        cells = [(i, j) for j in range(n) for i in range(ends[j], ends[j + 1] + 1)]
        length = sum(stages[j][0] + stages[j][1] * cut[i] for i, j in cells)
        paths.append((length, cells))
    longest = max(length for length, _ in paths)
    critical = [cells for length, cells in paths if length == longest]
    for j in range(n):
        counts = [sum(1 for _, at in cells if at == j) for cells in critical]
        sizes = [sum(cut[i] for i, at in cells if at == j) for cells in critical]
        for kind, totals, cost in ((0, counts, stages[j][0]), (1, sizes, stages[j][1])):
            slope = slopes[kind][j]
            assert slope.rising == max(totals)
            assert slope.falling == (min(totals) if cost else None)


@pytest.mark.parametrize("seed", range(6))
def test_changed_costs_are_between_the_bound_and_the_same_cut(seed: int) -> None:
    g, G, B = drawn(seed)
    pipeline = pipeline_of(g, G)
    found, k = found_of(pipeline, B)
    for j, stage in enumerate(found.stages):
        for change in stage.changes:
            there = pipeline.scaled(j, overhead=1.0 + change.by, per_byte=1.0 + change.by)
            problem = Problem(there, B)
            lines = LineProblem.of(problem)
            assert lines is not None
            best = solve_count(lines, k, Deadline.after(60.0))
            assert change.lower_bound_us is not None
            assert change.lower_bound_us <= best.upper_us
            assert change.best_us is not None
            assert best.lower_us <= change.best_us <= best.upper_us * (1.0 + 2e-6)
            assert solvers.solve(problem).lower_bound_us <= change.same_cut_us


@pytest.mark.parametrize("seed", range(PROBLEMS))
def test_the_same_cut_costs_what_the_evaluator_says(seed: int) -> None:
    """Of few fragments and of many, to the last bit."""
    rng = np.random.default_rng(seed)
    stages = tuple(
        Stage.of_line(f"s{j}", overhead_us=float(overhead), ns_per_byte=float(cost))
        for j, (overhead, cost) in enumerate(rng.exponential(20.0, (int(rng.integers(1, 6)), 2)))
    )
    pipeline = Pipeline(stages, 3.0 * (seed % 2))
    for size in (10, 500, 40_000):
        found = solvers.solve(Problem(pipeline, size), Strategy.AUTO)
        said = sensitivities(found, Strategy.AUTO)
        assert said is not None
        for place, stage in enumerate(said.stages):
            for change in stage.changes:
                changed = pipeline.scaled(place, overhead=1.0 + change.by, per_byte=1.0 + change.by)
                assert change.same_cut_us == changed.latency_us(found.schedule.fragment_bytes)


def test_a_cut_that_was_asked_for_is_kept() -> None:
    g, G, B = drawn(3)
    problem = Problem(pipeline_of(g, G), B)
    solution = solvers.solve(problem, Strategy.SINGLE)
    found = sensitivities(solution, Strategy.SINGLE)
    assert found is not None
    assert found.basis is Basis.CUT
    assert [one.overhead.rising for one in found.stages] == [1.0] * len(g)
    assert [one.per_byte.rising for one in found.stages] == [float(B)] * len(g)
    assert found.message.rising is None


def test_stages_with_ranges_are_answered_of_their_cut() -> None:
    stage = Stage("disk", (FitRange(5.0, 10.0, 1000), FitRange(20.0, 8.0)))
    pipeline = Pipeline((stage, Stage.of_line("link", overhead_us=2.0, ns_per_byte=9.0)))
    found, _ = found_of(pipeline, 6000)
    assert found.basis is Basis.CUT
    assert all(one.changes[0].lower_bound_us is None for one in found.stages)
    assert found.deciding is not None


def test_a_limit_on_sizes_is_kept_when_the_message_grows() -> None:
    g, G, _ = drawn(5)
    problem = Problem(
        pipeline_of(g, G), 400, FragmentLimits(max_fragment_bytes=100, max_fragments=4)
    )
    found = sensitivities(solvers.solve(problem), Strategy.AUTO)
    assert found is not None
    assert found.message.rising is None  # four fragments of 100 hold no more


def test_nothing_is_said_of_a_pipeline_seen_from_outside() -> None:
    aggregate = Aggregate(
        Stage.of_line("total", overhead_us=10.0, ns_per_byte=10.0),
        Stage.of_line("slowest", overhead_us=3.0, ns_per_byte=3.0),
    )
    problem = problem_of(aggregate, 4096, FragmentLimits(), fragment_cap=1000)
    assert sensitivities(solvers.solve(problem), Strategy.AUTO) is None


def test_the_greatest_costs_there_are_have_none() -> None:
    """10 % more than these is no cost; the answer itself is one."""
    stages = (
        Stage.of_line("a", overhead_us=1e12, ns_per_byte=1e9),
        Stage.of_line("b", overhead_us=0.0, ns_per_byte=1e9),
    )
    problem = Problem(Pipeline(stages), 2**48)
    found = solvers.solve(problem, Strategy.FIXED)
    assert found.schedule.fragments > 1
    assert sensitivities(found, Strategy.FIXED) is None
    nine = (Stage.of_line("a", overhead_us=9e11, ns_per_byte=9e8), stages[1])
    assert sensitivities(solvers.solve(Problem(Pipeline(nine), 8)), Strategy.AUTO) is None
