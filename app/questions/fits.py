"""Fits of measurements: how one is named, made, stored and plotted."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from analysis.narrowed_fit import Range, SizesUsed, fit_narrowed, hull
from app.questions.overlap import (
    as_found,
    as_said,
    with_overlap,
)
from app.questions.traces import LoadedTrace, Measurement
from domain.conditions import NO_CHOICE
from domain.errors import InconsistentInput, InvalidInput, NotFound, UnreadableTrace
from domain.fit import FitOptions, FitShape, TraceFit
from domain.fit_plot import FitPlot
from domain.measurement import Reading, TraceKind
from domain.profile import Origin, Provenance
from domain.stage_table import is_stage_table
from domain.trace_formats import UnreadableRows, UnrecognisedTrace
from domain.verification import Contradiction
from models.identifiers import known_identifier
from models.records import FitRecord, FitRequest

if TYPE_CHECKING:
    from domain.measurement import Reading
    from domain.profile import HardwareProfile, Revision
    from models.packing import PackedTrace
    from models.session import Store, UnitOfWork


KINDS = tuple(TraceKind)
_LOOKED_AT = 2**12  # bytes at the beginning that distinguish costs from measurements
DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class FitReference:
    """A stored fit, by its identifier."""

    fit_id: str


@dataclass(frozen=True, slots=True)
class GivenFit:
    """A fit that was made before: the digests of its files, and how it was asked for.

    `fit_id` is the one under which it is stored here, None for one that came as a `document`.
    """

    fit: TraceFit
    trace_digests: tuple[str, ...]
    request: FitRequest
    fit_id: str | None = None
    document: bytes = b""

    @property
    def digest(self) -> str:
        """What distinguishes it: where it is stored, or else all of it."""
        return self.fit_id or hashlib.sha256(self.document).hexdigest()


@dataclass(frozen=True, slots=True)
class FittedTrace:
    """A fit, the files that it came from in their order, and how it was asked for.

    `plot` is there where it was wanted.
    """

    fit: TraceFit
    traces: tuple[LoadedTrace, ...]
    request: FitRequest
    plot: FitPlot | None = None

    @property
    def trace_digests(self) -> tuple[str, ...]:
        """The digests of the files."""
        return tuple(trace.digest for trace in self.traces)


@dataclass(frozen=True, slots=True)
class SavedFit:
    """A fit that was stored as a profile's new current revision, and what its begins contradict."""

    fit_id: str
    profile: HardwareProfile
    contradiction: Contradiction | None = None


def fit_traces(
    traces: Sequence[LoadedTrace],
    request: FitRequest,
    *,
    sizes_used: SizesUsed,
    wants_plot: bool = False,
) -> FittedTrace:
    """Read the files and fit them together, as measurements of one pipeline.

    `sizes_used` is asked only for the shape `narrowed`. Raises UnreadableTrace, PoorFit,
    MeasurementMissing and InvalidInput.
    """
    readings = read_traces(traces, request.kinds, request.options)
    return fit_readings(readings, traces, request, sizes_used=sizes_used, wants_plot=wants_plot)


def read_traces(
    traces: Sequence[LoadedTrace],
    kinds: Sequence[TraceKind | None] = (),
    options: FitOptions | None = None,
) -> tuple[Reading, ...]:
    """Read each file; `options` name columns of tables, and which rows are taken.

    Raises UnreadableTrace, which names the file where there are several, and InvalidInput.
    """
    from fitting import read

    readings = []
    for place, trace in enumerate(traces):
        try:
            kind = kinds[place] if kinds else None
            columns = options.columns_of(place) if options else None
            if not columns:
                _check_no_stage_table(trace)
            choice = options.choice_of(place) if options else NO_CHOICE
            readings.append(read(trace.content(), kind=kind, columns=columns, choice=choice))
        except UnreadableTrace as refusal:
            raise (refusal if len(traces) == 1 else _of_file(refusal, place)) from None
    return tuple(readings)


def fit_readings(
    readings: Sequence[Reading],
    traces: Sequence[LoadedTrace],
    request: FitRequest,
    *,
    sizes_used: SizesUsed,
    wants_plot: bool = False,
) -> FittedTrace:
    """Fit files that were read already. Raises as `fit_traces` does."""
    from fitting import fit, plot

    readings, options = as_said(readings, request.options)
    if options.shape is FitShape.NARROWED:
        found = _narrowed(readings, options, sizes_used)
    else:
        found = fit(readings, options)
    of = with_overlap(found, readings, options)
    shown = plot(of.fit, of.readings, of.options) if wants_plot else None
    return FittedTrace(of.fit, tuple(traces), request, shown)


