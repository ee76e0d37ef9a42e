"""Measurements of whole messages that are one stage."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.errors import InvalidInput
from domain.fit import Combine, ExcludedSample, FitOptions, StepGroup
from domain.measurement import DirectTrace, MessageTrace, Reading, Samples, Trace, TraceKind
from domain.pipeline import Pipeline
from fitting import fit, plot
from fitting.as_stage import AS_STAGE

SIZES = (64, 256, 1024, 4096, 16384, 65536)
COPY = FitOptions(as_stage="copy")


def _samples(overhead_us: float, ns_per_byte: float) -> Samples:
    return Samples(SIZES * 3, [overhead_us + ns_per_byte * x / 1000.0 for x in SIZES * 3])


def _reading(trace: Trace) -> Reading:
    return Reading("test", trace, (("format", "test"),))


class TestAsStage:
    """What the user calls a stage is fitted as one."""

    @pytest.mark.parametrize("name", ["latency", "interarrival"])
    def test_one_kind_of_time_is_the_stage(self, name: str) -> None:
        readings = [_reading(MessageTrace(**{name: _samples(2.0, 0.5)}))] * 2
        found = fit(readings, COPY)
        assert found.kind is TraceKind.DIRECT
        assert dict(found.understood)[f"file_1_{AS_STAGE}"] == "copy"
        (stage,) = found.stages
        assert (stage.name, stage.num_samples) == ("copy", 36)
        model = found.to_model()
        assert isinstance(model, Pipeline)
        assert model.stages[0].time_us(4096) == pytest.approx(2.0 + 0.5 * 4.096)

    def test_what_is_left_out_is_named_by_the_stage(self) -> None:
        """And a plot shows the others."""
        reading = _reading(MessageTrace(_samples(2.0, 0.5)))
        time_us = 2.0 + 0.5 * 64 / 1000.0
        options = FitOptions(excluded=(ExcludedSample("copy", 64, time_us),), as_stage="copy")
        found = fit([reading], options)
        assert found.stages[0].num_samples == 15
        assert plot(found, [reading], options).stages[0].num_samples == 15

    @pytest.mark.parametrize(
        "trace",
        [
            MessageTrace(_samples(9.0, 3.0), _samples(2.0, 0.5)),
            DirectTrace(("copy",), SIZES, range(6), (tuple(map(float, SIZES)),)),
        ],
    )
    def test_anything_else_is_refused(self, trace: Trace) -> None:
        with pytest.raises(InvalidInput) as refusal:
            fit([_reading(trace)], COPY)
        assert refusal.value.field == "as_stage"

    def test_two_files_of_two_kinds_are_refused(self) -> None:
        files = [
            _reading(MessageTrace(_samples(9.0, 3.0))),
            _reading(MessageTrace(None, _samples(2.0, 0.5))),
        ]
        with pytest.raises(InvalidInput, match="one stage has one time"):
            fit(files, COPY)
        twice = fit([files[0], files[0]], COPY)
        assert twice.stages[0].num_samples == 2 * fit(files[:1], COPY).stages[0].num_samples

    @pytest.mark.parametrize("name", ["", "x" * 101])
    def test_a_name_has_1_to_100_characters(self, name: str) -> None:
        with pytest.raises(InvalidInput):
            FitOptions(as_stage=name)

    def test_one_stage_has_no_steps_to_group(self) -> None:
        group = StepGroup("both", ("copy", "wire"), Combine.OVERLAP)
        with pytest.raises(InvalidInput, match="no steps") as refusal:
            fit([_reading(MessageTrace(_samples(2.0, 0.5)))], replace(COPY, groups=(group,)))
        assert refusal.value.field == "as_stage"
