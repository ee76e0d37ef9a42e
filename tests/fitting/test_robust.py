"""Robust lines: what they find under outliers, how often their intervals hold the truth."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import optimize

from domain.fit import FitMethod, FitOptions, FitShape, LineFit
from fitting.estimate import Between, Estimate, estimate_of, fitted_line
from fitting.line import solve
from fitting.samples import SortedSamples, sort_samples
from fitting.stage import fit_stage
from tests.support.counts import count, is_campaign
from tests.support.stage_samples import FIFTEEN, Draw, line

ONE_LINE = FitOptions(shape=FitShape.LINE)
TRUTHS = [(22.0, 11.3), (0.5, 11.3), (500.0, 1.0)]
DRAWS = {
    "20 repetitions, outliers": Draw(),
    "20 repetitions": Draw(outliers=0.0),
    "5 repetitions, outliers": Draw(repetitions=5),
    "5 repetitions": Draw(repetitions=5, outliers=0.0),
    "1 repetition": Draw(repetitions=1, outliers=0.0),
    "noise of 10 %": Draw(noise=0.1),
}


def alone(samples: SortedSamples) -> Estimate:
    """One line with the errors that noise within sizes gives it."""
    m = len(samples.start)
    between = Between(np.zeros((m, m)), 0, samples.start)
    line = fitted_line(samples, FitMethod.ROBUST)
    return estimate_of(samples, line, resolution_us=0.0, between=between)


@cache
def one_line(
    truth: tuple[float, float], draw: Draw, seed: int, method: FitMethod = FitMethod.ROBUST
) -> LineFit:
    sizes, times = draw.samples(line(*truth), seed)
    return fit_stage("copy", sizes, times, FitOptions(method, FitShape.LINE))[0].lines[0]


def errors(found: LineFit, truth: tuple[float, float]) -> tuple[float, float]:
    return abs(found.overhead_us / truth[0] - 1.0), abs(found.ns_per_byte / truth[1] - 1.0)


def covers(found: LineFit, truth: tuple[float, float]) -> tuple[bool, bool]:
    (a_low, a_high), (b_low, b_high) = found.overhead_us_interval, found.ns_per_byte_interval
    return a_low <= truth[0] <= a_high, b_low <= truth[1] <= b_high


class TestTruth:
    @pytest.mark.parametrize("truth", TRUTHS)
    def test_the_median_error_is_at_most_one_percent(self, truth: tuple[float, float]) -> None:
        """Five decades, 2 % noise, a quarter of the samples two to eight times as slow."""
        off = [errors(one_line(truth, Draw(), seed), truth) for seed in range(count(500))]
        assert np.median(off, axis=0).max() <= 0.01

    @pytest.mark.parametrize("name", DRAWS)
    def test_intervals_cover_the_truth(self, name: str) -> None:
        """90 to 99 % of 500 draws: of each truth and parameter, or of all in a short run."""
        hits = np.array(
            [
                [covers(one_line(truth, DRAWS[name], seed), truth) for seed in range(count(500))]
                for truth in TRUTHS
            ]
        ).mean(axis=1)
        shares = hits if is_campaign() else hits.mean(keepdims=True)
        assert shares.min() >= 0.90
        assert shares.max() <= 0.99

    def test_sizes_that_err_together_widen_the_intervals(self) -> None:
        """Each size is off by 5 % of its own, which repetitions cannot show."""
        truth, hits = (22.0, 11.3), np.zeros(2)
        for seed in range(count(500, share=10)):
            random = np.random.default_rng(seed)
            wrong = dict(zip(FIFTEEN, 1.0 + 0.05 * random.standard_normal(15), strict=True))
            sizes, times = Draw(outliers=0.0).samples(line(*truth), seed)
            moved = [time * wrong[size] for size, time in zip(sizes, times, strict=True)]
            hits += covers(fit_stage("copy", sizes, moved, ONE_LINE)[0].lines[0], truth)
        assert np.all(hits / count(500, share=10) >= 0.85)

    def test_each_method_is_itself(self) -> None:
        """With outliers only the robust line is near; without, weights make the difference."""
        truth = (22.0, 11.3)
        off = {
            (method, outliers): np.median(
                [
                    max(errors(one_line(truth, Draw(outliers=outliers), seed, method), truth))
                    for seed in range(count(200))
                ]
            )
            for method in FitMethod
            for outliers in (0.0, 0.25)
        }
        assert off[FitMethod.ROBUST, 0.25] < 0.01 < 0.2 < off[FitMethod.WEIGHTED, 0.25]
        assert off[FitMethod.WEIGHTED, 0.25] < off[FitMethod.ORDINARY, 0.25]
        assert off[FitMethod.WEIGHTED, 0.0] < 0.01 < off[FitMethod.ORDINARY, 0.0]

    def test_the_estimates_are_correlated_and_say_so(self) -> None:
        """Against the correlation of the estimates of many draws."""
        found = [one_line((500.0, 1.0), Draw(), seed) for seed in range(200)]
        seen = np.corrcoef([[fit.overhead_us, fit.ns_per_byte] for fit in found], rowvar=False)
        stated = np.median([fit.correlation for fit in found])
        assert stated == pytest.approx(seen[0, 1], abs=0.15)

    def test_standard_errors_are_those_of_many_draws(self) -> None:
        found = [one_line((22.0, 11.3), Draw(), seed) for seed in range(200)]
        seen = np.std([[fit.overhead_us, fit.ns_per_byte] for fit in found], axis=0)
        stated = np.median(
            [[fit.overhead_std_error_us, fit.ns_per_byte_std_error] for fit in found], axis=0
        )
        assert stated == pytest.approx(seen, rel=0.3)


class TestClipped:
    @pytest.mark.parametrize("method", list(FitMethod))
    def test_what_the_clipped_one_may_hide_is_in_the_interval_of_the_other(
        self, method: FitMethod
    ) -> None:
        """Close sizes do not tell 20 µs + 4 ns per byte from 24 µs."""
        rng, covered, clipped = np.random.default_rng(5), [], 0
        x = np.repeat([1000, 1010, 1020, 1030], 20)
        for _ in range(count(300)):
            y = (20.0 + 0.004 * x) * (1.0 + 0.02 * rng.standard_normal(len(x)))
            options = FitOptions(method=method, shape=FitShape.LINE)
            found = fit_stage("s", x.tolist(), y.tolist(), options)[0].lines[0]
            clipped += bool(found.clipped)
            covered.append(covers(found, (20.0, 4.0)))
        assert clipped > 0
        assert (np.mean(covered, axis=0) >= 0.9).all()


class TestAgainstScipy:
    def test_weighted_solves_what_least_squares_solves(self) -> None:
        """Relative residuals against SciPy's general solver, bounds included."""
        for seed in range(20):
            sizes, times = Draw(outliers=0.0).samples(line(22.0, 11.3), seed)
            x, y = np.array(sizes, dtype=float), np.array(times)
            found = one_line((22.0, 11.3), Draw(outliers=0.0), seed, FitMethod.WEIGHTED)
            f = found.overhead_us + found.ns_per_byte / 1000.0 * x  # the weights it ended with
            other = optimize.lsq_linear(
                np.stack([1.0 / f, x / f], axis=1), y / f, bounds=(0.0, np.inf), tol=1e-14
            )
            assert found.overhead_us == pytest.approx(other.x[0], rel=1e-6)
            assert found.ns_per_byte == pytest.approx(1000.0 * other.x[1], rel=1e-6)

    def test_the_constrained_step_is_that_of_nnls(self) -> None:
        random = np.random.default_rng(3)
        for _ in range(count(500)):
            x = np.sort(random.random(8) ** 3)
            y, w = random.random(8), random.random(8) + 0.01
            found, root = solve(x, y, w), np.sqrt(w)
            a_b, _ = optimize.nnls(np.stack([root, root * x], axis=1), root * y)
            assert (found.a, found.b) == pytest.approx(tuple(a_b), abs=1e-9)

    def test_the_robust_line_is_near_that_of_a_soft_loss(self) -> None:
        """Another redescending fit by SciPy, started at the truth."""
        for seed in range(10):
            sizes, times = Draw().samples(line(22.0, 11.3), seed)
            x, y = np.array(sizes, dtype=float), np.array(times)

            def residual(p: np.ndarray, x: np.ndarray = x, y: np.ndarray = y) -> np.ndarray:
                f = p[0] + p[1] * x
                return np.asarray((y - f) / f)

            other = optimize.least_squares(
                residual, [22.0, 0.0113], loss="cauchy", f_scale=0.04, x_scale=[22.0, 0.0113]
            )
            found = one_line((22.0, 11.3), Draw(), seed)
            assert found.overhead_us == pytest.approx(other.x[0], rel=0.01)
            assert found.ns_per_byte == pytest.approx(1000.0 * other.x[1], rel=0.01)


