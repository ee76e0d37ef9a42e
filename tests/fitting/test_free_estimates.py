"""What is stored with a line so that its parameters can be drawn."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from domain.fit import FitMethod, FitOptions, LineFit, StageFit
from fitting.stage import fit_stage
from tests.fitting.test_between import NS_PER_BYTE, OVERHEAD_US, SETTINGS, Noise
from tests.support.counts import count
from tests.support.stage_samples import SWITCH_BYTES, Floats, line


def _line(noise: Noise, seed: int, method: FitMethod = FitMethod.ROBUST) -> LineFit:
    samples = noise.samples(line(OVERHEAD_US, NS_PER_BYTE), seed)
    return fit_stage("copy", *samples, FitOptions(method=method))[0].lines[0]


def _covariance(part: LineFit) -> Floats:
    assert part.covariance is not None
    a, both, b = part.covariance
    return np.array([[a, both], [both, b]])


@pytest.mark.parametrize("name", ["0 %", "3 %", "autocorrelated by 0.9, 5 %"])
def test_the_covariance_is_that_of_estimates_over_draws(name: str) -> None:
    """Within a factor of two, with both units, and with deviations of sizes in it."""
    draws = count(400, share=5)
    lines = [_line(SETTINGS[name], seed) for seed in range(draws)]
    lines = [part for part in lines if part.up_to_bytes is None]
    free = np.array([(part.free_overhead_us, part.free_ns_per_byte) for part in lines])
    told = np.median([_covariance(part) for part in lines], axis=0)
    spread = np.cov(free.T)
    assert free.mean(axis=0) == pytest.approx([OVERHEAD_US, NS_PER_BYTE], rel=0.05)
    for place in (0, 1):
        assert 0.5 < told[place, place] / spread[place, place] < 3.0
    assert told[0, 1] < 0.0


@pytest.mark.parametrize("method", FitMethod)
def test_a_clipped_estimate_has_its_free_one(method: FitMethod) -> None:
    """A knee upwards: the line through the larger sizes begins below 0."""
    sizes = [64, 128, 256, 512, 1024] * 6
    random = np.random.default_rng(1)
    times = [max(0.3, -0.5 + 0.01 * x) * (1.0 + 0.02 * random.standard_normal()) for x in sizes]
    stage, _ = fit_stage("copy", sizes, times, FitOptions(method=method))
    (part,) = stage.lines
    assert part.clipped == ("overhead_us",)
    assert part.overhead_us == 0.0
    assert part.free_overhead_us is not None
    assert part.free_overhead_us < 0.0
    assert part.free_ns_per_byte is not None
    assert part.free_ns_per_byte > part.ns_per_byte
    assert _covariance(part)[0, 1] < 0.0


@pytest.mark.parametrize("method", FitMethod)
def test_without_clipping_it_is_the_estimate(method: FitMethod) -> None:
    part = _line(SETTINGS["3 %"], 1, method)
    assert part.free_overhead_us == part.overhead_us
    assert part.free_ns_per_byte == part.ns_per_byte
    errors = np.sqrt(np.diag(_covariance(part)))
    assert errors == pytest.approx([part.overhead_std_error_us, part.ns_per_byte_std_error])
    assert _covariance(part)[0, 1] == pytest.approx(part.correlation * errors.prod())


def test_freedom_is_that_of_sizes_where_sizes_deviate() -> None:
    """18 sizes less two parameters, about; hundreds of samples where nothing but they scatter."""
    of_sizes = [_line(SETTINGS["3 %, little noise"], seed).degrees_of_freedom for seed in range(9)]
    of_samples = [_line(SETTINGS["0 %"], seed).degrees_of_freedom for seed in range(9)]
    assert 14.0 <= np.median(np.array(of_sizes, float)) <= 18.0
    assert np.median(np.array(of_samples, float)) > 100.0


def test_every_range_is_positive_definite_and_ends_between_two_sizes() -> None:
    """Also where lines were made to meet."""

    def bend(x: Floats) -> Floats:
        out: Floats = 10.0 + 0.02 * x - 0.016 * np.maximum(0.0, x - SWITCH_BYTES)
        return out

    several = 0
    for seed in range(count(100, share=5)):
        sizes, times = SETTINGS["1 %"].samples(bend, seed)
        stage: StageFit = fit_stage("copy", sizes, times, FitOptions())[0]
        several += len(stage.lines) > 1
        for part in stage.lines:
            assert np.linalg.eigvalsh(_covariance(part)).min() > -1e-12 * part.ns_per_byte**2
            assert (part.degrees_of_freedom or 0.0) >= 1.0
        measured = sorted(set(sizes))
        for (last, following), (left, right) in zip(
            stage.ends_between(), pairwise(stage.lines), strict=True
        ):
            assert measured.index(following) == measured.index(last) + 1
            assert (left.to_bytes, right.from_bytes) == (last, following)
            assert last <= (left.up_to_bytes or 0) < following
    assert several
