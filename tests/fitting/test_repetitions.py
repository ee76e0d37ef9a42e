"""How alike successive repetitions are, and the errors of means that follow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fitting.centres import centres_of
from fitting.repetitions import INDEPENDENT, Repetitions, variance_of_mean
from fitting.samples import SortedSamples, sort_samples
from tests.support.stage_samples import Floats

SIZES, REPETITIONS, NOISE = 18, 20, 0.05


def _noise(random: np.random.Generator, rho: float, n: int) -> Floats:
    fresh, out = random.standard_normal(n), np.zeros(n)
    out[0] = fresh[0]
    for at in range(1, n):
        out[at] = rho * out[at - 1] + fresh[at] * (1.0 - rho**2) ** 0.5
    return out


def _samples(seed: int, rho: float, *, swept: bool = False) -> SortedSamples:
    """All repetitions of a size one after the other, or many sweeps over all sizes."""
    z = _noise(np.random.default_rng([31, seed]), rho, SIZES * REPETITIONS)
    x = np.repeat(2 ** np.arange(4, 4 + SIZES), REPETITIONS)
    if swept:
        x = np.tile(2 ** np.arange(4, 4 + SIZES), REPETITIONS)
    return sort_samples(x.tolist(), ((10.0 + 0.005 * x) * (1.0 + NOISE * z)).tolist())


class TestCorrelation:
    """The estimate, from what is left around the mean of each size."""

    @pytest.mark.parametrize(("rho", "within"), [(0.3, 0.15), (0.6, 0.12), (0.9, 0.09)])
    def test_it_lies_between_both_bounds(self, rho: float, within: float) -> None:
        found = [_samples(seed, rho).repetitions for seed in range(60)]
        least, most = (
            np.array([getattr(one, n) for one in found]) for n in ("at_least", "at_most")
        )
        assert np.median(least) <= rho <= np.median(most) + 0.02
        assert np.median(most) - np.median(least) <= 2.0 * within
        assert all(one.in_order for one in found)

    def test_independent_times_show_none(self) -> None:
        found = [_samples(seed, 0.0).repetitions for seed in range(60)]
        assert sum(one.at_most > 0.0 for one in found) <= 6

    def test_sweeps_say_nothing_of_repetitions(self) -> None:
        """No repetition follows another one of its size."""
        found = _samples(1, 0.9, swept=True).repetitions
        assert found == replace(INDEPENDENT, common_error=found.common_error)

    def test_few_repetitions_say_nothing(self) -> None:
        x = np.repeat([64, 128, 256, 512], 5)
        times = np.linspace(10.0, 12.0, 20)
        assert sort_samples(x.tolist(), times.tolist()).repetitions == INDEPENDENT

    def test_bursts_of_outliers_are_none(self) -> None:
        random = np.random.default_rng(5)
        x = np.repeat(2 ** np.arange(4, 22), 20)
        y = (10.0 + 0.005 * x) * (1.0 + 0.02 * random.standard_normal(360))
        for start in (40, 100, 200, 300):
            y[start : start + 8] *= 3.0
        assert sort_samples(x.tolist(), y.tolist()).repetitions.at_least == 0.0

    def test_clock_ticks_and_equal_times_pass(self) -> None:
        x = np.repeat([64, 128, 256, 512], 10)
        for times in ([12.0] * 40, [0.0] * 40, [12.0, 12.0, 12.0, 13.0] * 10):
            assert sort_samples(x.tolist(), times).repetitions.at_most == 0.0


class TestCommonError:
    """What all sizes are off by where they take turns."""

    @pytest.mark.parametrize("rho", [0.0, 0.8, 0.95, 0.99])
    def test_it_holds_the_mean_of_the_file(self, rho: float) -> None:
        """Said 90 %, beside the error that independent times would have."""
        held, independent = [], NOISE / (SIZES * REPETITIONS) ** 0.5
        for seed in range(100):
            z = _noise(np.random.default_rng([31, seed]), rho, SIZES * REPETITIONS)
            found = _samples(seed, rho, swept=True).repetitions.common_error
            held.append(abs(NOISE * z.mean()) <= 1.645 * np.hypot(found, independent))
        assert np.mean(held) >= 0.8

    def test_it_is_small_where_times_are_independent(self) -> None:
        found = [_samples(seed, 0.0, swept=True).repetitions.common_error for seed in range(60)]
        assert np.median(found) <= 1.5 * NOISE / (SIZES * REPETITIONS) ** 0.5

    def test_a_drift_is_off_by_what_batches_scatter(self) -> None:
        """Uniform over a width of 0.4, whose deviation is that over the root of 12."""
        x = np.tile(2 ** np.arange(4, 4 + SIZES), REPETITIONS)
        times = (10.0 + 0.005 * x) * np.linspace(0.8, 1.2, len(x))
        found = sort_samples(x.tolist(), times.tolist()).repetitions.common_error
        assert found == pytest.approx(0.4 / 12**0.5, rel=0.1)

    def test_few_or_equal_times_have_none(self) -> None:
        for times in ([12.0] * 16, [10.0, 11.0, 12.0, 13.0] * 4, [0.0] * 16):
            for turns in (3, 4):
                x = np.tile([64, 128, 256, 512], turns)
                found = sort_samples(x.tolist(), times[: len(x)]).repetitions
                assert found.common_error == 0.0


class TestErrors:
    """Errors of the means of sizes."""

    def test_the_variance_of_a_mean(self) -> None:
        """By its definition, the sum of all covariances."""
        apart = np.abs(np.arange(7)[:, None] - np.arange(7)[None, :])
        assert float(variance_of_mean(0.8, 7.0)) == pytest.approx((0.8**apart).sum() / 49.0)
        assert float(variance_of_mean(0.0, 7.0)) == pytest.approx(1.0 / 7.0)

    def test_means_of_neighbouring_sizes(self) -> None:
        """Their correlation, by its definition too."""
        n, rho = 6, 0.9
        covariance = rho ** np.abs(np.arange(3 * n)[:, None] - np.arange(3 * n)[None, :])
        means = np.kron(np.eye(3), np.full(n, 1.0 / n))
        expected = means @ covariance @ means.T
        found = Repetitions(rho, rho, in_order=True).alike(rho, float(n), 3)
        assert found == pytest.approx(expected[0] / expected[0, 0])
        assert Repetitions(rho, rho).alike(rho, float(n), 3).tolist() == [1.0, 0.0, 0.0]

    def test_errors_of_centres_are_those_of_the_means(self) -> None:
        """With 0.9 they are more than three times those of independent times."""
        off, least, most = [], [], []
        for seed in range(150):
            centres = centres_of(_samples(seed, 0.9))
            off.append((centres.z / (10.0 + 0.005 * centres.x) - 1.0) ** 2)
            least.append(centres.sure_errors())
            most.append(centres.errors())
        root = float(np.mean(off)) ** 0.5
        assert root > 3.0 * NOISE / REPETITIONS**0.5
        assert np.median(least) < root
        assert np.median(most) == pytest.approx(root, rel=0.2)
