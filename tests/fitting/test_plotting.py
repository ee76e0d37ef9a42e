"""fitting/plotting.py: what a plot shows is what was measured and fitted."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import isfinite

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.fit import AggregateFit, Combine, FitMethod, FitOptions, StepGroup, TraceFit
from domain.fit_plot import FitPlot, PlotRole, StagePlot
from domain.measurement import MessageTrace, Reading, Samples, TraceKind
from fitting import plot
from fitting.plotted_signatures import MAX_BURSTS, MAX_CURVES
from fitting.plotting import MAX_POINTS, MIN_POINTS
from tests.support.plotted import (
    SIZES,
    direct_fit,
    direct_reading,
    fitted_us,
    line,
    one_stage,
    samples,
    signatures,
    stage_fit,
    switched,
)


def only(found: FitPlot) -> StagePlot:
    (stage,) = found.stages
    return stage


def pairs(stage: StagePlot) -> list[tuple[int, float]]:
    return list(zip(stage.points.message_bytes, stage.points.time_us, strict=True))


class TestSamples:
    def test_few_samples_are_all_there_in_order(self) -> None:
        fit, readings = one_stage()
        stage = only(plot(fit, readings))
        trace = readings[0].trace
        assert pairs(stage) == sorted(zip(trace.message_bytes, trace.stage_us[0], strict=True))  # type: ignore[union-attr]
        assert stage.num_samples == len(stage.points)
        assert stage.role is PlotRole.STAGE

    def test_residuals_are_relative_to_the_line_of_their_range(self) -> None:
        fit, readings = one_stage()
        points = only(plot(fit, readings)).points
        for size, time, residual in zip(
            points.message_bytes, points.time_us, points.relative_residual, strict=True
        ):
            fitted = fitted_us(switched(), size)
            assert residual == pytest.approx((time - fitted) / fitted)

    def test_outliers_are_those_farthest_from_the_line_as_many_as_counted(self) -> None:
        fit, readings = one_stage(outliers_a_size=2)
        points = only(plot(fit, readings)).points
        for size in SIZES:
            found = [
                (abs(residual or 0.0), outlier)
                for where, residual, outlier in zip(
                    points.message_bytes, points.relative_residual, points.is_outlier, strict=True
                )
                if where == size
            ]
            assert [outlier for _, outlier in sorted(found)] == [False] * 6 + [True] * 2

    def test_a_line_at_0_has_no_relative_residuals(self) -> None:
        nothing = line(0.0, 0.0)
        fit = direct_fit(stage_fit("idle", [nothing], SIZES, [0.0] * len(SIZES)))
        reading = direct_reading(["idle"], SIZES, [[0.0] * len(SIZES)])
        assert set(only(plot(fit, [reading])).points.relative_residual) == {None}

    def test_sizes_that_were_not_fitted_to_are_marked(self) -> None:
        sizes, times = samples([line(4.0, 2.0)])
        narrow = line(4.0, 2.0, from_bytes=256, to_bytes=1024)
        fit = direct_fit(stage_fit("wire", [narrow], sizes, times))
        stage = only(plot(fit, [direct_reading(["wire"], sizes, [times])]))
        used = {
            size
            for size, is_used in zip(stage.points.message_bytes, stage.points.is_used, strict=True)
            if is_used
        }
        assert used == {256, 512, 1024}
        (piece,) = stage.pieces
        assert (piece.message_bytes[0], piece.message_bytes[-1]) == (256, 1024)

    def test_steps_that_form_one_stage_are_combined(self) -> None:
        sizes, first = samples([line(4.0, 2.0)], seed=1)
        _, second = samples([line(4.0, 2.0)], seed=2)
        reading = direct_reading(["a", "b"], sizes, [first, second])
        for combine, together in (
            (Combine.OVERLAP, max),
            (Combine.SEQUENCE, lambda *two: sum(two)),
        ):
            group = StepGroup("both", ("a", "b"), combine)
            fit = direct_fit(stage_fit("both", [line(8.0, 4.0)], sizes, first))
            stage = only(plot(fit, [reading], FitOptions(groups=(group,))))
            expected = [together(*two) for two in zip(first, second, strict=True)]
            assert pairs(stage) == sorted(zip(sizes, expected, strict=True))

    def test_from_outside_latencies_are_the_total_and_arrivals_the_bottleneck(self) -> None:
        sizes, times = samples([line(4.0, 2.0)])
        half = [time / 2 for time in times]
        total = stage_fit("total", [line(4.0, 2.0)], sizes, times)
        slowest = stage_fit("bottleneck", [line(2.0, 1.0)], sizes, half)
        fit = TraceFit(
            TraceKind.INDIRECT, FitMethod.ROBUST, (), aggregate=AggregateFit(total, slowest)
        )
        readings = [
            Reading("a", MessageTrace(latency=Samples(sizes, times))),
            Reading("b", MessageTrace(interarrival=Samples(sizes, half))),
        ]
        found = plot(fit, readings)
        assert [stage.role for stage in found.stages] == [PlotRole.TOTAL, PlotRole.BOTTLENECK]
        assert pairs(found.stages[0]) == sorted(zip(sizes, times, strict=True))
        assert pairs(found.stages[1]) == sorted(zip(sizes, half, strict=True))

    def test_latencies_of_several_files_come_together(self) -> None:
        sizes, times = samples([line(4.0, 2.0)])
        fit = TraceFit(
            TraceKind.END_TO_END,
            FitMethod.ROBUST,
            (),
            (stage_fit("end to end", [line(4.0, 2.0)], sizes, times),),
        )
        reading = Reading("a", MessageTrace(latency=Samples(sizes, times)))
        assert len(only(plot(fit, [reading, reading])).points) == 2 * len(sizes)

    def test_direct_traces_of_several_files_come_together(self) -> None:
        fit, readings = one_stage()
        stage = only(plot(fit, [*readings, *readings]))
        assert len(stage.points) == 2 * len(only(plot(fit, readings)).points)

    def test_medians_stand_in_for_samples_that_the_traces_do_not_hold(self) -> None:
        fit, readings = one_stage()
        renamed = direct_fit(replace(fit.stages[0], name="elsewhere"))
        stage = only(plot(renamed, readings))
        assert stage.shows_medians
        assert pairs(stage) == [(one.message_bytes, one.median_us) for one in fit.stages[0].sizes]


class TestThinning:
    def test_a_million_samples_leave_extremes_and_an_even_choice(self) -> None:
        """Whatever order they came in; every one is a sample as it was measured."""
        lines = switched()
        rows = 1_000_000
        noise = np.random.default_rng(3)
        sizes = noise.choice(SIZES, rows)
        fitted = np.array([fitted_us(lines, size) for size in SIZES])[np.searchsorted(SIZES, sizes)]
        times = fitted * np.exp(0.02 * noise.standard_normal(rows))
        fit = direct_fit(stage_fit("wire", lines, SIZES, fitted[: len(SIZES)].tolist()))
        stage = only(plot(fit, [direct_reading(["wire"], sizes, [times])]))
        order = noise.permutation(rows)
        again = only(plot(fit, [direct_reading(["wire"], sizes[order], [times[order]])]))
        assert stage == again
        assert 0.9 * MAX_POINTS <= len(stage.points) <= MAX_POINTS
        assert stage.num_samples == rows
        measured = set(zip(sizes.tolist(), times.tolist(), strict=True))
        assert set(pairs(stage)) <= measured
        for size in SIZES:
            shown = [time for where, time in pairs(stage) if where == size]
            own = times[sizes == size]
            assert (min(shown), max(shown)) == (own.min(), own.max())
            assert np.median(shown) == pytest.approx(np.median(own), rel=1e-3)

    @given(st.integers(2, 3_000), st.integers(0, 10))
    def test_sizes_that_are_all_different(self, sizes: int, seed: int) -> None:
        """Bounded, with the ends of both axes, and without two of one sample."""
        noise = np.random.default_rng(seed)
        x = np.unique(noise.integers(1, 2**40, sizes))
        y = np.exp(noise.standard_normal(len(x)))
        fit = direct_fit(stage_fit("wire", [line(1.0, 0.0, from_bytes=1, to_bytes=2**40)]))
        points = only(plot(fit, [direct_reading(["wire"], x, [y])])).points
        assert len(points) == min(len(points), MAX_POINTS, len(x))
        assert len(points) >= min(len(x), MAX_POINTS // 2)
        assert len(set(points.message_bytes)) == len(points)
        assert {x[0], x[-1]} <= set(points.message_bytes)
        assert {y.min(), y.max()} <= set(points.time_us)

    def test_many_stages_share_the_points(self) -> None:
        sizes, times = samples([line(4.0, 2.0)], repetitions=100)
        names = [f"s{place}" for place in range(64)]
        fit = direct_fit(*[stage_fit(name, [line(4.0, 2.0)]) for name in names])
        found = plot(fit, [direct_reading(names, sizes, [times] * 64)])
        assert {len(stage.points) <= MIN_POINTS + 12 for stage in found.stages} == {True}


class TestLines:
    def test_pieces_end_where_ranges_do_and_leave_the_switch_open(self) -> None:
        fit, readings = one_stage()
        first, second = only(plot(fit, readings)).pieces
        assert (first.message_bytes[0], first.message_bytes[-1]) == (64, 8192)
        assert (second.message_bytes[0], second.message_bytes[-1]) == (8193, 2**20)
        assert (first.up_to_bytes, second.up_to_bytes) == (8192, None)
        for piece, part in zip((first, second), switched(), strict=True):
            for size, time in zip(piece.message_bytes, piece.time_us, strict=True):
                assert time == pytest.approx(part.overhead_us + part.ns_per_byte * size / 1000.0)
            ratios = [right / left for left, right in pairwise(piece.message_bytes)]
            assert max(ratios) < 1.2

    def test_the_band_is_that_of_the_mean(self) -> None:
        """By the covariance matrix of the two estimates, and their own quantile."""
        fit, readings = one_stage()
        for piece, part in zip(only(plot(fit, readings)).pieces, switched(), strict=True):
            errors = np.diag([part.overhead_std_error_us, part.ns_per_byte_std_error / 1000.0])
            together = errors @ np.array([[1.0, -0.5], [-0.5, 1.0]]) @ errors
            for size, low, time, high in zip(
                piece.message_bytes, piece.low_us, piece.time_us, piece.high_us, strict=True
            ):
                row = np.array([1.0, size])
                half = 2.1 * float(row @ together @ row) ** 0.5
                assert high - time == pytest.approx(half)
                assert low == pytest.approx(max(0.0, time - half))

    def test_errors_that_are_not_finite_give_no_band(self) -> None:
        part = replace(line(4.0, 2.0), overhead_std_error_us=float("inf"))
        fit = direct_fit(stage_fit("wire", [part]))
        (piece,) = only(plot(fit, [direct_reading(["wire"], SIZES, [[1.0] * len(SIZES)])])).pieces
        assert piece.low_us == piece.time_us == piece.high_us

    def test_a_range_of_a_single_size_is_a_single_point(self) -> None:
        parts = (line(4.0, 2.0, up_to_bytes=64, to_bytes=64), line(30.0, 0.5, from_bytes=65))
        fit = direct_fit(stage_fit("wire", parts))
        reading = direct_reading(["wire"], SIZES, [[1.0] * len(SIZES)])
        first, _ = only(plot(fit, [reading])).pieces
        assert first.message_bytes == (64.0,)

    def test_a_fit_that_does_not_tell_its_sizes_reaches_over_those_measured(self) -> None:
        fit = direct_fit(stage_fit("wire", [line(4.0, 2.0, from_bytes=0, to_bytes=0)]))
        reading = direct_reading(["wire"], SIZES, [[1.0] * len(SIZES)])
        (piece,) = only(plot(fit, [reading])).pieces
        assert (piece.message_bytes[0], piece.message_bytes[-1]) == (SIZES[0], SIZES[-1])

    @given(
        st.floats(0.0, 1e12),
        st.floats(0.0, 1e9),
        st.lists(st.tuples(st.integers(1, 2**48), st.floats(0.0, 1e12)), min_size=1, max_size=20),
    )
    def test_everything_is_finite(
        self, overhead_us: float, ns_per_byte: float, rows: list[tuple[int, float]]
    ) -> None:
        """Whatever was measured and fitted, inside the limits."""
        sizes, times = zip(*sorted(rows), strict=True)
        part = line(overhead_us, ns_per_byte, from_bytes=sizes[0], to_bytes=sizes[-1])
        fit = direct_fit(stage_fit("wire", [part], sizes, times, outliers_a_size=1))
        stage = only(plot(fit, [direct_reading(["wire"], sizes, [times])]))
        numbers = [number for number in stage.points.relative_residual if number is not None]
        for piece in stage.pieces:
            numbers += [*piece.message_bytes, *piece.time_us, *piece.low_us, *piece.high_us]
        assert all(map(isfinite, numbers))


class TestSignatures:
    def test_costs_by_size_computation_and_burst(self) -> None:
        fit, readings = signatures()
        found = plot(fit, readings)
        assert [one.message_bytes for one in found.signatures] == [64, 1024]
        curves = found.signatures[0].curves
        assert [curve.computation_us for curve in curves] == [0.0, 5.0, 20.0]
        assert curves[1].bursts == (1, 4, 16, 64)
        assert curves[1].cost_us == pytest.approx([2.0 + 5.0 + 0.064 + 1.0] * 4)  # the median

    def test_signatures_are_bounded(self) -> None:
        fit, readings = signatures()
        rows = range(1, 5_000)
        trace = replace(
            readings[0].trace,  # type: ignore[type-var]
            message_bytes=[64] * len(rows),
            bursts=list(rows),
            computation_us=[float(row % 40) for row in rows],
            cost_us=[1.0] * len(rows),
        )
        (found,) = plot(fit, [Reading("signature CSV", trace)]).signatures  # type: ignore[arg-type]
        assert len(found.curves) == MAX_CURVES
        assert {len(curve.bursts) <= MAX_BURSTS for curve in found.curves} == {True}
        assert (found.curves[0].computation_us, found.curves[-1].computation_us) == (0.0, 39.0)
