"""What is known of the overlap of a fit's stages, and the fit of stages that do not overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from analysis.structure import messages_of, structure_of
from domain.fit import Combine, FitOptions, StepGroup, TraceFit
from domain.measurement import DirectTrace, Reading, TraceKind
from domain.pipeline import MAX_NAME_LENGTH
from domain.solution import Notice
from domain.structure import KnownOverlap

FOUND = "structure"  # the code of the notice that says what was found
_OWN_FORMATS = ("direct CSV", "JSON", "table")  # what other programs write is of pipelines
_JOINED, _BETWEEN = " + ", "between fragments"


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fit, and the readings and the options that it is of."""

    fit: TraceFit
    readings: Sequence[Reading]
    options: FitOptions


def with_overlap(found: TraceFit, readings: Sequence[Reading], options: FitOptions) -> Fitted:
    """Return the fit with what begins of its stages show, and without these begins.

    Stages of which a fragment passes one after another are one stage, of the summed times and of
    what passes between two fragments. Raises PoorFit where the sum supports no fit.
    """
    from fitting import fit

    if found.events is None:
        return Fitted(_as_bare(found, readings, options), readings, options)
    structure = structure_of(messages_of(found.events), found.events.stages)
    overlap = KnownOverlap(structure, several_at_once=options.several_at_once)
    readings, options = as_found(overlap, readings, options)
    if options.groups and is_one_stage(overlap):
        found = fit(readings, options)
    said = Notice(FOUND, structure.sentence)
    found = replace(found, events=None, overlap=overlap, notices=(said, *found.notices))
    return Fitted(found, readings, options)


def _as_bare(found: TraceFit, readings: Sequence[Reading], options: FitOptions) -> TraceFit:
    """The fit with the mark of durations alone, where a user's own program has written these, and
    the user has said whether a stage handles several fragments at once.

    Where nothing is said of it, the stages are taken as a pipeline's. Stages that were measured
    each by itself are a pipeline that the user has made of them, and what tools print of themselves
    is of pipelines.
    """
    is_own = found.kind is TraceKind.DIRECT and not options.composed and options.as_stage is None
    if options.several_at_once is None or not is_own:
        return found
    if not all(reading.format in _OWN_FORMATS for reading in readings):
        return found
    bare = KnownOverlap(is_bare=True, several_at_once=options.several_at_once)
    return replace(found, overlap=bare)


def is_one_stage(overlap: KnownOverlap) -> bool:
    """Return whether a fragment passes all stages before the next one begins."""
    found = overlap.structure
    return found is not None and found.is_priced and found.is_priced_as_a_sum


def as_found(
    overlap: KnownOverlap, readings: Sequence[Reading], options: FitOptions
) -> tuple[Sequence[Reading], FitOptions]:
    """Return readings and options by which stages are fitted that overlap so.

    Groups that were asked for stay.
    """
    from fitting import join, prepared

    found = overlap.structure
    if found is None or not is_one_stage(overlap) or options.groups or not readings:
        return readings, options
    trace = join(prepared(readings, options))
    assert isinstance(trace, DirectTrace)
    name = _JOINED.join(trace.stage_names)
    waited = replace(
        trace,
        stage_names=(*trace.stage_names, _BETWEEN),
        stage_us=(*trace.stage_us, (found.return_us,) * len(trace)),
        events=None,
    )
    group = StepGroup(
        name if len(name) <= MAX_NAME_LENGTH else "all stages",
        waited.stage_names,
        Combine.SEQUENCE,
    )
    stated = tuple(pair for reading in readings for pair in reading.understood)
    notices = tuple(notice for reading in readings for notice in reading.notices)
    one = Reading(readings[0].format, waited, stated, notices)
    return (one,), replace(options, groups=(group,), excluded=(), columns=None)
