"""Where the costs of a question come from, found or fitted: one way for all that ask.

found = resolve(question.source, Stored.of_unit(unit), fit_for(question.fit_options))
found.model, found.fit, found.profile
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from app.questions.fits import (
    FittedTrace,
    check_request,
    fit_measurements,
    options_named,
    takes_overlap,
)
from app.questions.question import (
    FitReference,
    GivenFit,
    Measurement,
    Source,
    known_identifier,
)
from domain.errors import InvalidInput, NotFound
from domain.fit import FitOptions, TraceFit
from domain.model import CostModel
from domain.profile import ProfileReference, ProfileRevision
from domain.verification import Against, Contradiction
from models.records import FitRequest

if TYPE_CHECKING:
    from analysis.narrowed_fit import SizesUsed
    from domain.profile import Revision
    from models.records import FitRecord
    from models.session import Store, UnitOfWork

FitNow: TypeAlias = Callable[[tuple[Measurement, ...]], FittedTrace]


@dataclass(frozen=True, slots=True)
class Stored:
    """What a source may name: profiles and fits. `reading` opens a unit of work to look them up;
    None where nothing is stored.
    """

    reading: Callable[[], AbstractContextManager[UnitOfWork]] | None = None

    @classmethod
    def of_unit(cls, unit: UnitOfWork) -> Stored:
        """Return what is seen in this unit of work."""
        return cls(lambda: nullcontext(unit))

    @classmethod
    def of_store(cls, store: Store | None) -> Stored:
        """Return what is in the store, each looked up in a unit of its own; nothing without one."""
        return cls(None if store is None else store.reading)

    def revision(self, reference: ProfileReference) -> Revision:
        """Return a profile's revision. Raises NotFound, and InvalidInput without a store."""
        with self._unit("profile") as unit:
            try:
                return unit.profiles.revision(reference.name, reference.revision)
            except NotFound as missing:
                raise NotFound(missing.detail, field="profile", subject=missing.subject) from None

    def fit_of(self, revision: Revision) -> TraceFit | None:
        """Return the fit that a revision was made of, None where it was not."""
        fit_id = revision.provenance.fit_id
        if fit_id is None:
            return None
        with self._unit("profile") as unit:
            return unit.fits.fit(fit_id)

    def against(self, revision: Revision) -> Against | None:
        """Return what was measured for or against a revision's model: the transfers that it keeps,
        where these have not contradicted it a later trace that does.
        """
        kept = revision.verification
        if kept is not None and kept.has_failed:
            return kept
        with self._unit("profile") as unit:
            found = contradiction_of(unit, revision)
        return kept if found is None else replace(found, transfers=kept)

    def fit(self, fit_id: str) -> FitRecord:
        """Return a stored fit. Raises NotFound, and InvalidInput where nothing is stored."""
        with self._unit("fit_id") as unit:
            try:
                known_identifier(fit_id, "fit")
                return unit.fits.get(fit_id)
            except NotFound as missing:
                raise NotFound(missing.detail, field="fit_id", subject=missing.subject) from None

    def _unit(self, field: str) -> AbstractContextManager[UnitOfWork]:
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


def resolve(source: Source, stored: Stored, fit_now: FitNow) -> Resolved:
    """Find or fit the model. Raises NotFound, MeasurementMissing, and what `fit_now` does."""
    if isinstance(source, ProfileReference):
        revision = stored.revision(source)
        return Resolved(
            revision.model,
            stored.fit_of(revision),
            profile=ProfileRevision(revision.profile, revision.number),
            verification=stored.against(revision),
        )
    if isinstance(source, tuple):
        fitted = fit_now(source)
        return Resolved(fitted.fit.to_model(), fitted.fit, fitted=fitted)
    if isinstance(source, FitReference):
        record = stored.fit(source.fit_id)
        request = record.request or FitRequest()
        source = GivenFit(record.fit, record.trace_digests, request, record.id)
    if isinstance(source, GivenFit):
        return Resolved(source.fit.to_model(), source.fit, given=source)
    return Resolved(source)


def contradiction_of(unit: UnitOfWork, revision: Revision) -> Contradiction | None:
    """Return by which later revision a former one is contradicted, whose stages are taken to
    overlap: the newest that is of a trace with begins. None where there is none, or it is current.
    """
    later = unit.profiles.later_fits(revision.profile, revision.number)
    if not later or not takes_overlap(unit, revision):  # the current one: its fit is not read
        return None
    for number, fit_id in later:
        structure = unit.fits.fit(fit_id).overlap.structure
        if structure is not None and structure.is_known:
            contradicts = structure.denies_overlap
            return Contradiction(revision.number, number, structure) if contradicts else None
    return None


def field_of(source: Source) -> str:
    """Return the field of a request that names such a source."""
    for kind, field in _FIELDS:
        if isinstance(source, kind):
            return field
    return str(getattr(source, "kind", "pipeline")).replace("stages", "pipeline")


_FIELDS: tuple[tuple[type, str], ...] = (
    (ProfileReference, "profile"),
    (tuple, "measurements"),
    (FitReference, "fit_id"),
    (GivenFit, "fit"),
)


def fit_for(
    options: FitOptions | None,
    *,
    message_bytes: int | None = None,
    sizes_used: SizesUsed = lambda _: (),
) -> FitNow:
    """Return how measurements of a request are fitted: by its options, where it has any.

    `message_bytes` and `sizes_used` are for the shape `narrowed` alone. What it returns raises
    InvalidInput, UnreadableTrace, PoorFit and MeasurementMissing.
    """

    def fitted(measurements: tuple[Measurement, ...]) -> FittedTrace:
        request = FitRequest(options or FitOptions(), message_bytes)
        check_request(request)
        with options_named({name: f"fit_options.{name}" for name in _OF_OPTIONS}):
            return fit_measurements(measurements, request, sizes_used=sizes_used)

    return fitted


_OF_OPTIONS = ("groups", "columns", "as_stage", "total_is_uncut", "stages_overlap")