def _check_no_stage_table(trace: LoadedTrace) -> None:
    """Raise UnreadableTrace for costs, which no fit is needed for."""
    head = next(iter(trace.pieces()), b"")[:_LOOKED_AT]
    if is_stage_table(head.decode("utf-8", errors="replace")):
        raise UnreadableTrace(
            "this looks like a table of what stages cost, and no measurements: optimize, compare, "
            "crossover and others take such a table as it is; if its rows are measurements, name "
            "their columns, as in size=bytes,time=latency:us (columns)"
        )


def _narrowed(readings: Sequence[Reading], options: FitOptions, sizes_used: SizesUsed) -> TraceFit:
    from fitting import fit, join, measured_sizes, part_within, prepared

    readings = prepared(readings, options)
    as_line = replace(options, shape=FitShape.LINE, excluded=(), as_stage=None, columns=None)
    trace, whole = join(readings), fit(readings, as_line)
    measured = measured_sizes(trace)
    notices = tuple(notice for reading in readings for notice in reading.notices)

    def fit_within(over: Range) -> TraceFit:
        if over == hull((sizes[0], sizes[-1]) for sizes in measured):
            return whole
        part = Reading("", part_within(trace, *over), whole.understood, notices)
        return fit((part,), as_line)

    return fit_narrowed(fit_within, sizes_used, measured)


def fit_measurements(
    measurements: Sequence[Measurement], request: FitRequest, *, sizes_used: SizesUsed
) -> FittedTrace:
    """Return the one fit of all measurements of one question. Raises as `fit_traces` does."""
    traces, kinds = loaded_measurements(measurements)
    return fit_traces(traces, replace(request, kinds=kinds), sizes_used=sizes_used)


def loaded_measurements(
    measurements: Sequence[Measurement],
) -> tuple[tuple[LoadedTrace, ...], tuple[TraceKind | None, ...]]:
    """Return the files in memory, and the kinds named for them. Raises UnreadableTrace."""
    traces = tuple(LoadedTrace.of(utf8(one.content)) for one in measurements)
    return traces, tuple(known_kind(one.kind) for one in measurements)


@contextmanager
def options_named(names: Mapping[str, str]) -> Iterator[None]:
    """Have a refusal of an option name it as the client does."""
    try:
        yield
    except InvalidInput as refusal:
        refusal.field = names.get(refusal.field or "", refusal.field)
        raise


def check_request(request: FitRequest) -> None:
    """Raise InconsistentInput unless a message size is given exactly where it is used."""
    is_narrowed = request.options.shape is FitShape.NARROWED
    if is_narrowed and request.message_bytes is None:
        raise InconsistentInput(
            "shape narrowed needs message_bytes, the message whose fragments tell the range",
            field="message_bytes",
        )
    if not is_narrowed and request.message_bytes is not None:
        raise InconsistentInput(
            "message_bytes goes with shape narrowed only", field="message_bytes"
        )


def save_fit(unit: UnitOfWork, fitted: FittedTrace, *, name: str) -> SavedFit:
    """Store traces, fit and profile in this unit of work. Raises MeasurementMissing.

    As the first call of a unit of work it keeps no other writer waiting while it compresses.
    """
    fitted.fit.to_model()  # what gives no model is refused before anything is stored
    return name_fit(unit, keep_fit(unit, fitted), name=name)


def keep_fit(unit: UnitOfWork, fitted: FittedTrace) -> str:
    """Store traces and fit in this unit of work, and return the fit's identifier.

    As the first call of a unit of work it keeps no other writer waiting while it compresses.
    """
    from models.packing import pack

    unique = {trace.digest: trace for trace in fitted.traces}
    for packed in [pack(trace.pieces()) for trace in unique.values()]:
        unit.traces.add_packed(packed, kind=fitted.fit.kind)
    return unit.fits.add(fitted.trace_digests, fitted.fit, fitted.request)


def keep_given(unit: UnitOfWork, given: GivenFit) -> str:
    """Return the identifier of a fit, stored in this unit of work where it came as a document."""
    if given.fit_id is not None:
        return given.fit_id
    request = replace(given.request, is_document=True)
    return keep_fit(unit, FittedTrace(given.fit, (LoadedTrace.of(given.document),), request))


def name_fit(unit: UnitOfWork, fit_id: str, *, name: str) -> SavedFit:
    """Make a stored fit a profile's current revision. Raises NotFound and MeasurementMissing."""
    record = unit.fits.get(fit_id)
    found = contradicts(unit, name, record.fit)
    provenance = with_contradiction(provenance_of(record), found)
    profile = unit.profiles.save(name, record.fit.to_model(), provenance)
    return SavedFit(fit_id, profile, found)


