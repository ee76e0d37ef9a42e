"""fitting/size_times.py: means of all samples, and errors that hold what rows drawn anew show."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.fit import FitOptions, SizeFit
from fitting.stage import fit_stage
from tests.support.counts import count
from tests.support.stage_samples import POWERS, Draw, Floats, line


def sizes_of(sizes: list[int], times: list[float]) -> tuple[SizeFit, ...]:
    return fit_stage("copy", sizes, times, FitOptions())[0].sizes


def known(size: SizeFit) -> tuple[float, float, float]:
    assert size.mean_us is not None
    assert size.median_error_us is not None
    assert size.mean_error_us is not None
    return size.mean_us, size.median_error_us, size.mean_error_us


def two_kinds(random: np.random.Generator, y: Floats) -> Floats:
    """A quarter of the times twice as long."""
    out: Floats = y * np.where(random.random(len(y)) < 0.25, 2.0, 1.0)
    return out


class TestMeans:
    def test_a_time_counts_with_four_medians_at_most(self) -> None:
        times = [1.0, 1.0, 1.0, 100.0] + [2.0, 2.2, 2.4, 2.2] + [4.0] * 4
        found = sizes_of([1024] * 4 + [2048] * 4 + [4096] * 4, times)
        assert [known(size)[0] for size in found] == pytest.approx([7.0 / 4.0, 2.2, 4.0])

    def test_where_the_median_is_0_times_count_as_they_are(self) -> None:
        found = sizes_of([8] * 3 + [1024] * 3, [0.0, 0.0, 3.0, 10.0, 10.0, 10.0])
        assert known(found[0])[0] == 1.0

    def test_many_repetitions_that_few_stand_for(self) -> None:
        """100 000 samples are represented by 64 a size; the means are those of all."""
        random = np.random.default_rng(5)
        x = np.repeat([1024, 2048, 4096, 8192], 25_000)
        y = two_kinds(random, (10.0 + x / 1000.0) * random.lognormal(0.0, 0.3, len(x)))
        for size in sizes_of(x.tolist(), y.tolist()):
            own = y[x == size.message_bytes]
            mean = float(np.minimum(own, 4.0 * np.median(own)).mean())
            assert known(size)[0] == pytest.approx(mean, rel=1e-4)
            assert known(size)[2] == pytest.approx(own.std() / 25_000**0.5, rel=0.05)

    @pytest.mark.parametrize("repetitions", [1, 5, 100])
    def test_bins_of_many_sizes(self, repetitions: int) -> None:
        """1000 sizes share 200 bins; a mean is that of the bin's size, on a line and off it."""
        random = np.random.default_rng(6)
        x = np.tile(np.arange(1, 1001) * 512, repetitions)
        truth = 5.0 + x / 2000.0
        y = two_kinds(random, truth * random.normal(1.0, 0.02, len(x)))
        found = sizes_of(x.tolist(), y.tolist())
        assert len(found) <= 201
        off = [known(size)[0] / (5.0 + size.message_bytes / 2000.0) - 1.25 for size in found]
        assert np.mean(off) == pytest.approx(0.0, abs=0.03)
        far = np.abs(off) / [known(size)[2] / size.fitted_us for size in found]
        assert np.mean(far < 2.0) >= 0.85


