"""fitting/ranges.py: switches found where they are, and not where they are not."""

from __future__ import annotations

import numpy as np
import pytest

from domain.fit import FitMethod, FitOptions, FitShape, StageFit
from fitting.stage import fit_stage
from tests.support.counts import count
from tests.support.stage_samples import POWERS, SWITCH_BYTES, SWITCH_END, Draw, Floats, line, switch

DRAWS = {
    "20 repetitions, outliers": Draw(),
    "20 repetitions": Draw(outliers=0.0),
    "5 repetitions, outliers": Draw(repetitions=5),
    "5 repetitions": Draw(repetitions=5, outliers=0.0),
}


def ends(stage: StageFit) -> list[int]:
    return [line.up_to_bytes for line in stage.lines if line.up_to_bytes is not None]


def fitted(sizes: list[int], times: list[float], **options: object) -> StageFit:
    return fit_stage("copy", sizes, times, FitOptions(**options))[0]  # type: ignore[arg-type]


class TestSwitches:
    @pytest.mark.parametrize("name", DRAWS)
    def test_a_jump_is_found_at_the_right_size(self, name: str) -> None:
        """In 95 % of 200 draws and more."""
        draw = Draw(POWERS, DRAWS[name].repetitions, outliers=DRAWS[name].outliers)
        found = [
            ends(fitted(*draw.samples(switch, seed))) == [SWITCH_END] for seed in range(count(200))
        ]
        assert np.mean(found) >= 0.95

    @pytest.mark.parametrize("name", DRAWS)
    @pytest.mark.parametrize("truth", [(22.0, 11.3), (0.0, 11.3), (500.0, 0.0)])
    def test_none_is_invented(self, name: str, truth: tuple[float, float]) -> None:
        """In 95 % of 200 draws and more."""
        draw = DRAWS[name]
        none = [ends(fitted(*draw.samples(line(*truth), seed))) == [] for seed in range(count(200))]
        assert np.mean(none) >= 0.95

    @pytest.mark.parametrize("noise", [0.005, 0.1, 0.3])
    def test_none_is_invented_whatever_the_noise(self, noise: float) -> None:
        draw = Draw(noise=noise, outliers=0.1)
        none = [ends(fitted(*draw.samples(line(22.0, 11.3), at))) == [] for at in range(count(200))]
        assert np.mean(none) >= 0.95

    def test_none_is_invented_with_one_time_a_size(self) -> None:
        draw = Draw(tuple(2**k for k in range(23)), repetitions=1, outliers=0.0)
        none = [ends(fitted(*draw.samples(line(2.0, 0.1), at))) == [] for at in range(count(200))]
        assert np.mean(none) >= 0.9

    def test_the_lines_on_both_sides_are_the_true_ones(self) -> None:
        stage = fitted(*Draw(POWERS).samples(switch, 3))
        left, right = stage.lines
        assert left.overhead_us == pytest.approx(10.0, rel=0.02)
        assert left.ns_per_byte == pytest.approx(20.0, rel=0.02)
        assert right.overhead_us == pytest.approx(60.0, rel=0.05)
        assert right.ns_per_byte == pytest.approx(11.3, rel=0.02)
        assert (left.from_bytes, left.to_bytes) == (64, 8192)
        assert (right.from_bytes, right.to_bytes) == (16384, 2**20)
        assert left.num_samples + right.num_samples == stage.num_samples == 300

    def test_several_switches(self) -> None:
        """Up, down, and steeper; where costs fall, the dearer line counts up to the next size."""

        def truth(x: Floats) -> Floats:
            early = np.where(x <= 1024, 5.0 + 0.002 * x, 12.0 + 0.004 * x)
            late = np.where(x <= 262144, 30.0 + 0.001 * x, 80.0 + 0.003 * x)
            out: Floats = np.where(x <= 16384, early, late)
            return out

        sizes = tuple(2**k for k in range(4, 23))
        found = [ends(fitted(*Draw(sizes).samples(truth, seed))) for seed in range(count(100))]
        assert np.mean([each == [1024, 32767, 262144] for each in found]) >= 0.9

    def test_a_knee_ends_where_the_lines_meet(self) -> None:
        """Bytes behind 50 000, which no size is at, cost a fifth of those before."""

        def truth(x: Floats) -> Floats:
            out: Floats = 10.0 + 0.005 * x - 0.004 * np.maximum(0.0, x - 50_000.0)
            return out

        found = [ends(fitted(*Draw(POWERS).samples(truth, seed))) for seed in range(count(100))]
        one = [each[0] for each in found if len(each) == 1]
        assert len(one) >= 0.9 * len(found)
        assert np.median(one) == pytest.approx(50_000, rel=0.1)

    @pytest.mark.parametrize("method", FitMethod)
    def test_every_method_takes_the_same_ranges(self, method: FitMethod) -> None:
        sizes, times = Draw(POWERS, outliers=0.0).samples(switch, 1)
        (end,) = ends(fitted(sizes, times, method=method))
        assert SWITCH_BYTES <= end <= SWITCH_END  # by least squares the lines meet between the two


