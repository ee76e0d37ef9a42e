"""Hardware profiles, in and out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field

from app.questions.profiles import ProfilePage
from app.questions.question import FitReference, GivenFit
from app.schemas.base import (
    Input,
    NoticeOut,
    Output,
    ProfileName,
    ProfileRevisionOut,
    notices_out,
    same_named,
    timestamp,
    whole,
)
from app.schemas.fit_documents import FitDocument, given_fit
from app.schemas.source import FitId, check_exactly_one, exactly_one
from app.schemas.stages import AggregateIn, AggregateOut, PipelineIn, PipelineOut
from app.schemas.transfers import TransfersOut
from domain.model import CostModel
from domain.profile import HardwareProfile, Origin, Revision
from domain.verification import ModelVerdict, Verification, VerifiedSize

SOURCES = ("pipeline", "aggregate", "fit", "fit_id")
Out = TypeVar("Out", bound=Output)

# A text column of PostgreSQL cannot hold NUL.
Detail = Annotated[
    str,
    Field(max_length=500, pattern=r"^[^\u0000]*$", description="where the stages came from"),
]


class RevisionIn(Input):
    """A new revision of a profile: a pipeline, an aggregate, or a fit, which is stored with it."""

    model_config = ConfigDict(json_schema_extra={"oneOf": exactly_one(*SOURCES)})

    pipeline: PipelineIn | None = None
    aggregate: AggregateIn | None = None
    fit: FitDocument | None = None
    fit_id: FitId | None = None
    detail: Detail = ""

    def costs(self) -> CostModel | FitReference | GivenFit:
        """Return what the revision holds. Raises InvalidInput for none, and for more than one."""
        check_exactly_one({name: getattr(self, name) for name in SOURCES})
        if self.fit is not None:
            return given_fit(self.fit, "fit")
        if self.fit_id is not None:
            return FitReference(self.fit_id)
        given = self.pipeline or self.aggregate
        assert given is not None
        return given.to_domain()


class ProfileIn(RevisionIn):
    """A new profile."""

    name: ProfileName


class CurrentIn(Input):
    """Which revision is to be the current one."""

    revision: Annotated[int, Field(ge=1, le=999_999_999), BeforeValidator(whole)]


class VerificationIn(Input):
    """Transfers over the stages of a profile, as text: the file that `sluice verify` writes, or own
    transfers by fragment size, of which no stage is known.
    """

    transfers: Annotated[str, Field(min_length=1)]


@dataclass(frozen=True)
class ProvenanceOut(Output):
    """Where the stages of a revision came from."""

    origin: Origin
    detail: str
    fit_id: str | None


@dataclass(frozen=True)
class VerifiedSizeOut(Output):
    """One fragment size: the latency in µs that is predicted, and the median that was measured.

    `measured_us_interval` is the 95 % interval of the median; `ratio` is measured over predicted.
    """

    fragment_bytes: int
    fragments: int
    predicted_us: float
    measured_us: float
    measured_us_interval: tuple[float, float]
    ratio: float
    runs: int

    @classmethod
    def of(cls, size: VerifiedSize) -> VerifiedSizeOut:
        """Return a size as it is sent."""
        return cls(
            fragment_bytes=size.fragment_bytes,
            fragments=size.fragments,
            predicted_us=size.predicted_us,
            measured_us=size.measured_us,
            measured_us_interval=(size.low_us, size.high_us),
            ratio=size.ratio,
            runs=size.runs,
        )


@dataclass(frozen=True)
class VerificationOut(Output):
    """Whether a model holds on the machine, by transfers over the stages that it is of.

    `offset_us` is what every transfer takes more, of `holds_offset`, else null; `verified_at` is
    when it was stored, null before.
    """

    verdict: ModelVerdict
    detail: str
    offset_us: float | None
    message_bytes: int
    stages: tuple[str, ...]
    sizes: tuple[VerifiedSizeOut, ...]
    reasons: tuple[NoticeOut, ...]
    verified_at: str | None

    @classmethod
    def of(cls, found: Verification) -> VerificationOut:
        """Return a verification as it is sent."""
        return cls(
            verdict=found.verdict,
            detail=found.notice().detail,
            offset_us=found.offset_us,
            message_bytes=found.message_bytes,
            stages=found.stages,
            sizes=tuple(map(VerifiedSizeOut.of, found.sizes)),
            reasons=notices_out(found.reasons),
            verified_at=timestamp(found.verified_at) if found.verified_at else None,
        )


@dataclass(frozen=True)
class RevisionOut(Output):
    """One immutable revision."""

    revision: int
    is_current: bool
    created_at: str
    pipeline: PipelineOut | None
    aggregate: AggregateOut | None
    provenance: ProvenanceOut

    @classmethod
    def of(cls, revision: Revision, *, current: int) -> RevisionOut:
        """Return a revision of a profile whose current one has this number."""
        return _with_verification(
            VerifiedRevisionOut,
            cls,
            revision.verification,
            revision=revision.number,
            is_current=revision.number == current,
            created_at=timestamp(revision.created_at),
            pipeline=PipelineOut.of_model(revision.model),
            aggregate=AggregateOut.of_model(revision.model),
            provenance=same_named(ProvenanceOut, revision.provenance),
        )


@dataclass(frozen=True)
class ProfileOut(Output):
    """A profile at its current revision."""

    name: str
    revision: int
    latest_revision: int
    created_at: str
    revised_at: str
    pipeline: PipelineOut | None
    aggregate: AggregateOut | None
    provenance: ProvenanceOut

    @classmethod
    def of(cls, profile: HardwareProfile) -> ProfileOut:
        """Return a profile as it is sent."""
        current = profile.current
        return _with_verification(
            VerifiedProfileOut,
            cls,
            current.verification,
            name=profile.name,
            revision=current.number,
            latest_revision=profile.latest,
            created_at=timestamp(profile.created_at),
            revised_at=timestamp(current.created_at),
            pipeline=PipelineOut.of_model(current.model),
            aggregate=AggregateOut.of_model(current.model),
            provenance=same_named(ProvenanceOut, current.provenance),
        )


@dataclass(frozen=True)
class TunedOut(Output):
    """The size to set, and what it rests on: it is that in use before, unless another won the race.

    `is_of_model`: it is the size that the model recommends. `verification` is of the model, by the
    transfers of the race.
    """

    set_bytes: int
    is_of_model: bool
    profile: ProfileRevisionOut
    transfers: TransfersOut
    verification: VerificationOut


@dataclass(frozen=True)
class VerifiedRevisionOut(RevisionOut):
    """One immutable revision that was verified."""

    verification: VerificationOut


@dataclass(frozen=True)
class VerifiedProfileOut(ProfileOut):
    """A profile whose current revision was verified."""

    verification: VerificationOut


# A field that is only there where it is set: bodies of others stay as they were.
AnyRevisionOut: TypeAlias = VerifiedRevisionOut | RevisionOut
AnyProfileOut: TypeAlias = VerifiedProfileOut | ProfileOut


def _with_verification(
    verified: Callable[..., Out], plain: type[Out], found: Verification | None, **fields: Any
) -> Out:
    if found is None:
        return plain(**fields)
    return verified(**fields, verification=VerificationOut.of(found))


@dataclass(frozen=True)
class ProfilesOut(Output):
    """A page of profiles by name; `next_cursor` is null at the end."""

    items: tuple[AnyProfileOut, ...]
    next_cursor: str | None

    @classmethod
    def of(cls, page: ProfilePage) -> ProfilesOut:
        """Return a page of profiles as it is sent."""
        return cls(tuple(map(ProfileOut.of, page.profiles)), page.after)


@dataclass(frozen=True)
class RevisionsOut(Output):
    """Every revision of a profile, in order."""

    name: str
    revisions: tuple[AnyRevisionOut, ...]

    @classmethod
    def of(cls, profile: HardwareProfile, revisions: tuple[Revision, ...]) -> RevisionsOut:
        """Return the revisions of a profile as they are sent."""
        current = profile.current.number
        return cls(profile.name, tuple(RevisionOut.of(one, current=current) for one in revisions))
