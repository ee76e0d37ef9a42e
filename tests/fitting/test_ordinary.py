"""fitting/ordinary.py: least squares against two other implementations, clipping."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from domain.fit import FitMethod, FitOptions, FitShape, LineFit, StageFit
from domain.solution import Notice
from fitting.stage import fit_stage
from tests.support.counts import count

SIZES = [64, 256, 1024, 4096, 16384, 65536]
ORDINARY = FitOptions(FitMethod.ORDINARY, FitShape.LINE)


def fitted(
    sizes: Sequence[int], times: Sequence[float]
) -> tuple[StageFit, LineFit, tuple[Notice, ...]]:
    stage, notices = fit_stage("copy", sizes, times, ORDINARY)
    (line,) = stage.lines
    return stage, line, notices


def noisy(a: float, b: float, *, repeats: int = 20, seed: int = 7) -> tuple[list[int], list[float]]:
    random = np.random.default_rng(seed)
    sizes = np.repeat(SIZES, repeats)
    times = np.maximum(0.0, a + b * sizes + random.normal(0.0, 0.5, len(sizes)))
    return sizes.tolist(), times.tolist()


class TestAgainstOtherImplementations:
    def test_every_figure_equals_scipy_linregress(self) -> None:
        from scipy import stats  # a second of every process that looks for tests

        sizes, times = noisy(8.0, 0.0113)
        stage, fit, _ = fitted(sizes, times)
        other = stats.linregress(sizes, times)
        half = stats.t.ppf(0.975, len(sizes) - 2)
        assert fit.overhead_us == pytest.approx(other.intercept, rel=1e-10)
        assert fit.ns_per_byte == pytest.approx(other.slope * 1000, rel=1e-10)
        assert fit.overhead_std_error_us == pytest.approx(other.intercept_stderr, rel=1e-9)
        assert fit.ns_per_byte_std_error == pytest.approx(other.stderr * 1000, rel=1e-9)
        assert stage.r_squared == pytest.approx(other.rvalue**2, rel=1e-9)
        assert fit.overhead_us_interval == pytest.approx(
            (
                other.intercept - half * other.intercept_stderr,
                other.intercept + half * other.intercept_stderr,
            )
        )
        assert fit.ns_per_byte_interval == pytest.approx(
            (1000 * (other.slope - half * other.stderr), 1000 * (other.slope + half * other.stderr))
        )
        assert fit.num_samples == len(sizes)
        assert fit.clipped == ()
        assert fit.correlation == pytest.approx(
            -np.mean(sizes) / np.sqrt(np.mean(np.square(np.array(sizes, dtype=float))))
        )
        off = np.array(times) - other.intercept - other.slope * np.array(sizes)
        assert stage.residual_std_us == pytest.approx(np.sqrt(off @ off / (len(sizes) - 2)))

    @given(
        st.lists(
            st.tuples(st.integers(1, 2**20), st.floats(0, 1e6, allow_nan=False)),
            min_size=3,
            max_size=40,
        ).filter(lambda rows: len({size for size, _ in rows}) > 1)
    )
    def test_the_residual_is_the_least_that_non_negative_parameters_allow(
        self, rows: list[tuple[int, float]]
    ) -> None:
        sizes, times = [size for size, _ in rows], [time for _, time in rows]
        _, fit, _ = fitted(sizes, times)
        x, y = np.array(sizes, dtype=float), np.array(times)
        scale = float(x.max())
        _, best = optimize.nnls(np.column_stack([np.ones_like(x), x / scale]), y)
        ours = float(np.linalg.norm(y - fit.overhead_us - fit.ns_per_byte / 1000.0 * x))
        assert fit.overhead_us >= 0
        assert fit.ns_per_byte >= 0
        assert ours <= float(best) + 1e-7 * (1.0 + float(y.max()) * len(rows) ** 0.5)

    def test_intervals_hold_the_truth_about_as_often_as_they_say(self) -> None:
        """95 %, within four binomial standard deviations."""
        draws, hits = count(2000), np.zeros(2)
        for seed in range(draws):
            _, fit, _ = fitted(*noisy(8.0, 0.0113, repeats=4, seed=seed))
            low, high = np.transpose([fit.overhead_us_interval, fit.ns_per_byte_interval])
            hits += (low <= [8.0, 11.3]) & (high >= [8.0, 11.3])
        allowed = 4.0 * (0.95 * 0.05 / draws) ** 0.5
        assert np.all(np.abs(hits / draws - 0.95) <= allowed)


class TestExactLines:
    def test_a_line_is_found_exactly_even_far_from_size_zero(self) -> None:
        sizes = [2**40 + step for step in (0, 2**20, 2**21, 2**22)]
        _, fit, _ = fitted(sizes, [5.0 + 0.001 * size for size in sizes])
        assert fit.clipped == ()
        assert fit.ns_per_byte == pytest.approx(1.0, rel=1e-9)
        assert fit.overhead_us == pytest.approx(5.0, abs=1.0)  # 1e-9 of the times, which are 1e9


class TestClipping:
    def test_a_negative_overhead_is_set_to_zero_and_the_slope_fitted_again(self) -> None:
        times = [max(0.0, 0.01 * size - 30.0) for size in SIZES]
        _, stage, notices = fitted(SIZES, times)
        x, y = np.array(SIZES, dtype=float), np.array(times)
        slope = float(x @ y / (x @ x))
        spread = float(np.sum((y - slope * x) ** 2) / (len(x) - 1))
        assert stage.overhead_us == 0.0
        assert stage.clipped == ("overhead_us",)
        assert stage.ns_per_byte == pytest.approx(1000 * slope)
        assert stage.ns_per_byte_std_error == pytest.approx(1000 * (spread / (x @ x)) ** 0.5)
        assert stage.overhead_us_interval[0] == 0.0 < stage.overhead_us_interval[1]
        assert "negative_overhead_clipped" in {notice.code for notice in notices}

    def test_a_negative_slope_is_set_to_zero_and_the_overhead_is_the_mean(self) -> None:
        times = [9.0, 8.5, 8.0, 7.5, 7.0, 6.5]
        _, stage, notices = fitted(SIZES, times)
        assert stage.ns_per_byte == 0.0
        assert stage.overhead_us == pytest.approx(np.mean(times))
        assert stage.overhead_std_error_us == pytest.approx(np.std(times, ddof=1) / 6**0.5)
        assert stage.clipped == ("ns_per_byte",)
        assert stage.ns_per_byte_interval[0] == 0.0 < stage.ns_per_byte_interval[1]
        assert "negative_ns_per_byte_clipped" in {notice.code for notice in notices}
