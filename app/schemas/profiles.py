"""Hardware profiles, in and out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field

from app.questions.profiles import ProfilePage
from app.schemas.base import Input, Output, ProfileName, same_named, timestamp, whole
from app.schemas.optimize import check_exactly_one, exactly_one
from app.schemas.stages import AggregateIn, AggregateOut, PipelineIn, PipelineOut
from domain.model import CostModel
from domain.profile import HardwareProfile, Origin, Revision

SOURCES = ("pipeline", "aggregate")

# A text column of PostgreSQL cannot hold NUL.
Detail = Annotated[
    str,
    Field(max_length=500, pattern=r"^[^\u0000]*$", description="where the stages came from"),
]


class RevisionIn(Input):
    """A new revision of a profile: a pipeline, or an aggregate in its place."""

    model_config = ConfigDict(json_schema_extra={"oneOf": exactly_one(*SOURCES)})

    pipeline: PipelineIn | None = None
    aggregate: AggregateIn | None = None
    detail: Detail = ""

    def model(self) -> CostModel:
        """Return what the revision holds. Raises InvalidInput for both or none."""
        check_exactly_one({name: getattr(self, name) for name in SOURCES})
        given = self.pipeline or self.aggregate
        assert given is not None
        return given.to_domain()


class ProfileIn(RevisionIn):
    """A new profile."""

    name: ProfileName


class CurrentIn(Input):
    """Which revision is to be the current one."""

    revision: Annotated[int, Field(ge=1, le=999_999_999), BeforeValidator(whole)]


@dataclass(frozen=True)
class ProvenanceOut(Output):
    """Where the stages of a revision came from."""

    origin: Origin
    detail: str
    fit_id: str | None


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
        return cls(
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
        return cls(
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
class ProfilesOut(Output):
    """A page of profiles by name; `next_cursor` is null at the end."""

    items: tuple[ProfileOut, ...]
    next_cursor: str | None

    @classmethod
    def of(cls, page: ProfilePage) -> ProfilesOut:
        """Return a page of profiles as it is sent."""
        return cls(tuple(map(ProfileOut.of, page.profiles)), page.after)


@dataclass(frozen=True)
class RevisionsOut(Output):
    """Every revision of a profile, in order."""

    name: str
    revisions: tuple[RevisionOut, ...]

    @classmethod
    def of(cls, profile: HardwareProfile, revisions: tuple[Revision, ...]) -> RevisionsOut:
        """Return the revisions of a profile as they are sent."""
        current = profile.current.number
        return cls(profile.name, tuple(RevisionOut.of(one, current=current) for one in revisions))
