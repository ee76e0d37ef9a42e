"""The cut of least worst regret over draws, against an exact linear program over all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from solvers.contract import Deadline
from solvers.settings.cut_in_draws import LinesInDraws, min_worst_regret
from tests.support.counts import count

Floats = NDArray[np.float64]


def exact_worst_regret(lines: LinesInDraws, k: int) -> float:
    """Return the least worst regret of k real sizes: the recurrence of every draw in one program.

    Its variables are the shares of the message, the exit times of each draw as shares of its T*,
    and the regret.
    """
    d, n = lines.g.shape
    columns = k + d * k * n + 1
    rows, right = [], []
    for draw in range(d):
        unit = lines.best_us[draw]

        def at(i: int, j: int, draw: int = draw) -> int:
            return k + (draw * k + i) * n + j

        for i in range(k):
            for j in range(n):
                for before in ((i - 1, j), (i, j - 1)):
                    if min(before) < 0 < i + j:
                        continue
                    row = np.zeros(columns)
                    row[at(i, j)] = -1.0
                    row[i] = lines.G[draw, j] * lines.B / unit
                    if min(before) >= 0:
                        row[at(*before)] = 1.0
                    rows.append(row)
                    right.append(-lines.g[draw, j] / unit)
        row = np.zeros(columns)
        row[at(k - 1, n - 1)], row[-1] = 1.0, -1.0
        rows.append(row)
        right.append(1.0 - lines.delay_us / unit)
    cost = np.zeros(columns)
    cost[-1] = 1.0
    whole = np.concatenate([np.ones(k), np.zeros(columns - k)])
    sizes = [(lines.m / lines.B, lines.M / lines.B)] * k
    bounds = [*sizes, *[(0.0, None)] * (d * k * n), (-1.0, None)]
    found = linprog(cost, np.array(rows), np.array(right), whole[None], np.ones(1), bounds)
    assert found.status == 0
    return float(found.fun)


def drawn(seed: int) -> tuple[LinesInDraws, int]:
    rng = np.random.default_rng(seed)
    d, n, k = int(rng.integers(2, 9)), int(rng.integers(1, 5)), int(rng.integers(1, 7))
    B = float(rng.integers(200, 4000))
    deviation = rng.choice([0.05, 0.2])
    g = rng.uniform(0.2, 10.0, n) * np.exp(deviation * rng.standard_normal((d, n)))
    G = rng.uniform(0.001, 0.05, n) * np.exp(deviation * rng.standard_normal((d, n)))
    best_us = g.sum(axis=1) + G.sum(axis=1) * B / k * rng.uniform(0.9, 1.1, d)
    m, M = (1.0, B) if rng.random() < 0.6 else (0.3 * B / k, 1.5 * B / k)
    return LinesInDraws(g, G, best_us, float(rng.uniform(0.0, 5.0)), B, m, M), k


@pytest.mark.parametrize("seed", range(count(200, share=10)))
def test_the_worst_regret_is_that_of_an_exact_program_over_all_draws(seed: int) -> None:
    lines, k = drawn(seed)
    exact = exact_worst_regret(lines, k)
    found = min_worst_regret(lines, np.full(k, lines.B / k), Deadline.after(60.0), close=1e-7)
    scale = 1.0 + exact
    assert abs(found.worst_regret - exact) <= 1e-6 * scale
    assert found.lower_bound <= exact + 1e-9 * scale
    assert found.worst_regret - found.lower_bound <= 1e-6 * scale
    assert found.worst_regret == pytest.approx(float(lines.regrets(found.x).max()), abs=1e-12)
    assert float(found.x.sum()) == pytest.approx(lines.B)
    assert lines.m * (1.0 - 1e-9) <= found.x.min()
    assert found.x.max() <= lines.M * (1.0 + 1e-9)


@given(seed=st.integers(0, 10_000), other=st.integers(0, 10_000))
def test_no_sizes_are_below_the_bound_and_paths_are_below_all_latencies(
    seed: int, other: int
) -> None:
    lines, k = drawn(seed)
    shares = np.random.default_rng(other).dirichlet(np.ones(k))
    x = lines.m + shares * (lines.B - k * lines.m)
    regret, constant, weight = lines.paths(np.full(k, lines.B / k))
    assert (constant + weight @ x - 1.0 <= lines.regrets(x) + 1e-9).all()
    middle = np.full(k, lines.B / k)
    assert np.allclose(constant + weight @ middle - 1.0, regret)
    if x.max() <= lines.M:
        found = min_worst_regret(lines, middle, Deadline.after(60.0))
        assert found.lower_bound <= float(lines.regrets(x).max())


def test_a_search_that_is_cut_off_says_no_more_than_it_knows() -> None:
    lines, k = drawn(5)
    start = np.full(k, lines.B / k)
    found = min_worst_regret(lines, start, Deadline.after(0.0))
    assert found.worst_regret == float(lines.regrets(start).max())
    assert found.lower_bound == -1.0
