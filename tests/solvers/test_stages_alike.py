"""Stages that are alike, or nearly: the drift proves equal sizes, and all fragments may wait."""

import numpy as np
import pytest

from solvers.contract import Deadline
from solvers.exact.structured import CLOSE, solve_count
from solvers.line_problem import LineProblem
from tests.support.compiler import require_native_kernels
from tests.support.counts import count

ROUNDING = 1e-12


def test_equal_sizes_over_stages_alike_are_the_optimum() -> None:
    """Proven by the drift in one call: the sizes it returns are those that it prices."""
    require_native_kernels()
    rng = np.random.default_rng(29)
    for _ in range(count(2_000)):
        n, k = int(rng.integers(2, 9)), int(rng.integers(41, 300))
        size = float(10.0 ** rng.uniform(0.0, 4.0))
        g, G = np.full(n, 10.0 ** rng.uniform(-1.0, 2.0)), np.full(n, 1e-3)
        lines = LineProblem(g=g, G=G, B=k * size, m=0.0, M=k * size, k_min=1, k_max=k)
        found = solve_count(lines, k, Deadline.after(60.0))
        assert found.x == pytest.approx(np.full(k, size))
        assert found.upper_us == pytest.approx(lines.latency_us(found.x), rel=ROUNDING)
        assert found.lower_us <= found.upper_us * (1.0 + ROUNDING)
        assert found.upper_us <= found.lower_us * (1.0 + CLOSE)


def test_many_stages_nearly_alike_are_solved_before_rounds_run_out() -> None:
    """Each round finds a few more fragments that have to wait; in the end all may."""
    require_native_kernels()
    n, k, B = 64, 374, 90_380.0
    g, G = np.full(n, 2.979208e-7), 1e-9 * (1.0 + 1e-6 * np.random.default_rng(0).random(n))
    lines = LineProblem(g=g, G=G, B=B, m=1.0, M=B, k_min=1, k_max=k)
    found = solve_count(lines, k, Deadline.after(60.0))
    assert found.upper_us - found.lower_us <= CLOSE * found.upper_us
