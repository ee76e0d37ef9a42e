"""Where the costs of a question come from, found or fitted: one way for all that ask.

found = resolve(question.source, Stored.of_unit(unit), FitNow(question.fit_options))
found.model, found.fit, found.profile

A command reads files itself. A service never does: reading takes as long as the sender of a file
wants, and holds the interpreter's lock meanwhile. What it prepares raises `ReadElsewhere`, and is
prepared again with what a worker has read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from analysis.premise import unknown_overlap
from app.questions.fits import (
    FitReference,
    FittedTrace,
    GivenFit,
    check_request,
    fit_measurements,
    loaded_measurements,
    options_named,
    takes_overlap,
)
from app.questions.traces import Measurement
from contract.limits import MIN_TRANSFER_US
from domain.aggregate import Aggregate
from domain.errors import (
    InconsistentInput,
    InvalidFields,
    InvalidInput,
    NeedsPlainStages,
    NotFound,
    SluiceError,
)
from domain.fit import FitOptions, TraceFit
from domain.machine import Machine, check_plain
from domain.model import CostModel
from domain.profile import ProfileReference, ProfileRevision
from domain.solution import Notice
from domain.structure import KnownOverlap
from domain.units import format_bytes
from domain.verification import Against, Contradiction, said_of
from models.identifiers import known_identifier
from models.records import FitRequest

if TYPE_CHECKING:
    from analysis.narrowed_fit import SizesUsed
    from domain.profile import Revision
    from models.records import FitRecord
    from models.session import Store, UnitOfWork

_CONTRADICTS = 0.25  # by which share bandwidths may be slower than latencies: a note, below it
_MAX_FILES = 1000  # a question has two, a page of stages one for each of these

Source: TypeAlias = CostModel | ProfileReference | tuple[Measurement, ...] | FitReference | GivenFit
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class FileWork(Protocol[T_co]):
    """What is read off files that came with a request. Picklable; equal where the files are."""

    def read(self) -> T_co:
        """Read. Raises SluiceError."""
        ...


ReadFiles: TypeAlias = Sequence[tuple[FileWork[Any], Any]]


class ReadElsewhere(Exception):
    """Files have to be read by a worker before a question can be prepared."""

    def __init__(self, work: FileWork[Any]) -> None:
        super().__init__("files are to be read by a worker")
        self.work = work


@dataclass(frozen=True, slots=True)
class Stored:
    """What a source may name: profiles and fits. `reading` opens a unit of work to look them up;
    None where nothing is stored. `files` are what workers have read, None where this process reads.
    """

    reading: Callable[[], AbstractContextManager[UnitOfWork]] | None = None
    files: ReadFiles | None = None

    @classmethod
    def of_unit(cls, unit: UnitOfWork, files: ReadFiles | None = None) -> Stored:
        """Return what is seen in this unit of work."""
        return cls(lambda: nullcontext(unit), files)

    def read(self, work: FileWork[T]) -> T:
        """Return what files say. Raises ReadElsewhere where a worker has to read them first, and
        what reading does.
        """
        if self.files is None:
            return work.read()
        for known, found in self.files:
            if known == work:
                result: T = found
                return result
        assert len(self.files) < _MAX_FILES, "a file that was read is asked for again"
        raise ReadElsewhere(work)

    @classmethod
    def of_store(cls, store: Store | None, files: ReadFiles | None = None) -> Stored:
        """Return what is in the store, each looked up in a unit of its own; nothing without one."""
        return cls(None if store is None else store.reading, files)

    def revision(self, reference: ProfileReference, *, machines: bool = False) -> Revision:
        """Return a profile's revision. Raises NotFound, InvalidInput without a store, and unless
        `machines` are taken NeedsPlainStages for one.
        """
        with self.unit("profile") as unit:
            try:
                found = unit.profiles.revision(reference.name, reference.revision)
            except NotFound as missing:
                raise NotFound(missing.detail, field="profile", subject=missing.subject) from None
        if not machines:
            check_plain(found.model, "profile")
        return found

    def fit_of(self, revision: Revision) -> TraceFit | None:
        """Return the fit that a revision was made of, None where it was not."""
        fit_id = revision.provenance.fit_id
        if fit_id is None:
            return None
        with self.unit("profile") as unit:
            return unit.fits.fit(fit_id)

    def against(self, revision: Revision) -> Against | None:
        """Return what was measured for or against a revision's model: the transfers that it keeps,
        where these have not contradicted it a later trace that does.
        """
        kept = revision.verification
        if kept is not None and kept.has_failed:
            return kept
        with self.unit("profile") as unit:
            return _against(revision, contradiction_of(unit, revision))

    def with_against(
        self, revisions: Iterable[Revision]
    ) -> tuple[tuple[Revision, Against | None], ...]:
        """Return revisions of one profile, each with what was measured for or against it."""
        revisions = tuple(revisions)
        with self.unit("profile") as unit:
            contradicted = contradictions_of(unit, revisions)
        return tuple((one, _against(one, contradicted.get(one.number))) for one in revisions)

    def fit(self, fit_id: str) -> FitRecord:
        """Return a stored fit. Raises NotFound, and InvalidInput where nothing is stored."""
        with self.unit("fit_id") as unit:
            try:
                known_identifier(fit_id, "fit")
                return unit.fits.get(fit_id)
            except NotFound as missing:
                raise NotFound(missing.detail, field="fit_id", subject=missing.subject) from None

    def unit(self, field: str) -> AbstractContextManager[UnitOfWork]:
        """Open a unit of work for what this field names. Raises InvalidInput without a store."""
        if self.reading is None:
            raise InvalidInput("expected costs: nothing is stored here", field=field)
        return self.reading()


@dataclass(frozen=True, slots=True)
class Resolved:
    """A model, and what is known of its costs.

    `fit` is what they were fitted by, None where they were typed. `fitted` is there where that was
    done now, `given` where a fit was the source. `verification` is what transfers said of the
    `profile`.
    """

    model: CostModel
    fit: TraceFit | None = None
    profile: ProfileRevision | None = None
    fitted: FittedTrace | None = None
    given: GivenFit | None = None
    verification: Against | None = None

    @property
    def said(self) -> tuple[Notice, ...]:
        """What is said first of every answer by this model: what was measured for or against it,
        and what it takes for granted of the overlap of its stages.
        """
        measured = said_of(self.verification)
        overlap = unknown_overlap(self.overlap, len(self.model.stages or ()))
        return (*(() if measured is None else (measured,)), *overlap)

    @property
    def overlap(self) -> KnownOverlap:
        """What is known of the stages' overlap; nothing beside what contradicts the model, nor of a
        machine, which says itself what overlaps.
        """
        is_contradicted = isinstance(self.verification, Contradiction)
        if self.fit is None or is_contradicted or isinstance(self.model, Machine):
            return KnownOverlap()
        return self.fit.overlap


def resolve(
    source: Source,
    stored: Stored,
    fit_now: FitNow,
    *,
    machines: bool = False,
    model_of: Callable[[TraceFit], CostModel] = TraceFit.to_model,
) -> Resolved:
    """Find or fit the model; `model_of` is what of a fit is asked about. Who takes `machines`, and
    not plain stages alone, says so.

    Raises NotFound, MeasurementMissing, NeedsPlainStages, and what `Stored.read` does.
    """
    if isinstance(source, ProfileReference):
        revision = stored.revision(source, machines=machines)
        return Resolved(
            revision.model,
            stored.fit_of(revision),
            profile=ProfileRevision(revision.profile, revision.number),
            verification=stored.against(revision),
        )
    if isinstance(source, tuple):
        fitted = fit_now.fitted(source, stored)
        return Resolved(model_of(fitted.fit), fitted.fit, fitted=fitted)
    if isinstance(source, FitReference):
        record = stored.fit(source.fit_id)
        request = record.request or FitRequest()
        source = GivenFit(record.fit, record.trace_digests, request, record.id)
    if isinstance(source, GivenFit):
        return Resolved(model_of(source.fit), source.fit, given=source)
    if not machines:
        check_plain(source)
    return Resolved(source)


def check_asked_of(model: CostModel, asked: Mapping[str, bool]) -> None:
    """Raise NeedsPlainStages, naming the field, where of a machine something is asked for that only
    plain stages can do: `asked` has whether it is, by its field.
    """
    if not isinstance(model, Machine):
        return
    for field, is_asked in asked.items():
        if is_asked:
            raise NeedsPlainStages(
                "this needs plain stages, and these have lanes, delays, processors or windows",
                field=field,
            )


def contradiction_of(unit: UnitOfWork, revision: Revision) -> Contradiction | None:
    """Return by which later revision a former one is contradicted, whose stages are taken to
    overlap: the newest that is of a trace with begins. None where there is none, or it is current.
    """
    later = unit.profiles.later_structure(revision.profile, revision.number)
    if later is None or not takes_overlap(unit, revision):  # the current one: its fit is not read
        return None
    number, fit_id = later
    structure = unit.fits.fit(fit_id).overlap.structure
    if structure is None or not structure.denies_overlap:
        return None
    return Contradiction(revision.number, number, structure)


def contradictions_of(unit: UnitOfWork, revisions: Sequence[Revision]) -> dict[int, Contradiction]:
    """Return the same of revisions of one profile, by their numbers, with one look for all."""
    found = unit.profiles.of_begins(revisions[0].profile) if revisions else None
    if found is None or found.newest is None:
        return {}
    number, fit_id = found.newest
    former = [
        one.number
        for one in revisions
        if one.number < number
        and one.number != found.current
        and one.number not in found.numbers
        and len(one.model.stages or ()) > 1
    ]
    structure = unit.fits.fit(fit_id).overlap.structure if former else None
    if structure is None or not structure.denies_overlap:
        return {}
    return {one: Contradiction(one, number, structure) for one in former}


def _against(revision: Revision, found: Contradiction | None) -> Against | None:
    """What was measured for or against a revision; transfers that have failed come first."""
    kept = revision.verification
    if found is None or (kept is not None and kept.has_failed):
        return kept
    return replace(found, transfers=kept)


def is_stored(source: object) -> bool:
    """Return whether a question's source is in the store: a profile or a fit."""
    return isinstance(source, ProfileReference | FitReference)


