"""fitting/stage.py: nothing negative, everything finite, whatever comes in."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.limits import MAX_MESSAGE_BYTES, MAX_NS_PER_BYTE, MAX_TIME_US
from domain.errors import PoorFit
from domain.fit import FitMethod, FitOptions, StageFit, Verdict
from fitting.stage import fit_stage
from tests.support.stage_samples import POWERS, SWITCH_END, Draw, line, switch

SIZES = list(POWERS)
Rows = list[tuple[int, float]]

sizes_anywhere = st.integers(1, MAX_MESSAGE_BYTES) | st.integers(1, 4096)
times_anywhere = (
    st.floats(0.0, MAX_TIME_US) | st.floats(0.0, 10.0) | st.sampled_from([0.0, 5e-324, 1.0, 1e12])
)
rows = st.lists(st.tuples(sizes_anywhere, times_anywhere), min_size=3, max_size=60)
# Repetitions of a few sizes, as benchmarks write them.
tables = st.builds(
    lambda sizes, times: [(size, times[at % len(times)]) for at, size in enumerate(sizes * 4)],
    st.lists(sizes_anywhere, min_size=2, max_size=15, unique=True),
    st.lists(times_anywhere, min_size=1, max_size=60),
)
options = st.builds(FitOptions, st.sampled_from(FitMethod))


def floats_of(value: object) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from floats_of(part)
    elif is_dataclass(value):
        for field in fields(value):
            yield from floats_of(getattr(value, field.name))


def check(stage: StageFit) -> None:
    """What holds of every fit."""
    assert all(math.isfinite(value) for value in floats_of(stage))
    for part in stage.lines:
        assert part.overhead_us >= 0.0
        assert part.ns_per_byte >= 0.0
        assert 0.0 <= part.overhead_us_interval[0] <= part.overhead_us
        assert part.overhead_us <= part.overhead_us_interval[1]
        assert 0.0 <= part.ns_per_byte_interval[0] <= part.ns_per_byte
        assert part.ns_per_byte <= part.ns_per_byte_interval[1]
        assert part.overhead_std_error_us >= 0.0
        assert part.ns_per_byte_std_error >= 0.0
        assert -1.0 <= part.correlation <= 1.0
    assert 0.0 <= stage.r_squared <= 1.0
    assert stage.outliers == sum(size.outliers for size in stage.sizes)
    assert stage.num_samples == sum(part.num_samples for part in stage.lines)
    ends = [part.up_to_bytes for part in stage.lines]
    assert ends[-1] is None
    assert ends[:-1] == sorted({end for end in ends[:-1] if end is not None})
    stage.to_stage()  # the domain takes it


class TestNothingNegative:
    @given(rows | tables, options)
    def test_any_samples(self, samples: Rows, options: FitOptions) -> None:
        sizes, times = [size for size, _ in samples], [time for _, time in samples]
        try:
            stage, notices = fit_stage("copy", sizes, times, options)
        except PoorFit:
            steepest = max(time / size for size, time in samples)
            steep = steepest * 1000.0 >= MAX_NS_PER_BYTE
            assert steep or len(set(sizes)) == 1
            return
        check(stage)
        assert len(notices) <= 8
        assert len({notice.code for notice in notices}) == len(notices)

    @given(
        st.floats(0.0, 1e6),
        st.floats(0.0, 1e3),
        st.floats(0.0, 1.0),
        st.floats(0.0, 0.5),
        st.integers(0, 2**32),
    )
    def test_noisy_lines(self, a: float, b: float, noise: float, share: float, seed: int) -> None:
        draw = Draw(repetitions=4, noise=noise, outliers=share)
        stage, _ = fit_stage("copy", *draw.samples(line(a, b), seed), FitOptions())
        check(stage)

    @pytest.mark.parametrize("method", FitMethod)
    @pytest.mark.parametrize(
        "times",
        [
            [0.0] * 45,
            [7.0] * 45,
            [0.0] * 44 + [5.0],
            [0.0] * 22 + [5.0] * 23,
            [5e-324] * 45,
            [5e-324 * (at % 3) for at in range(45)],
            [1e12] * 45,
            [10.0 ** (at * 7 % 43 - 30) for at in range(45)],
        ],
    )
    def test_odd_times(self, method: FitMethod, times: list[float]) -> None:
        check(fit_stage("copy", SIZES * 3, times, FitOptions(method))[0])

    @pytest.mark.parametrize("method", FitMethod)
    def test_times_of_zero_and_equal_times_are_lines_without_a_word(
        self, method: FitMethod
    ) -> None:
        for value in (0.0, 7.0):
            stage, notices = fit_stage("copy", SIZES * 3, [value] * 45, FitOptions(method))
            (part,) = stage.lines
            assert part.overhead_us == pytest.approx(value)
            assert part.ns_per_byte == 0.0
            assert {part.overhead_verdict, part.ns_per_byte_verdict} == {Verdict.SUPPORTED}
            assert stage.r_squared == 1.0
            assert notices == ()

    @pytest.mark.parametrize("method", [FitMethod.ROBUST, FitMethod.WEIGHTED])
    def test_sizes_over_fifteen_decades(self, method: FitMethod) -> None:
        sizes = tuple(2**k for k in range(49))
        samples = Draw(sizes, 3, outliers=0.0).samples(line(1e-3, 1.0), 4)
        stage, _ = fit_stage("copy", *samples, FitOptions(method))
        check(stage)
        (part,) = stage.lines
        assert part.overhead_us == pytest.approx(1e-3, rel=0.05)
        assert part.ns_per_byte == pytest.approx(1.0, rel=0.05)

    @pytest.mark.parametrize("method", FitMethod)
    @pytest.mark.parametrize(("a", "b"), [(3.0, 10.0), (0.0, 10.0), (3.0, 0.0)])
    def test_noiseless_lines_are_found_exactly(self, method: FitMethod, a: float, b: float) -> None:
        times = [a + b * size / 1000.0 for size in SIZES] * 3
        stage, notices = fit_stage("copy", SIZES * 3, times, FitOptions(method))
        (part,) = stage.lines
        assert part.overhead_us == pytest.approx(a, abs=1e-6)
        assert part.ns_per_byte == pytest.approx(b, abs=1e-6)
        assert stage.r_squared == pytest.approx(1.0)
        assert stage.relative_residual_std == pytest.approx(0.0, abs=1e-6)
        assert notices == ()

    def test_two_sizes_and_one_sample_a_size(self) -> None:
        for sizes, times in (
            ([64] * 5 + [4096] * 5, [10.1, 10.2, 9.9, 10.0, 10.1, 14.0, 14.2, 13.9, 14.1, 14.0]),
            ([64, 64, 4096], [1.0, 1.0, 2.0]),
            ([64, 128, 4096], [1.0, 5.0, 2.0]),
            (SIZES, [10.0 + 0.01 * size for size in SIZES]),
        ):
            check(fit_stage("copy", sizes, times, FitOptions())[0])


class TestFigures:
    def test_each_size_has_its_goodness(self) -> None:
        sizes, times = Draw(POWERS).samples(line(22.0, 11.3), 1)
        times = [t * 1.5 if size == 4096 else t for size, t in zip(sizes, times, strict=True)]
        stage, _ = fit_stage("copy", sizes, times, FitOptions())
        by_size = {size.message_bytes: size for size in stage.sizes}
        assert list(by_size) == SIZES
        assert {size.num_samples for size in stage.sizes} == {20}
        assert by_size[4096].relative_residual == pytest.approx(0.5, abs=0.2)
        assert by_size[4096].outliers >= 19
        assert abs(by_size[65536].relative_residual) < 0.05
        assert by_size[65536].relative_spread == pytest.approx(0.02, rel=0.5)
        assert by_size[65536].fitted_us == pytest.approx(22.0 + 0.0113 * 65536, rel=0.01)
        seen = np.median([t for size, t in zip(sizes, times, strict=True) if size == 65536])
        assert by_size[65536].median_us == pytest.approx(float(seen))

    def test_outliers_are_counted_and_their_influence_told(self) -> None:
        stage, _ = fit_stage("copy", *Draw().samples(line(22.0, 11.3), 1), FitOptions())
        assert stage.outliers == pytest.approx(75, abs=20)
        assert stage.outlier_influence > 0.5
        assert stage.relative_residual_std < 0.05
        clean = Draw(outliers=0.0).samples(line(22.0, 11.3), 1)
        stage, _ = fit_stage("copy", *clean, FitOptions())
        assert (stage.outliers, stage.outlier_influence) == (0, 0.0)
        assert stage.relative_residual_std == pytest.approx(0.02, rel=0.2)
        assert stage.r_squared > 0.99

    def test_a_million_samples_of_a_stage(self) -> None:
        random = np.random.default_rng(1)
        x = np.tile(np.array(POWERS), 66_667)
        y = switch(x.astype(float)) * (1.0 + 0.02 * random.standard_normal(len(x)))
        stage, _ = fit_stage("copy", x.tolist(), y.tolist(), FitOptions())
        assert stage.num_samples == len(x) == 1_000_005
        assert [part.up_to_bytes for part in stage.lines] == [SWITCH_END, None]
        assert stage.lines[0].overhead_us == pytest.approx(10.0, rel=1e-3)
        assert stage.lines[1].ns_per_byte == pytest.approx(11.3, rel=1e-3)

    def test_the_order_of_rows_changes_warm_up_and_what_is_common_alone(self) -> None:
        sizes, times = Draw(POWERS).samples(switch, 1)
        order = np.random.default_rng(2).permutation(len(sizes))
        one, _ = fit_stage("copy", sizes, times, FitOptions())
        other, _ = fit_stage(
            "copy", [sizes[at] for at in order], [times[at] for at in order], FitOptions()
        )
        assert replace(one, common_error=other.common_error) == other

    def test_units_change_nothing_but_the_unit(self) -> None:
        sizes, times = Draw(POWERS).samples(switch, 1)
        one, _ = fit_stage("copy", sizes, times, FitOptions())
        other, _ = fit_stage("copy", sizes, [time * 1024.0 for time in times], FitOptions())
        for part, scaled in zip(one.lines, other.lines, strict=True):
            assert scaled.up_to_bytes == part.up_to_bytes
            assert scaled.overhead_us == pytest.approx(1024.0 * part.overhead_us, rel=1e-9)
            assert scaled.ns_per_byte_interval == pytest.approx(
                tuple(1024.0 * end for end in part.ns_per_byte_interval), rel=1e-6
            )