class TestReducedSamples:
    def test_many_repetitions_are_represented_by_quantiles(self) -> None:
        """The same estimate, and nearly the same interval, as from all of them."""
        sizes, times = Draw(repetitions=4_000).samples(line(22.0, 11.3), 1)
        few = sort_samples(sizes, times)
        assert (len(sizes), len(few.x), few.c.sum()) == (60_000, 15 * 64, 60_000)
        found = alone(few)
        assert found.a == pytest.approx(22.0, rel=2e-3)
        assert found.b == pytest.approx(0.0113, rel=2e-3)
        assert found.half[0] < 0.005 * 22.0

    def test_many_sizes_are_thinned_and_intervals_do_not_claim_the_rest(self) -> None:
        random = np.random.default_rng(1)
        sizes = random.permutation(60_000) + 1
        times = (22.0 + 0.0113 * sizes) * (1.0 + 0.02 * random.standard_normal(len(sizes)))
        few = sort_samples(sizes.tolist(), times.tolist())
        assert len(few.x) == 20_001
        assert few.c.sum() == len(few.x)
        assert (few.sizes[0], few.sizes[-1]) == (1, 60_000)
        found = alone(few)
        assert abs(found.b - 0.0113) <= 2.0 * found.half[1]
        assert found.half[1] == pytest.approx(0.0113 * 0.02 / 20_001**0.5 * 1.96 * 2.4, rel=0.5)
