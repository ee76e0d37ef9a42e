"""A pipeline of stages that were measured each by itself, in files of their own.

Source    Wang98 sec. 5.3 measures the parts of a pipeline directly; here each part has its own
          sizes and repetitions, so that each gets the fit that it would get alone. Stages of one
          processor become one stage (stage_sum.py).
Traps     nobody has timed the stages side by side: that they do not slow each other down is an
          assumption, and is said. Stages of one processor that are no neighbours cannot be one
          stage: the model lets them overlap, and that is said too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby

from domain.errors import InvalidInput, SluiceError
from domain.fit import ComposedStage, FitOptions, StageFit, TraceFit
from domain.fit_plot import FitPlot, StagePlot
from domain.measurement import DirectTrace, MessageTrace, Reading, TraceKind
from domain.solution import Notice
from fitting.as_stage import as_stage
from fitting.combine import fit_readings
from fitting.exclusion import without_excluded
from fitting.plotting import plot_fit
from fitting.stage_sum import sum_of

_FIELD = "stages"


@dataclass(frozen=True, slots=True)
class _Part:
    """One stage, its readings as direct ones of this stage alone, and how to fit them."""

    stage: ComposedStage
    readings: Sequence[Reading]
    options: FitOptions


def fit_composed(readings: Sequence[Reading], options: FitOptions) -> TraceFit:
    """Fit each stage of `options.composed` to its own files, and return the pipeline of all.

    Raises InvalidInput where files and stages do not go together, UnreadableTrace and PoorFit,
    which name the stage.
    """
    parts = list(_parts(readings, options))
    fits = list[TraceFit]()
    for part in parts:
        with _naming(part.stage):
            fits.append(fit_readings(part.readings, part.options))
    stages = [stage for _, stage in _joined(parts, [fit.stages[0] for fit in fits])]
    understood = (
        (f"{part.stage.name}_{name}", value)
        for part, fit in zip(parts, fits, strict=True)
        for name, value in fit.understood
    )
    notices = (notice for fit in fits for notice in fit.notices)
    return TraceFit(
        kind=TraceKind.DIRECT,
        method=options.method,
        understood=tuple(understood),
        stages=tuple(stages),
        notices=(*_assumed(parts), *notices),
    )


def plot_composed(found: TraceFit, readings: Sequence[Reading], options: FitOptions) -> FitPlot:
    """Return what a plot of this fit shows; a stage of several files' sums shows medians."""
    parts = list(_parts(readings, options))
    shown = list[StagePlot]()
    stages = iter(found.stages)
    for run in _runs(parts):
        alone = replace(found, stages=(next(stages),))
        of_one = run[0].readings if len(run) == 1 else ()
        shown += plot_fit(alone, of_one, replace(options, composed=())).stages
    return FitPlot(tuple(shown))


def _parts(readings: Sequence[Reading], options: FitOptions) -> Iterator[_Part]:
    expected = sum(stage.files for stage in options.composed)
    if expected != len(readings):
        raise InvalidInput(f"expected {expected} files, got {len(readings)}", field=_FIELD)
    names = [stage.name for stage in options.composed]
    place = 0
    for stage in options.composed:
        own = readings[place : place + stage.files]
        # What names no stage is not found in the first one's, which says so.
        excluded = tuple(
            one
            for one in options.excluded
            if one.stage == stage.name or (not place and one.stage not in names)
        )
        alone = replace(options, composed=(), excluded=excluded)
        with _naming(stage):
            kept = without_excluded(_of_stage(own, stage), alone)
        yield _Part(stage, kept, replace(alone, excluded=()))
        place += stage.files


def _of_stage(readings: Sequence[Reading], stage: ComposedStage) -> Sequence[Reading]:
    """The readings as direct ones of this stage. Raises InvalidInput."""
    direct = [one for one in readings if isinstance(one.trace, DirectTrace)]
    others = [one for one in readings if not isinstance(one.trace, DirectTrace)]
    if others and stage.step is not None:
        raise InvalidInput("only a file of steps has a step of this name", field=_FIELD)
    if any(not isinstance(one.trace, MessageTrace) for one in others):
        raise InvalidInput("signatures are of end points, and are no stage", field=_FIELD)
    try:
        renamed = as_stage(others, FitOptions(as_stage=stage.name))
    except InvalidInput:
        raise InvalidInput(
            "latencies and inter-arrival times are of a whole path with several stages; give "
            "either as the times of this one",
            field=_FIELD,
        ) from None
    return [*(_step_of(one, stage) for one in direct), *renamed]


def _step_of(reading: Reading, stage: ComposedStage) -> Reading:
    trace = reading.trace
    assert isinstance(trace, DirectTrace)
    names = trace.stage_names
    step = stage.step or (names[0] if len(names) == 1 else None)
    if step not in names:
        asked = f"has no step {step}" if step else "has several steps"
        raise InvalidInput(f"the file {asked}: name one of {', '.join(names[:8])}", field=_FIELD)
    column = trace.stage_us[names.index(step)]
    own = DirectTrace((stage.name,), trace.message_bytes, trace.repetitions, (column,))
    return replace(reading, trace=own)


@contextmanager
def _naming(stage: ComposedStage) -> Iterator[None]:
    """Have a refusal of its files name the stage."""
    try:
        yield
    except SluiceError as refusal:
        refusal.detail = f"stage {stage.name}: {refusal.detail}"
        refusal.field = _FIELD
        raise


def _runs(parts: Sequence[_Part]) -> Iterator[list[_Part]]:
    """Neighbours of one processor together, others alone."""
    numbered = enumerate(parts)
    for _, run in groupby(numbered, lambda one: one[1].stage.processor or one[0]):
        yield [part for _, part in run]


def _joined(
    parts: Sequence[_Part], fits: Sequence[StageFit]
) -> Iterator[tuple[list[_Part], StageFit]]:
    left = iter(fits)
    for run in _runs(parts):
        own = [next(left) for _ in run]
        yield run, own[0] if len(own) == 1 else sum_of(own)


def _assumed(parts: Sequence[_Part]) -> Iterator[Notice]:
    """What nobody has measured: that the stages do not slow each other down."""
    runs = list(_runs(parts))
    if len(runs) > 1:
        yield Notice(
            "stages_measured_apart",
            "the stages were measured each by itself: that they are as fast side by side is an "
            "assumption. Time whole messages, cut and uncut, before you rely on it",
        )
    seen = dict[str, list[str]]()
    for run in runs:
        if run[0].stage.processor is not None:
            name = " + ".join(part.stage.name for part in run)
            seen.setdefault(run[0].stage.processor, []).append(name)
    for processor, names in seen.items():
        if len(names) > 1:
            yield Notice(
                "processor_shared",
                f"{', '.join(names)} work on {processor} and are no neighbours: the model lets "
                "them overlap, which one processor cannot, so that cuts gain less than it says",
            )
