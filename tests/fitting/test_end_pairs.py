"""fitting/end_pairs.py: two sizes at an end that switched are a range, and few are invented."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.fit import FitMethod, FitOptions, StageFit, Verdict
from domain.uncertain_fit import uncertain_model
from fitting import fit, read
from fitting.centres import centres_of
from fitting.ranges import find_ends
from fitting.samples import sort_samples
from fitting.stage import fit_stage
from tests.support.counts import count
from tests.support.stage_samples import Floats

# The form of a published benchmark: bandwidth switches in its last two sizes.
SWITCHED = """message_bytes,latency_us
2048,6.4
4096,11.5
8192,21.9
16384,42.7
32768,84.3
65536,167.5
131072,333.9
262144,20.5
524288,31.0
"""
ROWS = [row.split(",") for row in SWITCHED.split()[1:]]
SIZES, TIMES = [int(size) for size, _ in ROWS], [float(time) for _, time in ROWS]
BOTH = (
    [2**k for k in range(11, 22)],
    [
        *(1.0, 1.1),
        *(20.0 + 0.1 * 2**k for k in range(13, 20)),
        *(3e4, 5e4),
    ],
)
ELEVEN = np.array([2.0**k for k in range(10, 21)])


def fitted(sizes: list[int], times: list[float], **options: object) -> StageFit:
    return fit_stage("copy", sizes, times, FitOptions(**options))[0]  # type: ignore[arg-type]


def rows(seed: int, x: Floats, y: Floats, repetitions: int = 20) -> tuple[list[int], list[float]]:
    """Repetitions of these times, with 2 % of noise."""
    random = np.random.default_rng(seed)
    times = np.tile(y, repetitions) * random.normal(1.0, 0.02, len(y) * repetitions)
    return np.tile(x, repetitions).astype(np.int64).tolist(), times.tolist()


def ends(stage: StageFit) -> list[int]:
    return [line.to_bytes for line in stage.lines[:-1]]


class TestPairs:
    def test_a_switch_in_the_last_two_sizes(self) -> None:
        """Both lines as they are, the pair's weak."""
        found = fit([read(SWITCHED.encode())], FitOptions(as_stage="link"))
        left, right = found.stages[0].lines
        assert left.overhead_us == pytest.approx(1.19, rel=0.03)
        assert left.ns_per_byte == pytest.approx(2.538, rel=0.03)
        assert right.overhead_us == pytest.approx(10.0, rel=0.03)
        assert right.ns_per_byte == pytest.approx(0.0401, rel=0.03)
        assert (left.to_bytes, right.from_bytes, right.to_bytes) == (131072, 262144, 524288)
        assert left.overhead_verdict is left.ns_per_byte_verdict is Verdict.SUPPORTED
        assert right.overhead_verdict is right.ns_per_byte_verdict is Verdict.WEAK
        assert uncertain_model(found) is not None

    @pytest.mark.parametrize("first", [1, 2, 3])
    def test_whatever_else_was_measured(self, first: int) -> None:
        """Down to four sizes on the other line."""
        left, right = fitted(SIZES[first:], TIMES[first:]).lines
        assert left.ns_per_byte == pytest.approx(2.538, rel=0.03)
        assert right.ns_per_byte == pytest.approx(0.0401, rel=0.03)

    def test_the_first_two_and_the_last_two(self) -> None:
        stage = fitted(*BOTH)
        assert ends(stage) == [4096, 524288]
        assert stage.lines[1].ns_per_byte == pytest.approx(100.0)

    @pytest.mark.parametrize("method", [FitMethod.WEIGHTED, FitMethod.ORDINARY])
    def test_by_other_methods(self, method: FitMethod) -> None:
        stage = fitted(SIZES, TIMES, method=method)
        assert ends(stage) == [131072]

    def test_no_more_ranges_than_allowed(self) -> None:
        stage, notices = fit_stage("copy", *BOTH, FitOptions(max_ranges=2))
        assert ends(stage) == [524288]
        assert "more_ranges_supported" in [notice.code for notice in notices]

    @pytest.mark.parametrize("slope", [1.6, 2.5])
    @pytest.mark.parametrize("above", [2, 3])
    def test_a_cost_that_rises_above_the_last_sizes(self, slope: float, above: int) -> None:
        """In each of 20 files; no size is 35 % off, where a line below 0 were the best."""
        for seed in range(count(400)):
            random = np.random.default_rng([31, seed])
            a, b = np.exp(random.uniform(np.log([5.0, 3e-4]), np.log([60.0, 3e-3])))
            edge = ELEVEN[-above - 1] * random.choice([1.0, 2.0**0.5])
            y = a + b * ELEVEN + np.maximum(ELEVEN - edge, 0.0) * b * (slope - 1.0)
            stage = fitted(*rows(seed, ELEVEN, y))
            assert len(stage.lines) == 2
            off = [stage.to_stage().time_us(int(x)) / t for x, t in zip(ELEVEN, y, strict=True)]
            assert np.max(np.abs(np.array(off) - 1.0)) <= 0.35

    def test_its_interval_says_that_two_sizes_determine_little(self) -> None:
        """Twenty repetitions without a deviation do not make the pair's line a sure one."""
        y = 10.0 + ELEVEN / 1000.0
        y[-2:] *= 2.0
        pair = fitted(*rows(1, ELEVEN, y)).lines[-1]
        assert pair.from_bytes == 524288
        assert pair.ns_per_byte_std_error >= 0.05 * pair.ns_per_byte


