"""Stages of stored profiles, as they were measured: their files, and the columns of these."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from app.questions.fits import read_traces
from app.questions.overlap import is_one_stage, summed_columns
from app.questions.traces import LoadedTrace
from domain.conditions import NO_CHOICE, RowChoice
from domain.errors import InvalidInput, UnreadableTrace
from domain.fit import ExcludedSample, FitOptions, TraceFit
from domain.measurement import TraceKind
from domain.profile import ProfileReference
from models.records import FitRecord, FitRequest

if TYPE_CHECKING:
    from models.session import Store


@dataclass(frozen=True, slots=True)
class MeasuredStage:
    """The files that one stage was measured in, and how they are read.

    `step` is its column where the files have several, `excluded` what was left out of them by hand,
    and `choice` which of their rows are taken.
    """

    traces: tuple[LoadedTrace, ...]
    kinds: tuple[TraceKind | None, ...]
    step: str | None = None
    columns: str | None = None
    excluded: tuple[ExcludedSample, ...] = ()
    choice: RowChoice = NO_CHOICE


@dataclass(frozen=True, slots=True)
class _StageFiles:
    """Which files of a fit have the times of one stage, and in which column."""

    first: int
    count: int
    step: str | None
    columns: str | None
    choice: RowChoice


def measured_stage(store: Store, reference: ProfileReference, name: str) -> MeasuredStage:
    """Return how a stage of a stored profile was measured.

    Raises NotFound, and InvalidInput where no file has the times of this stage alone.
    """
    with store.reading() as unit:
        revision = unit.profiles.revision(reference.name, reference.revision)
        if revision.provenance.fit_id is None:
            raise InvalidInput(
                "the stages of this profile were not measured: they have costs and no samples"
            )
        record = unit.fits.get(revision.provenance.fit_id)
        request = record.request or FitRequest()
        if request.is_document:
            raise InvalidInput("this fit came as a document, which has none of its samples")
        known = _files_by_stage(record, request.options)
        if not known:
            raise InvalidInput(
                "this profile was measured from outside: no file has one stage's times"
            )
        if name not in known:
            listed = ", ".join([*known][:8])
            raise InvalidInput(f"expected a stage that was measured, one of {listed}")
        files = known[name]
        last = files.first + files.count
        packed = [unit.traces.packed(digest) for digest in record.trace_digests[files.first : last]]
    kinds = request.kinds[files.first : last] or (None,) * files.count
    return MeasuredStage(
        tuple(
            LoadedTrace(trace.digest, trace.content_bytes, trace.pieces, trace.content)
            for trace in packed
        ),
        kinds,
        files.step,
        files.columns,
        tuple(sample for sample in request.options.excluded if sample.stage == name),
        files.choice,
    )


def list_measured_stages(store: Store, *, limit: int) -> list[tuple[ProfileReference, str]]:
    """Return the stages that `measured_stage` finds in the current revisions of profiles.

    Of the first `limit` profiles in the order of their names.
    """
    with store.reading() as unit:
        current = [profile.current for profile in unit.profiles.list(limit=limit)]
        fitted = [(revision, revision.provenance.fit_id) for revision in current]
        records = [(one, unit.fits.get(fit_id)) for one, fit_id in fitted if fit_id is not None]
    return [
        (ProfileReference(revision.profile, revision.number), name)
        for revision, record in records
        for name in _files_by_stage(record, (record.request or FitRequest()).options)
    ]


def _files_by_stage(record: FitRecord, options: FitOptions) -> dict[str, _StageFiles]:
    """Return the stages whose times stand by themselves in a fit's files; none of an aggregate."""
    count = len(record.trace_digests)
    if record.request is not None and record.request.is_document:
        return {}
    if options.composed:
        ends = accumulate(stage.files for stage in options.composed)
        return {
            stage.name: _StageFiles(
                end - stage.files, stage.files, stage.step, stage.columns, stage.choice
            )
            for stage, end in zip(options.composed, ends, strict=True)
        }
    if options.as_stage is not None:
        return {options.as_stage: _StageFiles(0, count, None, options.columns, options.choice)}
    if record.fit.kind is not TraceKind.DIRECT:
        return {}
    steps = {group.name: group.steps for group in options.groups}
    return {
        step: _StageFiles(0, count, step, options.columns, options.choice)
        for stage in record.fit.stages
        for step in steps.get(stage.name) or _columns_of(stage.name, record.fit, options)
    }


def _columns_of(stage: str, fit: TraceFit, options: FitOptions) -> tuple[str, ...]:
    """Return the columns of a fit's files whose times a stage has: of stages that do not overlap,
    which are fitted as one, it has those of all.
    """
    structure = fit.overlap.structure
    if structure is not None:
        return structure.stages if is_one_stage(fit.overlap) else (stage,)
    if options.stages_overlap is not False:
        return (stage,)
    return summed_columns(fit) or (stage,)


@dataclass(frozen=True, slots=True)
class ReadableWork:
    """A file that has to be one of measurements."""

    content: bytes

    def read(self) -> UnreadableTrace | None:
        """Return why it is none; None where it can be read."""
        try:
            read_traces((LoadedTrace.of(self.content),))
        except UnreadableTrace as refusal:
            return refusal
        return None
