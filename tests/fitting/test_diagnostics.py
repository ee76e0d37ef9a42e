"""fitting/diagnostics.py: each notice on data that has it, and on data that does not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from domain.fit import FitMethod, FitOptions, FitShape, StageFit, Verdict
from domain.solution import Notice
from fitting.stage import fit_stage
from tests.support.counts import count
from tests.support.stage_samples import POWERS, Draw, Floats, line, switch

CLEAN = Draw(POWERS, repetitions=10, outliers=0.0)
LINE = FitOptions(shape=FitShape.LINE)


def fitted(
    sizes: list[int], times: list[float], options: FitOptions | None = None
) -> tuple[StageFit, dict[str, str]]:
    stage, notices = fit_stage("copy", sizes, times, options or FitOptions())
    assert all(notice.detail.startswith("stage copy: ") for notice in notices)
    return stage, {notice.code: notice.detail for notice in notices}


def stated(
    truth: Callable[[Floats], Floats], draw: Draw = CLEAN, options: FitOptions | None = None
) -> dict[str, str]:
    return fitted(*draw.samples(truth, 11), options)[1]


class TestClean:
    @pytest.mark.parametrize("truth", [(22.0, 11.3), (0.5, 0.3), (500.0, 1.0)])
    @pytest.mark.parametrize("repetitions", [5, 20])
    def test_clean_lines_need_no_word(self, truth: tuple[float, float], repetitions: int) -> None:
        draw = Draw(POWERS, repetitions, outliers=0.0)
        draws = [fitted(*draw.samples(line(*truth), seed))[1] for seed in range(count(200))]
        assert np.mean([codes == {} for codes in draws]) >= 0.95

    def test_with_outliers_the_only_word_is_of_outliers(self) -> None:
        draw = Draw(POWERS)
        draws = [fitted(*draw.samples(line(22.0, 11.3), at))[1] for at in range(count(200))]
        assert np.mean([list(codes) == ["outliers"] for codes in draws]) >= 0.95


class TestSupport:
    def test_too_few_sizes(self) -> None:
        few = stated(line(22.0, 11.3), Draw(POWERS[::4], 10, outliers=0.0))
        assert "4 message sizes" in few["too_few_sizes"]
        assert "too_few_sizes" not in stated(line(22.0, 11.3), Draw(POWERS[::3], 10, outliers=0.0))

    @pytest.mark.parametrize(("repetitions", "word"), [(1, "once"), (2, "twice")])
    def test_too_few_repetitions(self, repetitions: int, word: str) -> None:
        few = stated(line(22.0, 11.3), Draw(POWERS, repetitions, outliers=0.0))
        assert word in few["too_few_repetitions"]

    def test_sizes_at_random_are_repetitions_of_each_other(self) -> None:
        sizes = tuple(range(1000, 100_000, 60))
        assert "too_few_repetitions" not in stated(line(22.0, 11.3), Draw(sizes, 1, outliers=0.0))

    def test_range_too_narrow(self) -> None:
        close = Draw(tuple(range(60_000, 66_000, 1000)), 10, outliers=0.0)
        codes = stated(line(22.0, 11.3), close)
        assert "range_too_narrow" in codes
        assert "overhead_not_supported" not in codes  # one reason is enough
        wide = Draw(tuple(range(60_000, 66_000, 1000)), 10, noise=1e-5, outliers=0.0)
        assert "range_too_narrow" not in stated(line(22.0, 11.3), wide)

    def test_overhead_not_supported(self) -> None:
        large = Draw(tuple(2**k for k in range(16, 24)), 10, noise=0.1, outliers=0.0)
        stage, codes = fitted(*large.samples(line(60.0, 11.3), 2))
        low, high = stage.lines[0].overhead_us_interval
        assert low <= 60.0 <= high
        assert stage.lines[0].overhead_verdict in (Verdict.WEAK, Verdict.UNSUPPORTED)
        assert stage.lines[0].ns_per_byte_verdict is Verdict.SUPPORTED
        assert "may be anything from" in codes["overhead_not_supported"]

    def test_cost_not_supported(self) -> None:
        small = Draw(tuple(2**k for k in range(4, 12)), 10, noise=0.1, outliers=0.0)
        stage, codes = fitted(*small.samples(line(300.0, 20.0), 3))
        assert stage.lines[0].ns_per_byte_verdict in (Verdict.WEAK, Verdict.UNSUPPORTED)
        assert stage.lines[0].overhead_verdict is Verdict.SUPPORTED
        assert {"cost_not_supported", "negative_ns_per_byte_clipped"} & set(codes)

    def test_what_is_known_to_be_next_to_nothing_is_supported(self) -> None:
        """An overhead of 0 whose interval ends at a trifle needs no word."""
        stage, codes = fitted(
            *Draw(POWERS, 20, noise=0.002, outliers=0.0).samples(line(0, 11.3), 1)
        )
        assert stage.lines[0].overhead_us_interval[1] < 0.02 * 0.0113 * 64
        assert stage.lines[0].overhead_verdict is Verdict.SUPPORTED
        assert "overhead_not_supported" not in codes

    def test_negative_overhead_clipped(self) -> None:
        codes = stated(lambda x: np.maximum(0.0113 * x - 0.5, 0.01), CLEAN, LINE)
        assert "negative_overhead_clipped" in codes
        assert "negative_overhead_clipped" not in stated(line(22.0, 11.3))

    def test_negative_ns_per_byte_clipped(self) -> None:
        stage, codes = fitted(*CLEAN.samples(lambda x: 30.0 - np.log2(x), 1), LINE)
        assert "negative_ns_per_byte_clipped" in codes
        assert stage.lines[0].ns_per_byte == 0.0
        assert (
            stage.lines[0].ns_per_byte_interval[0] == 0.0 < stage.lines[0].ns_per_byte_interval[1]
        )
        assert "negative_ns_per_byte_clipped" not in stated(line(22.0, 11.3))

    @pytest.mark.parametrize("kind", ["lognormal", "exponential", "uniform"])
    def test_noise_decides_nothing(self, kind: str) -> None:
        """Times that have nothing to do with sizes: almost always said, never more than hinted."""
        hits = []
        for seed in range(count(200)):
            random = np.random.default_rng(seed)
            times = {
                "lognormal": lambda random=random: random.lognormal(1.0, 1.5, 75),
                "exponential": lambda random=random: random.exponential(10.0, 75),
                "uniform": lambda random=random: random.uniform(0.0, 100.0, 75),
            }[kind]()
            stage, codes = fitted(list(POWERS) * 5, times.tolist())
            both = {(part.overhead_verdict, part.ns_per_byte_verdict) for part in stage.lines}
            hits.append("noise_decides_nothing" in codes)
            assert not hits[-1] or both == {(Verdict.UNSUPPORTED, Verdict.UNSUPPORTED)}
        assert np.mean(hits) >= 0.8

    def test_a_noisy_stage_that_depends_on_size_is_not_nothing(self) -> None:
        noisy = Draw(POWERS, 20, noise=0.4, outliers=0.0)
        draws = [fitted(*noisy.samples(line(22.0, 11.3), at))[1] for at in range(count(100))]
        assert not any("noise_decides_nothing" in codes for codes in draws)


class TestShape:
    def test_curvature_of_one_line(self) -> None:
        up = stated(lambda x: 5.0 + 0.01 * x**1.3, CLEAN, LINE)
        assert "both ends take more" in up["curvature"]
        down = stated(lambda x: 5.0 * x**0.3, CLEAN, LINE)
        assert "both ends take less" in down["curvature"]
        assert "curvature" not in stated(line(22.0, 11.3), CLEAN, LINE)

    def test_curvature_makes_a_verdict_weak(self) -> None:
        stage, _ = fitted(*CLEAN.samples(lambda x: 5.0 * x**0.3, 1), LINE)
        assert stage.lines[0].overhead_verdict is not Verdict.SUPPORTED

    def test_sizes_off_the_line(self) -> None:
        codes = stated(lambda x: (22.0 + 0.0113 * x) * np.where(x == 4096, 1.3, 1.0), CLEAN, LINE)
        assert "times of 4 KiB (+3" in codes["sizes_off_the_line"]
        assert "curvature" not in codes

    def test_not_monotone(self) -> None:
        codes = stated(lambda x: (22.0 + 0.0113 * x) * np.where(x == 64, 2.0, 1.0))
        assert "64 B takes longer (45" in codes["not_monotone"]
        assert "not_monotone" not in stated(line(22.0, 0.0))

    def test_switch_found(self) -> None:
        codes = stated(switch)
        assert "2 fit ranges" in codes["switch_found"]
        assert "between 8 KiB and 16 KiB (at 16 KiB from 33" in codes["switch_found"]
        assert "switch_found" not in stated(line(22.0, 11.3))
        assert "switch_found" not in stated(switch, CLEAN, LINE)

    def test_a_switch_down_is_no_fall(self) -> None:
        codes = stated(lambda x: np.where(x <= 8192, 10.0 + 0.05 * x, 100.0 + 0.0113 * x))
        assert "switch_found" in codes
        assert "not_monotone" not in codes

    def test_a_knee_is_where_the_lines_meet(self) -> None:
        knee = stated(lambda x: 10.0 + 0.005 * x - 0.004 * np.maximum(0.0, x - 50_000.0))
        assert "where both lines meet" in knee["switch_found"]


class TestSingleTimes:
    def test_quantised_clock(self) -> None:
        sizes, times = Draw(POWERS, 20, noise=0.1, outliers=0.0).samples(line(3.0, 0.02), 1)
        codes = fitted(sizes, np.round(times).tolist())[1]
        assert "the clock steps by 1 µs" in codes["quantised_clock"]
        assert "quantised_clock" not in fitted(sizes, times)[1]
        assert "quantised_clock" not in fitted(sizes, np.round(times, 3).tolist())[1]

    def test_a_coarse_clock_widens_the_interval(self) -> None:
        """Of 200 clocks that step by 1 µs, nearly all intervals hold the truth."""
        hits = []
        for seed in range(count(200)):
            sizes, times = Draw(POWERS, 20, outliers=0.0).samples(line(7.3, 11.3), seed)
            part = fitted(sizes, np.round(times).tolist())[0].lines[0]
            hits.append(part.overhead_us_interval[0] <= 7.3 <= part.overhead_us_interval[1])
        assert np.mean(hits) >= 0.9

    @pytest.mark.parametrize("method", FitMethod)
    def test_outliers(self, method: FitMethod) -> None:
        options = FitOptions(method, FitShape.LINE)
        codes = stated(line(22.0, 11.3), Draw(POWERS), options)
        assert "of 300 times (2" in codes["outliers"]
        robust = method is FitMethod.ROBUST
        assert ("weighted down" if robust else "count in full") in codes["outliers"]
        assert "outliers" not in stated(line(22.0, 11.3), CLEAN, options)

    def test_warm_up(self) -> None:
        sizes, times = Draw(POWERS, 10, outliers=0.1).samples(line(22.0, 11.3), 1)
        slow = [time * 1.4 if row < 15 else time for row, time in enumerate(times)]
        assert "at 15 of 15 sizes" in fitted(sizes, slow)[1]["warm_up"]
        assert "warm_up" not in fitted(sizes, times)[1]

    def test_warm_up_is_not_invented_among_outliers(self) -> None:
        draw = Draw(POWERS, 10)
        draws = [fitted(*draw.samples(line(22.0, 11.3), at))[1] for at in range(count(500))]
        assert np.mean(["warm_up" in codes for codes in draws]) <= 0.01


class TestOrder:
    def test_at_most_six_and_what_matters_first(self) -> None:
        random = np.random.default_rng(1)
        x = np.tile(np.array(POWERS, dtype=float), 10)
        y = (
            switch(x)
            * np.where(x == 64, 3.0, 1.0)
            * (1.0 + 0.3 * np.abs(random.standard_cauchy(150)))
        )
        y[:15] *= 1.5
        _, notices = fit_stage("copy", x.astype(int).tolist(), y.tolist(), FitOptions())
        assert 1 <= len(notices) <= 8
        assert all(isinstance(notice, Notice) for notice in notices)
