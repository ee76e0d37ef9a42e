"""What is known of the overlap of a fit's stages, and the fit of stages that do not overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from analysis.premise import contradicted
from analysis.structure.detect import structure_of
from analysis.structure.events import messages_of
from contract.limits import MAX_NAME_LENGTH
from domain.fit import Combine, FitOptions, StepGroup, TraceFit
from domain.measurement import DirectTrace, Reading, TraceKind
from domain.solution import Notice
from domain.structure import KnownOverlap

FOUND = "structure"  # the code of the notice that says what was found
STAGES = "stages"  # the line that lists the columns of a file
SAID = "stages_overlap"  # the line of what was understood that says what the user said
_OWN_FORMATS = ("direct CSV", "JSON", "table")  # what other programs write is of pipelines
_JOINED, _BETWEEN = " + ", "between fragments"


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fit, and the readings and the options that it is of."""

    fit: TraceFit
    readings: Sequence[Reading]
    options: FitOptions


def as_said(
    readings: Sequence[Reading], options: FitOptions
) -> tuple[Sequence[Reading], FitOptions]:
    """Return readings and options by which stages are fitted that the user says do not overlap:
    all of them are one. What a trace with begins says of it comes first.

    Raises what `prepared` does.
    """
    from fitting import grouped, prepared

    if options.stages_overlap is not False or options.as_stage is not None or options.composed:
        return readings, options
    traces = [reading.trace for reading in readings if isinstance(reading.trace, DirectTrace)]
    if not traces or len(traces) < len(readings) or all(trace.events for trace in traces):
        return readings, options
    readings = [_with_columns(one, trace) for one, trace in zip(readings, traces, strict=True)]
    if options.groups:
        readings = [grouped(one, options.groups) for one in prepared(readings, options)]
        options = replace(options, groups=(), excluded=())
        traces = [one.trace for one in readings if isinstance(one.trace, DirectTrace)]
    names = traces[0].stage_names
    return readings, replace(options, groups=(_in_sequence(names, names),) if names[1:] else ())


def _with_columns(reading: Reading, trace: DirectTrace) -> Reading:
    """The reading with the columns that it has, which the fit of their sum does not tell."""
    if STAGES in dict(reading.understood):
        return reading
    listed = (STAGES, ", ".join(trace.stage_names))
    return replace(reading, understood=(*reading.understood, listed))


def summed_columns(found: TraceFit) -> tuple[str, ...]:
    """Return the columns of a fit's files whose sum is its stage, as the first of them has these;
    none where nothing says so.
    """
    known = dict(found.understood)
    listed = known.get(STAGES) or known.get(f"file_1_{STAGES}")
    return tuple(listed.split(", ")) if listed else ()


def with_overlap(found: TraceFit, readings: Sequence[Reading], options: FitOptions) -> Fitted:
    """Return the fit with what is known of the overlap of its stages, and without begins.

    What these show outranks what the user says. Stages of which a fragment passes one after
    another are one stage, of the summed times and of what passes between two fragments. Raises
    PoorFit where the sum supports no fit.
    """
    from fitting import fit

    if found.events is None:
        return Fitted(_without_begins(found, readings, options), readings, options)
    structure = structure_of(messages_of(found.events), found.events.stages)
    overlap = KnownOverlap(structure, several_at_once=options.several_at_once)
    said = (Notice(FOUND, structure.sentence), *contradicted(structure, options.stages_overlap))
    readings, options = as_found(overlap, readings, options)
    if options.groups and is_one_stage(overlap):
        found = fit(readings, options)
    found = replace(found, events=None, overlap=overlap, notices=(*said, *found.notices))
    return Fitted(found, readings, options)


def _without_begins(found: TraceFit, readings: Sequence[Reading], options: FitOptions) -> TraceFit:
    """The fit with what is known of the overlap of its stages without begins: what the user says,
    else that durations alone, which the user's own program has written, say nothing of it.

    Stages that were measured each by itself are a pipeline that the user has made of them, what
    tools print of themselves is of pipelines, and steps that are grouped to one stage are told.
    """
    if found.kind is not TraceKind.DIRECT or options.composed or options.as_stage is not None:
        return found
    several, said = options.several_at_once, options.stages_overlap
    is_own = all(reading.format in _OWN_FORMATS for reading in readings)
    if said is not None:
        line = (SAID, "yes, as you said" if said else "no, as you said")
        found = replace(found, understood=(*found.understood, line))
        return replace(found, overlap=KnownOverlap(is_bare=bool(several), several_at_once=several))
    if not is_own or (len(found.stages) == 1 and options.groups):
        return found
    if len(found.stages) > 1:
        found = replace(found, understood=(*found.understood, (SAID, "not said")))
    return replace(found, overlap=KnownOverlap(is_bare=True, several_at_once=several))


def is_one_stage(overlap: KnownOverlap) -> bool:
    """Return whether a fragment passes all stages before the next one begins."""
    found = overlap.structure
    return found is not None and found.is_priced and found.is_priced_as_a_sum


def as_found(
    overlap: KnownOverlap, readings: Sequence[Reading], options: FitOptions
) -> tuple[Sequence[Reading], FitOptions]:
    """Return readings and options by which stages are fitted that overlap so.

    Groups that were asked for stay where stages overlap. Where a fragment passes all of them before
    the next one, they are one stage whatever was asked, of the name of a group that has them all.
    """
    from fitting import join, prepared

    found = overlap.structure
    if found is None or not is_one_stage(overlap) or not readings:
        return readings, options
    trace = join(prepared(readings, options))
    assert isinstance(trace, DirectTrace)
    waited = replace(
        trace,
        stage_names=(*trace.stage_names, _BETWEEN),
        stage_us=(*trace.stage_us, (found.return_us,) * len(trace)),
        events=None,
    )
    group = _in_sequence(trace.stage_names, waited.stage_names)
    asked = (one.name for one in options.groups if set(one.steps) == set(trace.stage_names))
    group = replace(group, name=next(asked, group.name))
    stated = tuple(pair for reading in readings for pair in reading.understood)
    notices = tuple(notice for reading in readings for notice in reading.notices)
    one = Reading(readings[0].format, waited, stated, notices)
    return (one,), replace(options, groups=(group,), excluded=(), columns=None)


def _in_sequence(stages: Sequence[str], steps: Sequence[str]) -> StepGroup:
    """The stages as one, of these steps one after another."""
    name = _JOINED.join(stages)
    name = name if len(name) <= MAX_NAME_LENGTH else "all stages"
    return StepGroup(name, tuple(steps), Combine.SEQUENCE)