def contradicts(unit: UnitOfWork, name: str, fit: TraceFit) -> Contradiction | None:
    """Return what a fit shows of a profile's current revision that is taken as pipelined, where it
    becomes the next one: None where there is no such profile, or stages overlap here too.
    """
    structure = fit.overlap.structure
    if structure is None or not structure.denies_overlap:
        return None
    with suppress(NotFound):
        profile = unit.profiles.get(name)
        if takes_overlap(unit, profile.current):
            return Contradiction(profile.current.number, profile.latest + 1, structure)
    return None


def takes_overlap(unit: UnitOfWork, revision: Revision) -> bool:
    """Return whether a revision is taken as a pipeline, of whose stages nobody has seen begins."""
    stages, fit_id = revision.model.stages, revision.provenance.fit_id
    if stages is None or len(stages) < 2:
        return False
    return fit_id is None or unit.fits.fit(fit_id).overlap.structure is None


def with_contradiction(provenance: Provenance, found: Contradiction | None) -> Provenance:
    """Return where costs came from, with what their trace contradicts."""
    if found is None:
        return provenance
    return replace(provenance, detail=f"{provenance.detail}; {found.found}")


def provenance_of(record: FitRecord) -> Provenance:
    """Return where the costs of a stored fit came from."""
    count = len(record.trace_digests)
    several = f"{count} traces" if count > 1 else "trace"
    came_as_one = record.request is not None and record.request.is_document
    of = "a fit's document" if came_as_one else several
    return Provenance(Origin.FIT, f"{record.fit.method} of {of} ({record.fit.kind})", record.id)


def get_fit(store: Store, fit_id: str) -> FitRecord:
    """Return a stored fit. Raises NotFound."""
    known_identifier(fit_id, "fit")
    with store.reading() as unit:
        return unit.fits.get(fit_id)


def get_trace(store: Store, digest: str) -> PackedTrace:
    """Return a stored trace. Raises NotFound."""
    if DIGEST.fullmatch(digest) is None:
        raise NotFound("there is no trace with this digest")
    with store.reading() as unit:
        return unit.traces.packed(digest)


def known_kind(name: str | None) -> TraceKind | None:
    """Return the kind of this name. Raises UnreadableTrace naming `kind`."""
    if name is None:
        return None
    if name not in KINDS:
        raise UnreadableTrace(f"expected kind to be one of {', '.join(KINDS)}", field="kind")
    return TraceKind(name)


def _of_file(refusal: UnreadableTrace, place: int) -> UnreadableTrace:
    refusal.detail = f"file {place + 1}: {refusal.detail}"
    if isinstance(refusal, UnrecognisedTrace | UnreadableRows):
        refusal.in_file(place + 1)
    return refusal


def utf8(text: str | bytes) -> bytes:
    """Return the bytes of a trace. Raises UnreadableTrace for text that no file could hold."""
    if isinstance(text, bytes):
        return text
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise UnreadableTrace(
            "expected text without lone surrogates", field="measurements"
        ) from None


# --- plots of stored fits -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoredFit:
    """A fit and the files that it was made from, compressed as they were stored.

    `options` are those it was made with, and `kinds` what the user said of each file, as far as
    that was kept.
    """

    fit: TraceFit
    traces: tuple[PackedTrace, ...]
    options: FitOptions = field(default_factory=FitOptions)
    kinds: tuple[TraceKind | None, ...] = ()

    def __len__(self) -> int:
        """Return how many bytes the files have together, expanded."""
        return sum(trace.content_bytes for trace in self.traces)


def find_fit(store: Store, fit_id: str) -> StoredFit:
    """Return a stored fit with its traces. Raises NotFound."""
    with store.reading() as unit:
        record = unit.fits.get(fit_id)
        traces = tuple(unit.traces.packed(digest) for digest in record.trace_digests)
        if record.request is None:
            return StoredFit(record.fit, traces)
        return StoredFit(record.fit, traces, record.request.options, record.request.kinds)


def plot_stored(stored: StoredFit) -> FitPlot:
    """Read the files again and return what a plot shows.

    Stages whose samples are not in them any more show the medians of sizes.
    """
    from fitting import plot

    stated = zip_longest(stored.traces, stored.kinds[: len(stored.traces)])
    readings = [
        _reading(trace.content(), kind, stored.options, place)
        for place, (trace, kind) in enumerate(stated)
    ]
    known = [reading for reading in readings if reading is not None]
    return plot(stored.fit, *as_found(stored.fit.overlap, *as_said(known, stored.options)))


def _reading(
    content: bytes, kind: TraceKind | None, options: FitOptions, place: int
) -> Reading | None:
    """Return the file as it was read then; None where this version cannot read it."""
    from fitting import read

    columns, choice = options.columns_of(place), options.choice_of(place)
    try:
        return read(content, kind=kind, columns=columns, choice=choice)
    except (UnreadableTrace, InvalidInput):
        return None
