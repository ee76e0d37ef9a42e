"""Pipelines of stages that were measured each by itself."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import hypot

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InvalidInput, PoorFit
from domain.fit import Combine, ComposedStage, ExcludedSample, FitOptions, StepGroup
from domain.measurement import (
    DirectTrace,
    MessageTrace,
    Reading,
    Samples,
    SignatureTrace,
    Trace,
    TraceKind,
)
from domain.pipeline import Pipeline
from domain.uncertain_fit import uncertain_model
from fitting import fit, plot
from fitting.stage_sum import sum_of

SIZES = tuple(256 << power for power in range(12))
REPETITIONS = 4
JUMP = 8192


def _time_us(overhead_us: float, ns_per_byte: float, x: int, at: int, jump_us: float) -> float:
    noise = 1.0 + 0.004 * ((at * 2654435761) % 7 - 3) / 3
    return (overhead_us + (jump_us if x > JUMP else 0.0) + ns_per_byte * x / 1000.0) * noise


def _column(overhead_us: float, ns_per_byte: float, jump_us: float = 0.0) -> tuple[float, ...]:
    rows = enumerate(SIZES * REPETITIONS)
    return tuple(_time_us(overhead_us, ns_per_byte, x, at, jump_us) for at, x in rows)


def _direct(**columns: tuple[float, ...]) -> Reading:
    count = len(SIZES) * REPETITIONS
    trace = DirectTrace(tuple(columns), SIZES * REPETITIONS, range(count), tuple(columns.values()))
    return _reading(trace)


def _messages(overhead_us: float, ns_per_byte: float) -> Reading:
    times = _column(overhead_us, ns_per_byte)
    return _reading(MessageTrace(Samples(SIZES * REPETITIONS, times)))


def _reading(trace: Trace) -> Reading:
    return Reading("test", trace, (("format", "test"),))


COPY = _column(5.0, 0.4)
PACK = _column(2.0, 0.1, jump_us=20.0)
TWO = FitOptions(composed=(ComposedStage("a"), ComposedStage("b")))


class TestPipelines:
    """Each stage gets the fit that it gets alone."""

    def test_stages_of_files_of_their_own(self) -> None:
        readings = [_direct(copy=COPY), _messages(3.0, 0.2), _messages(3.0, 0.2)]
        options = FitOptions(composed=(ComposedStage("d2h"), ComposedStage("net", 2)))
        found = fit(readings, options)
        assert found.kind is TraceKind.DIRECT
        model = found.to_model()
        assert isinstance(model, Pipeline)
        assert [stage.name for stage in model.stages] == ["d2h", "net"]
        alone = fit([readings[0]]).stages[0]
        assert found.stages[0].lines == alone.lines
        assert found.stages[1].num_samples == 2 * len(SIZES) * REPETITIONS
        assert model.stages[1].time_us(4096) == pytest.approx(3.0 + 0.8192, rel=0.02)
        assert [one.code for one in found.notices][:1] == ["stages_measured_apart"]
        assert dict(found.understood)["d2h_format"] == "test"
        assert uncertain_model(found) is not None
        shown = plot(found, readings, options)
        assert [one.name for one in shown.stages] == ["d2h", "net"]
        assert not any(one.shows_medians for one in shown.stages)

    def test_one_step_of_a_file_with_several(self) -> None:
        both = _direct(copy=COPY, pack=PACK)
        options = FitOptions(
            composed=(ComposedStage("a", step="pack"), ComposedStage("b", step="copy"))
        )
        found = fit([both, both], options)
        alone = {stage.name: stage.lines for stage in fit([both]).stages}
        assert [stage.lines for stage in found.stages] == [alone["pack"], alone["copy"]]

    def test_samples_are_left_out_of_their_stage(self) -> None:
        options = FitOptions(
            composed=(ComposedStage("a"), ComposedStage("b")),
            excluded=(ExcludedSample("b", 256, COPY[0]), ExcludedSample("c", 1, 1.0)),
        )
        found = fit([_direct(copy=COPY), _direct(copy=COPY)], options)
        assert [stage.num_samples for stage in found.stages] == [48, 47]
        assert "excluded_not_found" in [one.code for one in found.notices]

    @pytest.mark.parametrize(
        ("stages", "words"),
        [
            ((ComposedStage("a"),), "expected 1 files, got 2"),
            ((ComposedStage("a"), ComposedStage("b")), "stage b: the file has several steps"),
            ((ComposedStage("a"), ComposedStage("b", step="x")), "stage b: the file has no step x"),
            ((ComposedStage("a", step="x"), ComposedStage("b", step="pack")), "stage a: "),
        ],
    )
    def test_what_does_not_go_together_is_refused(
        self, stages: tuple[ComposedStage, ...], words: str
    ) -> None:
        readings = [_messages(1.0, 1.0), _direct(copy=COPY, pack=PACK)]
        with pytest.raises(InvalidInput) as refused:
            fit(readings, FitOptions(composed=stages))
        assert words in refused.value.detail
        assert refused.value.field == "stages"

    def test_whole_paths_and_end_points_are_no_stage(self) -> None:
        samples = Samples(SIZES, COPY[: len(SIZES)])
        both = _reading(MessageTrace(samples, samples))
        signature = _reading(SignatureTrace((64,), (1,), (0.0,), (1.0,)))
        for reading, words in ((both, "of a whole path"), (signature, "of end points")):
            with pytest.raises(InvalidInput, match=words):
                fit([reading], FitOptions(composed=(ComposedStage("a"),)))

    def test_a_refusal_of_its_files_names_the_stage(self) -> None:
        files = [_direct(copy=COPY), _direct(pack=PACK, copy=COPY)]
        stages = (ComposedStage("a", 2, step="pack"),)
        with pytest.raises(InvalidInput) as refused:
            fit(files, FitOptions(composed=stages))
        assert refused.value.detail.startswith("stage a: the file has no step pack")
        with pytest.raises(PoorFit) as poor:
            fit([files[0], _reading(DirectTrace(("b",), (64,), (0,), ((1.0,),)))], TWO)
        assert poor.value.detail.startswith("stage b: ")

    @pytest.mark.parametrize(
        "more",
        [
            {"groups": (StepGroup("g", ("a", "b"), Combine.OVERLAP),)},
            {"as_stage": "a"},
            {"composed": (ComposedStage("a"), ComposedStage("a"))},
        ],
    )
    def test_options_that_contradict_are_refused(self, more: dict[str, object]) -> None:
        with pytest.raises(InvalidInput):
            FitOptions(**{"composed": (ComposedStage("a"),), **more})  # type: ignore[arg-type]

    @pytest.mark.parametrize("wrong", [{"name": ""}, {"files": 0}, {"step": "x" * 101}])
    def test_stages_that_cannot_be_are_refused(self, wrong: dict[str, object]) -> None:
        with pytest.raises(InvalidInput):
            ComposedStage(**{"name": "a", **wrong})  # type: ignore[arg-type]


class TestOneProcessor:
    """Neighbours of one processor are one stage, whose time is the sum."""

    def test_neighbours_count_as_one_stage(self) -> None:
        readings = [_direct(copy=COPY), _direct(pack=PACK), _messages(3.0, 0.2)]
        cpu = [ComposedStage(name, processor="cpu") for name in ("copy", "pack")]
        options = FitOptions(composed=(*cpu, ComposedStage("net")))
        found = fit(readings, options)
        assert [stage.name for stage in found.stages] == ["copy + pack", "net"]
        both = _direct(copy=COPY, pack=PACK)
        group = StepGroup("cpu", ("copy", "pack"), Combine.SEQUENCE)
        together = fit([both], FitOptions(groups=(group,))).stages[0].to_stage()
        apart = found.stages[0].to_stage()
        for x in SIZES:
            assert apart.time_us(x) == pytest.approx(together.time_us(x), rel=0.02)
        assert uncertain_model(found) is not None
        shown = plot(found, readings, options).stages
        assert [one.shows_medians for one in shown] == [True, False]
        assert len(shown[0].points) == len(SIZES)

    def test_others_of_one_processor_are_named(self) -> None:
        readings = [_direct(copy=COPY), _messages(3.0, 0.2), _direct(pack=PACK)]
        stages = [
            ComposedStage("a", processor="engine"),
            ComposedStage("net"),
            ComposedStage("b", processor="engine"),
        ]
        found = fit(readings, FitOptions(composed=tuple(stages)))
        assert len(found.stages) == 3
        (notice,) = [one for one in found.notices if one.code == "processor_shared"]
        assert "a, b work on engine" in notice.detail

    def test_no_sizes_in_common_are_refused(self) -> None:
        near, far = fit([_direct(copy=COPY)]).stages[0], fit([_direct(pack=PACK)]).stages[0]
        (line,) = near.lines
        apart = replace(near, lines=(replace(line, from_bytes=2**30, to_bytes=2**31),))
        with pytest.raises(InvalidInput, match="share a processor and no measured sizes"):
            sum_of([apart, far])

    @given(
        st.lists(
            st.tuples(st.floats(0.1, 50.0), st.floats(0.01, 5.0), st.floats(0.0, 100.0)),
            min_size=2,
            max_size=3,
        )
    )
    def test_the_sum_is_the_sum_at_every_size(
        self, stages: list[tuple[float, float, float]]
    ) -> None:
        fits = [
            fit([_direct(one=_column(*costs))], FitOptions(max_ranges=3)).stages[0]
            for costs in stages
        ]
        found = sum_of(fits)
        joined, parts = found.to_stage(), [one.to_stage() for one in fits]
        ends = [line.up_to_bytes or 0 for one in fits for line in one.lines]
        for x in {*SIZES, *(end + step for end in ends for step in (0, 1) if end + step)}:
            assert joined.time_us(x) == pytest.approx(sum(one.time_us(x) for one in parts))
        for left, right in pairwise(found.lines):
            assert left.from_bytes <= left.to_bytes <= (left.up_to_bytes or 0)
            assert (left.up_to_bytes or 0) < right.from_bytes <= right.to_bytes
        first = [one.lines[0] for one in fits]
        error_us = hypot(*(line.overhead_std_error_us for line in first))
        assert found.lines[0].overhead_std_error_us == pytest.approx(error_us)