def field_of(source: Source) -> str:
    """Return the field of a request that names such a source."""
    for kind, field in _FIELDS:
        if isinstance(source, kind):
            return field
    return "aggregate" if isinstance(source, Aggregate) else "pipeline"


_FIELDS: tuple[tuple[type, str], ...] = (
    (ProfileReference, "profile"),
    (tuple, "measurements"),
    (FitReference, "fit_id"),
    (GivenFit, "fit"),
)


def _no_sizes(_: CostModel) -> tuple[int, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class FitNow:
    """How measurements of a request are fitted: by its options, where it has any. Picklable.

    `message_bytes` and `sizes_used` are for the shape `narrowed` alone. `path` is the field of a
    request of two paths in which the measurements are, "" of other requests.
    """

    options: FitOptions | None = None
    message_bytes: int | None = None
    sizes_used: SizesUsed = _no_sizes
    path: str = ""

    def fitted(self, measurements: tuple[Measurement, ...], stored: Stored) -> FittedTrace:
        """Return the one fit of all measurements. Raises InvalidInput, UnreadableTrace, PoorFit,
        MeasurementMissing and ReadElsewhere; InconsistentInput for several files that cannot be of
        one path.
        """
        fit = stored.read(MeasurementsWork(measurements, self))
        if len(measurements) > 1:
            _check_one_path(fit)
        traces, kinds = loaded_measurements(measurements)
        return FittedTrace(fit, traces, replace(self.request, kinds=kinds))

    @property
    def request(self) -> FitRequest:
        """How it is asked for."""
        return FitRequest(self.options or FitOptions(), self.message_bytes)


def _check_one_path(fit: TraceFit) -> None:
    """Raise InconsistentInput where latencies and bandwidths of several files cannot be of one
    path: back-to-back messages much further apart than one of them takes.
    """
    if fit.aggregate is None:
        return
    total = fit.aggregate.total.to_stage()
    excess, size = max(
        (
            one.median_us / max(total.time_us(one.message_bytes), MIN_TRANSFER_US) - 1.0,
            one.message_bytes,
        )
        for one in fit.aggregate.bottleneck.sizes
    )
    if excess > _CONTRADICTS:
        raise InconsistentInput(
            f"these files contradict each other: by their bandwidths messages of "
            f"{format_bytes(size)} arrive {100.0 * excess:.0f} % further apart than one takes by "
            "their latencies, which no pipeline can do: give files of the same path, and latencies "
            "of one way",
            field="measurements",
        )


@dataclass(frozen=True, slots=True)
class MeasurementsWork:
    """Measurements of one request, and how to fit them."""

    measurements: tuple[Measurement, ...]
    how: FitNow

    def read(self) -> TraceFit:
        """Fit. Raises InvalidInput, UnreadableTrace, PoorFit and MeasurementMissing."""
        request = self.how.request
        with of_path(self.how.path), options_named(_OPTIONS):
            check_request(request)
            return fit_measurements(self.measurements, request, sizes_used=self.how.sizes_used).fit


_OPTIONS = {
    name: f"fit_options.{name}"
    for name in (
        *("groups", "columns", "test", "run", "where"),
        *("as_stage", "total_is_uncut", "stages_overlap"),
    )
}


@contextmanager
def of_path(path: str) -> Iterator[None]:
    """Have a refusal name a path of a request of two, and its field below the path's, once; of
    other requests, whose path is "", it stays.
    """
    try:
        yield
    except InvalidFields as refusal:
        if not path:
            raise
        below = (
            replace(problem, pointer=f"/{path}{problem.pointer}") for problem in refusal.problems
        )
        raise InvalidFields(
            f"path {path.upper()}: {refusal.detail}", problems=tuple(below)
        ) from None
    except SluiceError as refusal:
        if path and not f"{refusal.field}.".startswith(f"{path}."):
            refusal.detail = f"path {path.upper()}: {refusal.detail}"
            refusal.field = path if refusal.field is None else f"{path}.{refusal.field}"
        raise
