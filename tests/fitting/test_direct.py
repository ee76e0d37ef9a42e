"""fitting/direct.py: least squares against two other implementations, clipping, refusals."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from domain.errors import PoorFit
from domain.measurement import DirectTrace, StageFit
from fitting.direct import fit_direct
from fitting.readers.csv_direct import read_direct_csv

EXAMPLE = Path(__file__).parents[2] / "examples" / "local-path-direct.csv"
SIZES = [64, 256, 1024, 4096, 16384, 65536]


def trace_of(sizes: Sequence[int], *stages: Sequence[float]) -> DirectTrace:
    names = tuple(f"stage {place}" for place in range(len(stages)))
    return DirectTrace(names, tuple(sizes), (0,) * len(sizes), tuple(tuple(s) for s in stages))


def one_stage(sizes: Sequence[int], times: Sequence[float]) -> StageFit:
    return fit_direct(trace_of(sizes, times)).stages[0]


def noisy(a: float, b: float, *, repeats: int = 20, seed: int = 7) -> tuple[list[int], list[float]]:
    random = np.random.default_rng(seed)
    sizes = np.repeat(SIZES, repeats)
    times = np.maximum(0.0, a + b * sizes + random.normal(0.0, 0.5, len(sizes)))
    return sizes.tolist(), times.tolist()


class TestAgainstOtherImplementations:
    def test_every_figure_equals_scipy_linregress(self) -> None:
        sizes, times = noisy(8.0, 0.0113)
        fit, other = one_stage(sizes, times), stats.linregress(sizes, times)
        half = stats.t.ppf(0.975, len(sizes) - 2)
        assert fit.overhead_us == pytest.approx(other.intercept, rel=1e-10)
        assert fit.ns_per_byte == pytest.approx(other.slope * 1000, rel=1e-10)
        assert fit.overhead_std_error_us == pytest.approx(other.intercept_stderr, rel=1e-9)
        assert fit.ns_per_byte_std_error == pytest.approx(other.stderr * 1000, rel=1e-9)
        assert fit.r_squared == pytest.approx(other.rvalue**2, rel=1e-9)
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

    def test_the_measured_example_equals_numpy_lstsq_where_nothing_is_clipped(self) -> None:
        trace = read_direct_csv(EXAMPLE.read_text(encoding="utf-8"))
        fit = fit_direct(trace)
        x = np.array(trace.message_bytes, dtype=float)
        free = 0
        for stage, times in zip(fit.stages, trace.stage_us, strict=True):
            design = np.column_stack([np.ones_like(x), x / x.max()])
            (a, scaled), rss, _, _ = np.linalg.lstsq(design, np.array(times), rcond=None)
            if stage.clipped:
                assert a < 0
                continue
            free += 1
            assert stage.overhead_us == pytest.approx(a, rel=1e-8)
            assert stage.ns_per_byte == pytest.approx(1000 * scaled / x.max(), rel=1e-8)
            assert stage.residual_std_us == pytest.approx((rss[0] / (len(x) - 2)) ** 0.5, rel=1e-8)
        assert free >= 2

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
        fit = one_stage(sizes, times)
        x, y = np.array(sizes, dtype=float), np.array(times)
        scale = float(x.max())
        _, best = optimize.nnls(np.column_stack([np.ones_like(x), x / scale]), y)
        ours = float(np.linalg.norm(y - fit.overhead_us - fit.ns_per_byte / 1000.0 * x))
        assert fit.overhead_us >= 0
        assert fit.ns_per_byte >= 0
        assert ours <= float(best) + 1e-7 * (1.0 + float(y.max()) * len(rows) ** 0.5)

    def test_intervals_hold_the_truth_about_as_often_as_they_say(self) -> None:
        """95 % of 400 data sets: within four binomial standard deviations (1.09 points each)."""
        hits_a = hits_b = 0
        for seed in range(400):
            fit = one_stage(*noisy(8.0, 0.0113, repeats=4, seed=seed))
            hits_a += fit.overhead_us_interval[0] <= 8.0 <= fit.overhead_us_interval[1]
            hits_b += fit.ns_per_byte_interval[0] <= 11.3 <= fit.ns_per_byte_interval[1]
        assert 0.906 <= hits_a / 400 <= 0.994
        assert 0.906 <= hits_b / 400 <= 0.994


class TestExactLines:
    def test_a_line_is_found_exactly_even_far_from_size_zero(self) -> None:
        sizes = [2**40 + step for step in (0, 2**20, 2**21, 2**22)]
        fit = one_stage(sizes, [5.0 + 0.001 * size for size in sizes])
        assert fit.clipped == ()
        assert fit.ns_per_byte == pytest.approx(1.0, rel=1e-9)
        assert fit.overhead_us == pytest.approx(5.0, abs=1.0)  # 1e-9 of the times, which are 1e9

    @pytest.mark.parametrize(("a", "b"), [(3.0, 0.01), (0.0, 0.01), (3.0, 0.0), (0.0, 0.0)])
    def test_noiseless_data_have_no_error_and_no_notice(self, a: float, b: float) -> None:
        fit = fit_direct(trace_of(SIZES, [a + b * size for size in SIZES]))
        stage = fit.stages[0]
        assert stage.overhead_us == pytest.approx(a, abs=1e-9)
        assert stage.ns_per_byte == pytest.approx(1000 * b, abs=1e-9)
        assert stage.residual_std_us == pytest.approx(0.0, abs=1e-9)
        assert stage.r_squared == pytest.approx(1.0)
        assert fit.notices == ()

    def test_the_fitted_stage_is_a_stage_of_the_domain(self) -> None:
        fit = fit_direct(trace_of(SIZES, [2.0 + 0.5 * size for size in SIZES]))
        pipeline = fit.to_pipeline()
        assert pipeline.stages[0].time_us(1000) == pytest.approx(502.0)


class TestClipping:
    def test_a_negative_overhead_is_set_to_zero_and_the_slope_fitted_again(self) -> None:
        times = [max(0.0, 0.01 * size - 30.0) for size in SIZES]
        fit = fit_direct(trace_of(SIZES, times))
        stage = fit.stages[0]
        x, y = np.array(SIZES, dtype=float), np.array(times)
        slope = float(x @ y / (x @ x))
        spread = float(np.sum((y - slope * x) ** 2) / (len(x) - 1))
        assert stage.overhead_us == 0.0
        assert stage.clipped == ("overhead_us",)
        assert stage.ns_per_byte == pytest.approx(1000 * slope)
        assert stage.ns_per_byte_std_error == pytest.approx(1000 * (spread / (x @ x)) ** 0.5)
        assert stage.overhead_us_interval[0] == 0.0 < stage.overhead_us_interval[1]
        assert [notice.code for notice in fit.notices] == ["negative_overhead_clipped"]
        assert "stage 0" in fit.notices[0].detail

    def test_a_negative_slope_is_set_to_zero_and_the_overhead_is_the_mean(self) -> None:
        times = [9.0, 8.5, 8.0, 7.5, 7.0, 6.5]
        fit = fit_direct(trace_of(SIZES, times))
        stage = fit.stages[0]
        assert stage.ns_per_byte == 0.0
        assert stage.overhead_us == pytest.approx(np.mean(times))
        assert stage.overhead_std_error_us == pytest.approx(np.std(times, ddof=1) / 6**0.5)
        assert stage.clipped == ("ns_per_byte",)
        assert stage.ns_per_byte_interval[0] == 0.0 < stage.ns_per_byte_interval[1]
        assert [notice.code for notice in fit.notices] == ["negative_ns_per_byte_clipped"]


class TestRefusals:
    def test_one_size_only_names_what_is_missing(self) -> None:
        with pytest.raises(PoorFit, match=r"64 B.*at least 2 distinct message sizes"):
            fit_direct(trace_of([64, 64, 64], [1.0, 1.1, 0.9]))

    def test_two_rows_leave_no_error_to_estimate(self) -> None:
        with pytest.raises(PoorFit, match="at least 3 rows, got 2"):
            fit_direct(trace_of([64, 128], [1.0, 2.0]))

    def test_a_slope_beyond_what_a_stage_may_cost(self) -> None:
        with pytest.raises(PoorFit, match="are its times in µs"):
            fit_direct(trace_of([1, 2, 3], [0.0, 1e9, 2e9]))


class TestSaysBack:
    def test_what_was_understood(self) -> None:
        trace = read_direct_csv(EXAMPLE.read_text(encoding="utf-8"))
        said = dict(fit_direct(trace).understood)
        assert said["time_unit"] == "µs"
        assert (said["rows"], said["rows_per_size"]) == ("350", "25")
        assert said["sizes"] == "14: 64 B to 1 MiB"
        assert said["stages"].startswith("copy_in, crc32")

    def test_reading_does_not_load_numpy(self) -> None:
        """Only a fit does: whoever names this room pays nothing."""
        code = (
            "import sys, fitting.direct, fitting.readers.csv_direct;"
            "sys.exit('numpy' in sys.modules or 'scipy' in sys.modules)"
        )
        root = Path(__file__).parents[2]
        assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
