"""Centres of times by size: exact where there is no noise, under any drift of blocks or a slope."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.size_centres import MIN_NOISE, TimedRun, centres_of

SIZES = {10: 1000.0, 20: 800.0, 40: 1500.0}


def drifting(drifts: list[float]) -> list[TimedRun]:
    """Each size once in every block, without noise."""
    return [
        TimedRun(block, size, time_us * exp(drift))
        for block, drift in enumerate(drifts)
        for size, time_us in SIZES.items()
    ]


@given(st.lists(st.floats(-0.5, 0.5), min_size=4, max_size=8))
def test_drift_of_blocks_leaves_the_ratios_alone(drifts: list[float]) -> None:
    """Every block has all sizes, so that what it adds is known."""
    centres = centres_of(drifting(drifts))
    assert centres.sizes == (10, 20, 40)
    assert centres.runs == (len(drifts),) * 3
    assert centres.lead(20, 10)[0] == pytest.approx(log(1000 / 800), abs=1e-9)
    assert centres.lead(40, 10)[0] == pytest.approx(log(1000 / 1500), abs=1e-9)


def test_one_block_has_means_of_logarithms() -> None:
    """Two runs each, near enough that none counts less; errors follow from 3 %, widened by 1.5."""
    runs = [TimedRun(0, 10, 100.0), TimedRun(0, 10, 101.0), TimedRun(0, 20, 200.0)]
    centres = centres_of([*runs, TimedRun(0, 20, 202.0)])
    assert np.exp(centres.log_us) == pytest.approx([100.0 * 1.01**0.5, 200.0 * 1.01**0.5])
    assert centres.covariance == pytest.approx(np.diag([0.5, 0.5]) * centres.noise**2 * 1.5)
    assert centres.runs_of(20) == 2
    assert centres.runs_of(30) == 0


def test_a_run_that_is_far_off_counts_little() -> None:
    """Nine runs of 100 and one of 300: the centre stays below 103."""
    runs = [TimedRun(0, 10, 100.0 + n / 9) for n in range(9)] + [TimedRun(0, 10, 300.0)]
    assert 100.0 < exp(float(centres_of(runs).log_us[0])) < 103.0


def test_noise_is_three_percent_before_it_is_seen_and_never_none() -> None:
    """A run of each size shows none; many equal runs do not show that there is none."""
    assert centres_of([TimedRun(0, 10, 5.0), TimedRun(0, 20, 5.0)]).noise == pytest.approx(0.03)
    assert centres_of([TimedRun(0, 10, 5.0)] * 20).noise == MIN_NOISE


def test_noise_is_found_again() -> None:
    """10 % over 40 blocks of three sizes, within a quarter."""
    random = np.random.default_rng(3)
    runs = [
        TimedRun(block, size, time_us * exp(0.1 * random.standard_normal()))
        for block in range(40)
        for size, time_us in SIZES.items()
    ]
    assert centres_of(runs).noise == pytest.approx(0.1, rel=0.25)


def test_a_slope_over_heaps_is_taken_out_and_makes_far_heaps_uncertain() -> None:
    """All sizes are equal, and the machine slows by 1 % a run: only the slope is found."""
    heaps = [size for size in SIZES for _ in range(6)]
    runs = [TimedRun(0, size, 100.0 * 1.01**at) for at, size in enumerate(heaps)]
    centres = centres_of(runs, has_slope=True)
    assert centres.lead(40, 10)[0] == pytest.approx(0.0, abs=1e-9)
    near, far = centres.lead(20, 10)[1], centres.lead(40, 10)[1]
    assert far > 1.5 * near
    assert centres_of(runs).lead(40, 10)[0] < -0.1


def test_without_repeats_no_slope_can_be_known() -> None:
    """It is left out then."""
    runs = [TimedRun(0, 10, 100.0), TimedRun(0, 20, 50.0)]
    assert centres_of(runs, has_slope=True).lead(20, 10)[0] == pytest.approx(log(2))


def test_many_blocks_are_pooled() -> None:
    """A thousand blocks take no longer than 128."""
    centres = centres_of(drifting([0.0] * 1000))
    assert centres.lead(20, 10)[0] == pytest.approx(log(1000 / 800), abs=1e-9)