class TestLimits:
    def test_shape_line_is_one_range(self) -> None:
        assert ends(fitted(*Draw(POWERS).samples(switch, 1), shape=FitShape.LINE)) == []

    def test_max_ranges_is_kept(self) -> None:
        def stairs(x: Floats) -> Floats:
            out: Floats = 10.0 * 2.0 ** np.floor(np.log2(x) / 4.0) + 0.0001 * x
            return out

        sizes = tuple(2**k for k in range(4, 28))
        samples = Draw(sizes, outliers=0.0).samples(stairs, 1)
        for maximum in (1, 2, 3, 6):
            assert len(fitted(*samples, max_ranges=maximum).lines) == maximum

    def test_a_range_has_three_sizes_or_is_a_pair_at_an_end(self) -> None:
        """A jump behind the first of eight sizes is no range, one behind the second is."""
        sizes = tuple(2**k for k in range(6, 14))
        for jump in range(1, 8):

            def truth(x: Floats, jump: int = jump) -> Floats:
                out: Floats = np.where(x <= sizes[jump - 1], 10.0, 30.0) + 0.01 * x
                return out

            stage = fitted(*Draw(sizes).samples(truth, 1))
            assert ends(stage) == ([] if jump in (1, 7) else [sizes[jump - 1]])

    def test_fewer_than_six_sizes_are_one_range(self) -> None:
        assert ends(fitted(*Draw((64, 512, 4096, 65536, 2**20)).samples(switch, 1))) == []

    def test_the_stage_of_the_domain_jumps_where_the_samples_do(self) -> None:
        stage = fitted(*Draw(POWERS).samples(switch, 1)).to_stage()
        assert [part.up_to_bytes for part in stage.ranges] == [SWITCH_END, None]
        for size in POWERS:
            assert stage.time_us(size) == pytest.approx(float(switch(np.array(size))), rel=0.02)

    def test_one_size_off_the_line_is_no_range(self) -> None:
        def truth(x: Floats) -> Floats:
            out: Floats = (22.0 + 0.0113 * x) * np.where(x == 4096, 1.5, 1.0)
            return out

        none = [ends(fitted(*Draw(POWERS).samples(truth, at))) == [] for at in range(count(100))]
        assert np.mean(none) >= 0.9


class TestManySizes:
    @pytest.mark.parametrize(("rows", "outliers"), [(3_000, 0.0), (3_000, 0.2), (50_000, 0.2)])
    def test_a_switch_among_sizes_at_random(self, rows: int, outliers: float) -> None:
        """Each size once: bins find it, sizes say where exactly."""
        random = np.random.default_rng(2)
        x = np.floor(np.exp(random.uniform(4.0, 14.0, rows)))
        y = switch(x) * (1.0 + 0.02 * random.standard_normal(rows))
        y *= np.where(random.random(rows) < outliers, random.uniform(2.0, 8.0, rows), 1.0)
        stage = fitted(x.astype(int).tolist(), y.tolist())
        (end,) = ends(stage)
        assert np.sum((x > SWITCH_BYTES) & (x <= end)) <= 12
        assert np.sum((x > end) & (x <= SWITCH_BYTES)) <= 12
        assert len(stage.sizes) <= 201
        assert sum(size.num_samples for size in stage.sizes) == pytest.approx(min(rows, 2e4), 0.2)

    def test_none_is_invented_among_sizes_at_random(self) -> None:
        none = []
        for seed in range(count(100)):
            random = np.random.default_rng(seed)
            x = np.floor(np.exp(random.uniform(4.0, 14.0, 2_000)))
            y = (10.0 + 0.02 * x) * (1.0 + 0.02 * random.standard_normal(len(x)))
            none.append(ends(fitted(x.astype(int).tolist(), y.tolist())) == [])
        assert np.mean(none) >= 0.95