class TestErrors:
    @pytest.mark.parametrize("repetitions", [2, 3, 5, 10, 20, 100])
    def test_they_are_what_files_measured_anew_scatter_by(self, repetitions: int) -> None:
        """Within a third, in the middle of 40 files."""
        draws = count(800)
        found = np.array(
            [
                [(size.median_us, *known(size)) for size in sizes_of(*draw.samples(truth, seed))]
                for seed in range(draws)
                for draw in [Draw(POWERS, repetitions, outliers=0.0, noise=0.05)]
                for truth in [line(20.0, 2.0)]
            ]
        )
        scatter = found[:, :, :2].std(axis=0) / np.median(found[:, :, 2:], axis=0)
        assert np.median(scatter, axis=0) == pytest.approx([1.0, 1.0], abs=0.34)

    def test_two_kinds_of_times_move_the_mean_and_not_the_median(self) -> None:
        random = np.random.default_rng(8)
        x = np.tile(POWERS, 40)
        y = two_kinds(random, (20.0 + x / 500.0) * random.normal(1.0, 0.02, len(x)))
        found = np.array([known(size) for size in sizes_of(x.tolist(), y.tolist())])
        truth = 20.0 + np.array(POWERS) / 500.0
        assert np.median(found[:, 0] / truth) == pytest.approx(1.25, rel=0.03)
        assert np.median(found[:, 2] / truth) == pytest.approx(0.43 / 40**0.5, rel=0.1)
        assert np.median(found[:, 1] / truth) <= 0.01

    def test_one_time_a_size_takes_the_scatter_around_chords(self) -> None:
        ratios = []
        for seed in range(count(800)):
            draw = Draw(POWERS, 1, outliers=0.0, noise=0.04)
            sizes = sizes_of(*draw.samples(line(20.0, 2.0), seed))
            for size in sizes:
                assert size.mean_us == size.median_us
                assert size.mean_error_us == size.median_error_us
            ratios.append(np.median([known(size)[1] / size.median_us for size in sizes]))
        assert np.median(ratios) == pytest.approx(0.04, rel=0.3)

    def test_two_equal_times_are_not_known_exactly(self) -> None:
        random = np.random.default_rng(9)
        sizes, times = Draw(POWERS, 2, outliers=0.0).samples(line(20.0, 2.0), 9)
        times = [round(time, 1) for time in times]
        times[3] = times[3 + len(POWERS)]
        assert known(sizes_of(sizes, times)[3])[1] >= 0.002 * times[3] * random.uniform(0.9, 1.0)

    def test_times_that_follow_each_other_widen_them(self) -> None:
        """Successive times of a correlation of 0.9 tell less than so many independent ones."""
        random = np.random.default_rng(10)
        sizes, times, alone = list[int](), list[float](), list[float]()
        for size in POWERS:
            off = 0.0
            for _ in range(40):
                off = 0.9 * off + random.normal(0.0, 0.02)
                sizes.append(size)
                times.append((20.0 + size / 500.0) * (1.0 + off))
            alone.append(float(np.std(times[-40:]) / 40**0.5))
        errors = [known(size)[2] for size in sizes_of(sizes, times)]
        assert np.median(np.array(errors) / alone) >= 2.5

    def test_a_clock_that_ticks_errs_in_all_repetitions(self) -> None:
        """Equal readings of a clock of 4 µs are known to a part of its step alone."""
        x = np.tile(POWERS, 20)
        y = np.round((50.0 + x / 100.0) / 4.0 + np.random.default_rng(2).uniform(-0.2, 0.2)) * 4.0
        y[3] += 4.0
        for size in sizes_of(x.tolist(), y.tolist()):
            assert known(size)[1] >= 1.15

    @given(
        st.lists(st.floats(0.0, 1e9) | st.sampled_from([0.0, 1.0]), min_size=6, max_size=60),
        st.integers(2, 6),
    )
    def test_any_times(self, times: list[float], sizes: int) -> None:
        """A mean lies within the times; errors are 0 for equal repeated times alone."""
        x = [1024 * (at % sizes + 1) for at in range(len(times))]
        for size in sizes_of(x, times):
            own = [time for at, time in zip(x, times, strict=True) if at == size.message_bytes]
            mean_us, *errors = known(size)
            assert min(own) * (1 - 1e-9) <= mean_us <= max(own) * (1 + 1e-9)
            assert all(0.0 <= error <= 5.0 * max(times) for error in errors)
            if len(set(own)) > 1 and own.count(own[0]) < len(own) and min(own) > 0.0:
                assert errors[1] > 0.0
