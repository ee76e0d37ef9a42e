"""Sizes that deviate on their own: no ranges invented, real jumps found, intervals that hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from domain.fit import FitOptions, StageFit
from fitting.between import between_size_deviation, neighbours_correlation
from fitting.stage import fit_stage
from tests.support.counts import count, is_campaign
from tests.support.stage_samples import POWERS, SWITCH_BYTES, Floats, line

SIZES = np.array([2**k for k in range(4, 22)], dtype=np.float64)
OVERHEAD_US, NS_PER_BYTE = 10.0, 5.0


@dataclass(frozen=True, slots=True)
class Noise:
    """Relative deviation of sizes, of single times, and how the latter are drawn."""

    deviation: float = 0.0
    single: float = 0.02
    repetitions: int = 20
    draw: Callable[[np.random.Generator, int], Floats] = lambda random, n: random.standard_normal(n)

    def samples(
        self, truth: Callable[[Floats], Floats], seed: int
    ) -> tuple[list[int], list[float]]:
        """Sizes and times, ascending by size as benchmarks measure them."""
        random = np.random.default_rng([14, seed])
        own = 1.0 + self.deviation * random.standard_normal(len(SIZES))
        x = np.repeat(SIZES, self.repetitions)
        y = truth(x) * np.repeat(own, self.repetitions)
        y = y * np.maximum(1.0 + self.single * self.draw(random, len(x)), 0.01)
        return x.astype(np.int64).tolist(), y.tolist()


def _autocorrelated(random: np.random.Generator, n: int) -> Floats:
    """Of the first order, 0.9 from one time to the next."""
    fresh, out = random.standard_normal(n) * (1.0 - 0.9**2) ** 0.5, np.zeros(n)
    for at in range(1, n):
        out[at] = 0.9 * out[at - 1] + fresh[at]
    return out


SETTINGS = {
    "0 %": Noise(),
    "1 %": Noise(0.01),
    "3 %": Noise(0.03),
    "3 %, little noise": Noise(0.03, 0.002),
    "3 %, five repetitions": Noise(0.03, repetitions=5),
    "autocorrelated, 5 %": Noise(single=0.05, draw=_autocorrelated),
    "heavy tails": Noise(draw=lambda random, n: random.standard_t(3, n)),
    "heavy tails and 3 %": Noise(0.03, draw=lambda random, n: random.standard_t(3, n)),
    "one time a size, 3 %": Noise(single=0.03, repetitions=1),
}


def _fitted(noise: Noise, truth: Callable[[Floats], Floats], seed: int) -> StageFit:
    return fit_stage("copy", *noise.samples(truth, seed), FitOptions())[0]


def _jump(x: Floats) -> Floats:
    """30 % more behind SWITCH_BYTES."""
    out: Floats = line(OVERHEAD_US, NS_PER_BYTE)(x) * np.where(x <= SWITCH_BYTES, 1.0, 1.3)
    return out


@pytest.mark.parametrize("name", SETTINGS)
class TestSimulation:
    """500 draws in a campaign, a tenth of them otherwise."""

    def test_one_line_is_one_range_and_its_intervals_hold_it(self, name: str) -> None:
        """Ranges are invented in at most 5 % of draws; intervals hold the truth in 90 %."""
        truth, several, held = line(OVERHEAD_US, NS_PER_BYTE), 0, np.zeros(2)
        for seed in range(count(500)):
            found = _fitted(SETTINGS[name], truth, seed).lines
            several += len(found) > 1
            (a_low, a_high), (b_low, b_high) = (
                found[0].overhead_us_interval,
                found[-1].ns_per_byte_interval,
            )
            held += (a_low <= OVERHEAD_US <= a_high, b_low <= NS_PER_BYTE <= b_high)
        slack = 0.0 if is_campaign() else 0.06  # 50 draws
        assert several / count(500) <= 0.05 + slack
        assert (held / count(500)).min() >= 0.90 - slack

    def test_a_jump_of_30_percent_is_found(self, name: str) -> None:
        """In 95 % of draws the interval of an end holds it."""
        found = 0
        for seed in range(count(500)):
            ends = [
                part.up_to_bytes_interval
                for part in _fitted(SETTINGS[name], _jump, seed).lines
                if part.up_to_bytes_interval is not None
            ]
            found += any(low <= SWITCH_BYTES < high for low, high in ends)
        assert found / count(500) >= 0.95 - (0.0 if is_campaign() else 0.04)


class TestDeviation:
    """The estimate itself."""

    def test_it_is_found(self) -> None:
        """In the middle of many draws, and one size that lies off by itself moves it little."""
        random, e = np.random.default_rng(3), np.full(15, 0.005)
        plain, with_one = [], []
        for _ in range(300):
            r = np.hypot(0.03, 0.005) * random.standard_normal(15)
            plain.append(between_size_deviation(r, e, 15))
            r[0] = 1.0
            with_one.append(between_size_deviation(r, e, 15))
        assert np.median(plain) == pytest.approx(0.03, rel=0.1)
        assert np.median(with_one) == pytest.approx(0.035, rel=0.2)

    def test_noise_within_sizes_is_none(self) -> None:
        e = np.full(15, 0.01)
        assert between_size_deviation(0.5 * e, e, 13) == 0.0
        assert between_size_deviation(np.full(2, 0.5), e[:2], 0) == 0.0

    def test_the_correlation_of_neighbours(self) -> None:
        random, found = np.random.default_rng(4), []
        for _ in range(300):
            z = np.zeros(200)
            for at in range(1, 200):
                z[at] = 0.5 * z[at - 1] + random.standard_normal()
            found.append(neighbours_correlation(z, 198))
        assert np.median(found) == pytest.approx(0.5, abs=0.07)
        assert neighbours_correlation(np.ones(4), 2) == 0.0


class TestEnds:
    """Where ranges end, how sure that is, and what is said of it."""

    def test_an_end_that_is_sure_lies_between_two_sizes(self) -> None:
        left, right = _fitted(Noise(single=0.005), _jump, 1).lines
        assert left.up_to_bytes_interval == (SWITCH_BYTES, 2 * SWITCH_BYTES - 1)
        assert right.up_to_bytes_interval is None

    def test_costs_fall_behind_an_end_only_where_that_is_supported(self) -> None:
        """A bend that the lines would overshoot by their noise meets; a real fall stays."""

        def bend(x: Floats) -> Floats:
            out: Floats = 10.0 + 0.02 * x - 0.016 * np.maximum(0.0, x - 12_000.0)
            return out

        for seed in range(count(100)):
            stage = _fitted(Noise(0.02, 0.01), bend, seed)
            for left, right in zip(stage.lines, stage.lines[1:], strict=False):
                at = left.to_bytes
                before, after = (p.overhead_us + p.ns_per_byte * at / 1e3 for p in (left, right))
                assert after >= before * (1.0 - 1e-9) or after < before * 0.95

    def test_a_real_fall_stays(self) -> None:
        def truth(x: Floats) -> Floats:
            out: Floats = np.where(x <= SWITCH_BYTES, 10.0 + 0.005 * x, 5.0 + 0.001 * x)
            return out

        stage = _fitted(Noise(), truth, 1).to_stage()
        assert stage.time_us(2 * SWITCH_BYTES) < 0.5 * stage.time_us(SWITCH_BYTES)

    def test_a_limit_that_binds_is_said(self) -> None:
        """More steps than ranges are allowed."""

        def stairs(x: Floats) -> Floats:
            out: Floats = 10.0 * 2.0 ** np.floor(np.log2(x) / 4.0) + 0.0001 * x
            return out

        samples = Noise(single=0.005).samples(stairs, 1)
        for maximum, is_said in ((2, True), (8, False)):
            _, notices = fit_stage("copy", *samples, FitOptions(max_ranges=maximum))
            assert ("more_ranges_supported" in {one.code for one in notices}) is is_said

    def test_a_jump_where_nothing_was_measured_is_said_with_both_sizes(self) -> None:
        sizes = [*POWERS[:9], *(size * 4 for size in POWERS[9:])]  # 16 KiB, then 128 KiB
        truth = [(10.0 if size <= 16384 else 60.0) + 0.005 * size for size in sizes]
        _, notices = fit_stage("copy", sizes * 3, truth * 3, FitOptions())
        (said,) = [one for one in notices if one.code == "jump_not_measured"]
        assert "between 16 KiB and 128 KiB" in said.detail
        close = [*range(1000, 20_000, 1000)]
        times = [(10.0 if size <= 10_000 else 60.0) + 0.005 * size for size in close]
        _, notices = fit_stage("copy", close * 3, times * 3, FitOptions())
        assert "jump_not_measured" not in {one.code for one in notices}

    def test_sizes_off_one_range_are_said_where_another_one_bends(self) -> None:
        """A bend behind the switch, and one size off before it."""

        def truth(x: Floats) -> Floats:
            left = (10.0 + 0.005 * x) * np.where(x == 256, 1.4, 1.0)
            out: Floats = np.where(x <= SWITCH_BYTES, left, 3.0 * x**0.5)
            return out

        samples = Noise(single=0.005).samples(truth, 1)
        stage, notices = fit_stage("copy", *samples, FitOptions(max_ranges=2))
        codes = {one.code: one.detail for one in notices}
        assert stage.lines[0].up_to_bytes == SWITCH_BYTES
        assert "curvature" in codes
        assert "256 B" in codes["sizes_off_the_line"]

    def test_many_sizes_end_at_a_size_and_not_at_a_bin(self) -> None:
        """Of 1200 sizes the last before the jump, or the next to it."""
        sizes = np.unique(np.round(np.geomspace(64, 2**21, 1200)))
        random, off = np.random.default_rng(8), []
        for _ in range(count(50)):
            y = _jump(sizes) * (1.0 + 0.01 * random.standard_normal(len(sizes)))
            stage, _ = fit_stage("copy", sizes.astype(int).tolist(), y.tolist(), FitOptions())
            end = stage.lines[0].up_to_bytes or 0
            off.append(abs(int(np.sum(sizes <= end)) - int(np.sum(sizes <= SWITCH_BYTES))))
        assert np.median(off) <= 1
