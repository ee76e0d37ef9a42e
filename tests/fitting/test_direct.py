"""fitting/direct.py and fitting/overlap.py: a fit a stage, abstract stages, totals."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from domain.errors import InvalidInput, PoorFit
from domain.fit import Combine, FitMethod, FitOptions, FitShape, StepGroup
from domain.measurement import DirectTrace
from domain.pipeline import Pipeline
from fitting.direct import abstract_stages, fit_direct
from fitting.readers.csv_direct import SPEC

EXAMPLE = Path(__file__).parents[2] / "examples" / "local-path-direct.csv"
SIZES = [64, 256, 1024, 4096, 16384, 65536]
STEPS = {"send": (3.0, 0.004), "dma": (2.0, 0.010), "wire": (4.0, 0.009), "receive": (5.0, 0.006)}


def trace_of(
    sizes: Sequence[int], *stages: Sequence[float], total: Sequence[float] | None = None
) -> DirectTrace:
    names = tuple(f"stage {place}" for place in range(len(stages)))
    return DirectTrace(
        names, tuple(sizes), (0,) * len(sizes), tuple(tuple(s) for s in stages), total
    )


def steps_trace(
    total: str, *, noise: float = 0.01, outliers: float = 0.0, seed: int = 5
) -> DirectTrace:
    """Four steps; `total` is "sum", "overlap" of dma and wire, "two overlaps", or "more"."""
    random = np.random.default_rng(seed)
    sizes = np.repeat(SIZES, 20)
    steps = np.array([a + b * sizes for a, b in STEPS.values()])
    steps *= 1.0 + noise * random.standard_normal(steps.shape)
    steps *= np.where(random.random(steps.shape) < outliers, 4.0, 1.0)
    whole = {
        "sum": steps.sum(axis=0),
        "overlap": steps[0] + np.maximum(steps[1], steps[2]) + steps[3],
        "two overlaps": np.maximum(steps[0], steps[1]) + np.maximum(steps[2], steps[3]),
        "more": steps.sum(axis=0) + 8.0 + 0.002 * sizes,
    }[total]
    return DirectTrace(
        tuple(STEPS),
        tuple(sizes.tolist()),
        (0,) * len(sizes),
        tuple(tuple(row.tolist()) for row in steps),
        tuple(whole.tolist()),
    )


def codes(trace: DirectTrace, options: FitOptions | None = None) -> list[str]:
    return [notice.code for notice in fit_direct(trace, options or FitOptions()).notices]


class TestStages:
    def test_one_fit_a_column_in_order(self) -> None:
        fit = fit_direct(steps_trace("sum"), FitOptions())
        assert [stage.name for stage in fit.stages] == list(STEPS)
        for stage, (a, b) in zip(fit.stages, STEPS.values(), strict=True):
            assert len(stage.lines) == 1
            assert stage.lines[0].overhead_us == pytest.approx(a, rel=0.02)
            assert stage.lines[0].ns_per_byte == pytest.approx(1000 * b, rel=0.02)
        assert fit.notices == ()

    def test_the_fit_is_a_pipeline_of_the_domain(self) -> None:
        rows = SIZES * 3
        fit = fit_direct(trace_of(rows, [2.0 + 0.5 * size for size in rows]), FitOptions())
        model = fit.to_model()
        assert isinstance(model, Pipeline)
        assert model.stages[0].time_us(1000) == pytest.approx(502.0)

    def test_the_method_is_said_back(self) -> None:
        options = FitOptions(FitMethod.ORDINARY, FitShape.LINE)
        fit = fit_direct(steps_trace("sum"), options, understood=(("time_unit", "µs"),))
        assert fit.method is FitMethod.ORDINARY
        assert {stage.method for stage in fit.stages} == {FitMethod.ORDINARY}
        assert fit.understood == (("time_unit", "µs"),)

    def test_reading_does_not_load_numpy(self) -> None:
        """Only a fit does: whoever names this room pays nothing."""
        code = (
            "import sys, fitting, fitting.direct;"
            "sys.exit('numpy' in sys.modules or 'scipy' in sys.modules)"
        )
        root = Path(__file__).parents[2]
        assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


class TestRefusals:
    def test_one_size_only_names_what_is_missing(self) -> None:
        with pytest.raises(PoorFit, match=r"64 B.*at least 2 distinct message sizes"):
            fit_direct(trace_of([64, 64, 64], [1.0, 1.1, 0.9]), FitOptions())

    def test_two_rows_leave_no_error_to_estimate(self) -> None:
        with pytest.raises(PoorFit, match="at least 3 rows, got 2"):
            fit_direct(trace_of([64, 128], [1.0, 2.0]), FitOptions())

    def test_a_slope_beyond_what_a_stage_may_cost(self) -> None:
        with pytest.raises(PoorFit, match="are its times in µs"):
            fit_direct(trace_of([1, 2, 3], [0.0, 1e9, 2e9]), FitOptions())


class TestGroups:
    def test_overlap_counts_the_larger_and_sequence_the_sum(self) -> None:
        trace = trace_of([8, 8], [1.0, 5.0], [2.0, 3.0], [4.0, 4.0], [1.0, 1.0])
        groups = (
            StepGroup("network", ("stage 1", "stage 0"), Combine.OVERLAP),
            StepGroup("host", ("stage 2", "stage 3"), Combine.SEQUENCE),
        )
        assert abstract_stages(trace, groups) == (("network", (2.0, 5.0)), ("host", (5.0, 5.0)))

    def test_a_group_takes_the_place_of_its_steps(self) -> None:
        groups = (StepGroup("network", ("dma", "wire"), Combine.OVERLAP),)
        fit = fit_direct(steps_trace("overlap"), FitOptions(groups=groups))
        assert [stage.name for stage in fit.stages] == ["send", "network", "receive"]
        network = fit.stages[1].to_stage()
        for size in (64, 65536):
            slower = max(a + b * size for a, b in (STEPS["dma"], STEPS["wire"]))
            assert network.time_us(size) == pytest.approx(slower, rel=0.03)

    @pytest.mark.parametrize(
        ("groups", "rule"),
        [
            ([("a", ("dma", "tape"))], "group 1: a step is not in the trace, which has send, dma"),
            ([("a", ("send", "wire"))], "group 1: the steps of a group must be neighbours"),
            ([("a", ("send", "dma")), ("b", ("dma", "wire"))], "group 2: a step is used twice"),
            ([("a", ("dma", "dma"))], "group 1: a step is used twice"),
            ([("a", ("dma",))], "group 1: expected two steps or more"),
            ([("send", ("dma", "wire"))], "group 1: its name is that of another stage"),
            ([("a", ("send", "dma")), ("a", ("wire", "receive"))], "name is that of another stage"),
        ],
    )
    def test_groups_that_make_no_sense_are_refused(
        self, groups: list[tuple[str, tuple[str, ...]]], rule: str
    ) -> None:
        given = tuple(StepGroup(name, steps, Combine.OVERLAP) for name, steps in groups)
        with pytest.raises(InvalidInput, match=rule) as refused:
            fit_direct(steps_trace("sum"), FitOptions(groups=given))
        assert refused.value.field == "groups"


class TestTotals:
    @pytest.mark.parametrize("outliers", [0.0, 0.25])
    def test_totals_below_the_sum_name_the_steps_that_overlap(self, outliers: float) -> None:
        fit = fit_direct(steps_trace("overlap", outliers=outliers), FitOptions())
        assert fit.notices[0].code == "steps_overlap"
        assert "at the same time: dma, wire." in fit.notices[0].detail

    def test_two_groups_may_overlap(self) -> None:
        fit = fit_direct(steps_trace("two overlaps"), FitOptions())
        assert fit.notices[0].code == "steps_overlap"
        assert "send, dma and wire, receive" in fit.notices[0].detail

    def test_totals_that_no_overlap_explains(self) -> None:
        trace = trace_of(SIZES * 3, [5.0] * 18, [5.0] * 18, total=[1.0] * 18)
        (notice,) = fit_direct(trace, FitOptions()).notices
        assert notice.code == "steps_overlap"
        assert "no single group" in notice.detail

    @pytest.mark.parametrize("outliers", [0.0, 0.25])
    def test_totals_above_the_sum_say_how_much_is_missing(self, outliers: float) -> None:
        fit = fit_direct(steps_trace("more", outliers=outliers), FitOptions())
        assert fit.notices[0].code == "time_not_measured"
        assert "8.13 µs at the smallest size, 139 µs at the largest" in fit.notices[0].detail

    @pytest.mark.parametrize("outliers", [0.0, 0.25])
    def test_totals_that_agree_need_no_word(self, outliers: float) -> None:
        found = codes(steps_trace("sum", outliers=outliers))
        assert not {"steps_overlap", "time_not_measured"} & set(found)

    def test_the_stated_group_settles_it(self) -> None:
        groups = (StepGroup("network", ("dma", "wire"), Combine.OVERLAP),)
        found = codes(steps_trace("overlap"), FitOptions(groups=groups, shape=FitShape.LINE))
        assert not {"steps_overlap", "time_not_measured"} & set(found)

    def test_the_larger_of_two_steps_has_a_knee_where_they_cross(self) -> None:
        groups = (StepGroup("network", ("dma", "wire"), Combine.OVERLAP),)
        network = fit_direct(steps_trace("overlap"), FitOptions(groups=groups)).stages[1]
        assert 1024 <= (network.lines[0].up_to_bytes or 0) < 4096  # 4 + 0.009 x = 2 + 0.010 x

    def test_without_totals_nothing_is_suggested(self) -> None:
        whole = steps_trace("overlap")
        trace = DirectTrace(
            whole.stage_names, whole.message_bytes, whole.repetitions, whole.stage_us
        )
        assert codes(trace) == []

    def test_totals_of_zero_say_nothing(self) -> None:
        trace = trace_of(SIZES * 3, [0.0] * 18, total=[0.0] * 18)
        assert codes(trace) == []


class TestExample:
    """What a look at the medians of examples/local-path-direct.csv shows."""

    def test_five_stages_and_what_an_engineer_sees(self) -> None:
        fit = fit_direct(_direct(EXAMPLE.read_bytes()), FitOptions())
        stated = {stage.name: set[str]() for stage in fit.stages}
        for notice in fit.notices:
            stated[notice.detail.removeprefix("stage ").split(":")[0]].add(notice.code)
        ends = {stage.name: [line.up_to_bytes for line in stage.lines][:-1] for stage in fit.stages}
        assert len(fit.stages) == 5
        # 0.15 to 0.74 and 0.10 to 0.40 µs; behind 128 KiB caches end: twice the cost.
        assert ends["copy_in"] == ends["copy_out"] == [2048, 131072]
        assert ends["crc32"] == [1024]  # 0.31 ns a byte from 2 KiB, nothing like it below
        assert ends["loopback_tcp"] == [16384]  # as quick at 16 KiB as at 256 B, then 0.28 ns
        assert ends["write_fdatasync"] == []  # sizes deviate by 6 %, and one line does
        assert "not_monotone" in stated["loopback_tcp"]  # 19.8 µs at 64 B, 8.3 at 256 B
        assert "warm_up" in stated["loopback_tcp"]  # 14 of 14 first repetitions are slow
        assert "outliers" in stated["loopback_tcp"]
        assert "outliers" in stated["crc32"]
        assert "negative_overhead_clipped" in stated["copy_in"]
        assert max(len(codes) for codes in stated.values()) <= 8

    def test_fitted_times_are_near_the_medians(self) -> None:
        """From 4 KiB on; below, single times of 0.1 µs jump by their own size."""
        fit = fit_direct(_direct(EXAMPLE.read_bytes()), FitOptions())
        for stage in fit.stages:
            near = [size for size in stage.sizes if size.message_bytes >= 4096]
            assert max(abs(size.relative_residual) for size in near) < 0.3
            assert np.median([abs(size.relative_residual) for size in near]) < 0.15
            assert {size.num_samples for size in stage.sizes} == {25}


def _direct(content: bytes) -> DirectTrace:
    trace = SPEC.read(content, None).trace
    assert isinstance(trace, DirectTrace)
    return trace