class TestOneSizeAlone:
    @pytest.mark.parametrize("first", [0, 1, 2, 3])
    def test_it_is_no_range_and_does_not_draw_the_line_to_it(self, first: int) -> None:
        """Also where it is far below the others, whose relative residuals from it are large."""
        stage, notices = fit_stage("copy", SIZES[first:8], TIMES[first:8], FitOptions())
        (line,) = stage.lines
        assert line.ns_per_byte == pytest.approx(2.538, rel=0.03)
        told = {notice.code: notice.detail for notice in notices}
        assert (
            "256 KiB is off alone, and what is above was not measured" in told["sizes_off_the_line"]
        )
        assert stage.sizes[-1].relative_residual < -0.9

    def test_the_least_size(self) -> None:
        y = 10.0 + ELEVEN / 1000.0
        y[0] *= 1.6
        stage, notices = fit_stage("copy", *rows(2, ELEVEN, y), FitOptions())
        told = {notice.code: notice.detail for notice in notices}
        assert len(stage.lines) == 1
        assert "1 KiB is off alone, and what is below" in told["sizes_off_the_line"]


class TestNoneIsInvented:
    @pytest.mark.parametrize("repetitions", [1, 3, 20])
    @pytest.mark.parametrize("deviation", [0.0, 0.02, 0.08])
    def test_on_lines(self, repetitions: int, deviation: float) -> None:
        """In 97 % of files and more, of 6 to 20 sizes, a tenth of the times outliers."""
        random = np.random.default_rng([repetitions, round(100 * deviation)])
        invented, files = 0, count(1000)
        for _ in range(files):
            m = int(random.integers(6, 21))
            x = np.unique(np.round(64.0 * random.choice([1.5, 2.0, 4.0]) ** np.arange(m)))
            y = (random.uniform(1.0, 50.0) + x / random.uniform(100.0, 5000.0)) * random.lognormal(
                0.0, deviation, len(x)
            )
            x, y = np.tile(x, repetitions), np.tile(y, repetitions)
            y = y * random.lognormal(0.0, 0.03, len(y))
            if repetitions > 1:
                y *= np.where(random.random(len(y)) < 0.1, random.uniform(2.0, 8.0, len(y)), 1.0)
            samples = sort_samples(x.astype(np.int64).tolist(), y.tolist())
            places = find_ends(samples, centres_of(samples), 12).places
            last = len(samples.sizes) - 3
            invented += bool({1, last} & set(places))
        assert invented <= max(1, 0.03 * files)

    @given(st.lists(st.floats(1e-3, 1e6), min_size=6, max_size=20))
    def test_any_times(self, times: list[float]) -> None:
        """Ranges have two sizes at an end, three elsewhere, and everything is finite."""
        stage = fitted([1024 * (at + 1) for at in range(len(times))], times)
        widths = [
            sum(line.from_bytes <= size.message_bytes <= line.to_bytes for size in stage.sizes)
            for line in stage.lines
        ]
        assert all(width >= 3 for width in widths[1:-1])
        assert min(widths[0], widths[-1]) >= 2
        for line in stage.lines:
            assert np.isfinite([*(line.covariance or ()), *line.overhead_us_interval]).all()
