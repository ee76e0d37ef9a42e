"""Messages priced by measured sizes alone: between them, below and above, and by the evaluator."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.draw_costs import stage_times_us
from analysis.file_votes import as_measured, cut_by_file_us, redrawn, sizes_by_file_us
from domain.aggregate import Aggregate
from domain.measured_times import MeasuredTimes
from domain.nested import NestedSchedule
from domain.uncertainty import NamedCut
from solvers.kernels import active
from tests.support.measured import measured_times, times_of
from tests.support.uncertain import model_of

SIZES = (64, 100, 1000, 4096)


def median_us(times: MeasuredTimes, size: int, *, stage: int = 0, at_least: bool = False) -> float:
    """The time of one fragment by medians."""
    costs = as_measured(times)
    draws = costs.at_least if at_least else costs.at_most
    return float(stage_times_us(draws, stage, np.array([size]))[0, 0])


class TestBetweenSizes:
    """What one fragment takes."""

    def test_a_measured_size_takes_what_it_took(self) -> None:
        times = times_of([(100, 5.0), (200, 6.0), (400, 30.0)])
        assert [median_us(times, size) for size in (100, 200, 400)] == pytest.approx([5, 6, 30])

    def test_a_chord_where_a_byte_gets_no_dearer(self) -> None:
        assert median_us(times_of([(100, 5.0), (200, 7.0)]), 150) == pytest.approx(6.0)

    def test_the_upper_rate_where_it_gets_dearer(self) -> None:
        """By more than 5 %: by 4 % it is the chord still."""
        assert median_us(times_of([(100, 5.0), (200, 20.0)]), 101) == pytest.approx(10.1)
        assert median_us(times_of([(100, 5.0), (200, 10.4)]), 150) == pytest.approx(7.7)

    def test_beyond_the_last_its_slope_goes_on(self) -> None:
        """And is level where times fall."""
        assert median_us(times_of([(100, 5.0), (200, 7.0)]), 300) == pytest.approx(9.0)
        assert median_us(times_of([(100, 5.0), (200, 4.0)]), 300) == pytest.approx(4.0)

    def test_below_the_first_it_is_between_two_times(self) -> None:
        times = times_of([(100, 5.0), (200, 7.0)])
        assert median_us(times, 40) == pytest.approx(5.0)
        assert median_us(times, 40, at_least=True) == pytest.approx(2.0)

    @given(measured_times(stages=1, sizes=SIZES), st.data())
    def test_no_size_is_below_the_chord(self, times: MeasuredTimes, data: st.DataObject) -> None:
        """Where a byte gets dearer; where it does not, it is on it."""
        (stage,) = times.stages
        for one, other in pairwise(stage.sizes):
            size = data.draw(st.integers(one.message_bytes, other.message_bytes))
            share = (size - one.message_bytes) / (other.message_bytes - one.message_bytes)
            chord = (1.0 - share) * one.median_us + share * other.median_us
            assert median_us(times, size) >= chord * (1.0 - 1e-9)
            assert median_us(times, size) <= max(one.median_us, other.median_us) * (1.0 + 1e-9)


class TestMessages:
    """What a cut takes."""

    @given(measured_times(stages=3, sizes=SIZES), st.integers(1, 30_000), st.integers(1, 9000))
    def test_it_is_the_evaluator_s_latency(
        self, times: MeasuredTimes, total: int, size: int
    ) -> None:
        """Of stages that have a range for every interval."""
        costs = as_measured(times).at_most
        repeated = min(size, total)
        full, rest = divmod(total, repeated)
        cut = (repeated,) * full + ((rest,) if rest else ())
        found = sizes_by_file_us(costs, total, [repeated])[0, :, 0]
        uneven = cut_by_file_us(costs, total, NamedCut("cut", schedule=NestedSchedule((cut,))))[
            :, 0
        ]
        for place in range(2):
            stages = [
                stage_times_us(costs, j, np.array(sorted({*cut})))[:, place] for j in range(3)
            ]
            at = {one: [us[i] for us in stages] for i, one in enumerate(sorted({*cut}))}
            exits = [0.0] * 3
            for one in cut:
                ready = 0.0
                for j in range(3):
                    ready = exits[j] = max(ready, exits[j]) + at[one][j]
            assert found[place] == pytest.approx(exits[-1], rel=1e-9)
            assert uneven[place] == pytest.approx(exits[-1], rel=1e-9)

    def test_numpy_prices_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without kernels too."""
        times = times_of([(64, 5.0), (512, 7.0), (4096, 80.0)], [(64, 9.0), (4096, 30.0)])
        sizes = [50, 64, 600, 4096, 9000]
        native = sizes_by_file_us(redrawn(times).at_most, 9000, sizes)
        monkeypatch.setattr(active, "NATIVE", None)
        assert sizes_by_file_us(redrawn(times).at_most, 9000, sizes) == pytest.approx(native)

    def test_of_an_aggregate_total_and_bottleneck(self) -> None:
        """By its own formula, and no bottleneck is above the total."""
        times = times_of([(100, 9.0), (200, 12.0)], [(100, 4.0), (200, 15.0)], kind="aggregate")
        costs = as_measured(times).at_most
        found = sizes_by_file_us(costs, 400, [100, 200, 400])[:, 0, 0]
        assert found == pytest.approx([9 + 3 * 4, 12 + 12, 18.0])
        model = model_of(costs.part(0, 1), 0)
        assert isinstance(model, Aggregate)
        assert model.latency_us((100,) * 4) == pytest.approx(21.0)


class TestRedrawnFiles:
    """Times as rows drawn anew would have them."""

    def test_they_scatter_by_their_errors(self) -> None:
        times = times_of([(100, 100.0), (200, 200.0)], error=0.05)
        found = sizes_by_file_us(redrawn(times).at_most, 100, [100])[0]
        assert found.mean(axis=1) == pytest.approx([100, 100], rel=0.02)
        assert found.std(axis=1) == pytest.approx([5, 5], rel=0.25)

    def test_means_are_the_medians_times_their_ratio(self) -> None:
        times = times_of([(100, 100.0), (200, 200.0)], error=0.05, ratio=1.5)
        medians, means = sizes_by_file_us(redrawn(times).at_most, 200, [100])[0]
        assert means == pytest.approx(1.5 * medians)

    def test_what_all_sizes_are_off_by_moves_them_together(self) -> None:
        """By its own error, in each stage by itself."""
        times = times_of(*([(100, 100.0), (200, 200.0)],) * 2, error=0.0)
        off = tuple(replace(one, common_error=0.05) for one in times.stages)
        costs = redrawn(replace(times, stages=off)).at_most
        first, second = (stage_times_us(costs, j, np.array([100, 200])) for j in range(2))
        assert first[1] == pytest.approx(2.0 * first[0])
        assert np.log(first[0]).std() == pytest.approx(0.05, rel=0.25)
        assert abs(np.corrcoef(first[0], second[0])[0, 1]) < 0.3

    def test_they_are_the_same_each_time(self) -> None:
        one, other = (times_of([(1, 2.0), (9, 3.0)], error=0.1) for _ in range(2))
        assert np.array_equal(redrawn(one).at_most.overhead_us, redrawn(other).at_most.overhead_us)
