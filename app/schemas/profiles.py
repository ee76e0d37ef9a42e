"""Hardware profiles, in and out."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field

from app.flows.profiles import ProfilePage
from app.schemas.aggregates import AggregateIn, AggregateOut, model_document
from app.schemas.base import Input, Output, ProfileName, timestamp, whole
from app.schemas.optimize import check_exactly_one, exactly_one
from app.schemas.stages import PipelineIn, PipelineOut
from domain.model import CostModel
from domain.profile import HardwareProfile, Origin, Provenance, Revision

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
        """What the revision holds. Raises InvalidInput for both or none."""
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


class ProvenanceOut(Output):
    """Where the stages of a revision came from."""

    origin: Origin
    detail: str
    fit_id: str | None


class RevisionOut(Output):
    """One immutable revision."""

    revision: int
    is_current: bool
    created_at: str
    pipeline: PipelineOut | None
    aggregate: AggregateOut | None
    provenance: ProvenanceOut


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


class ProfilesOut(Output):
    """A page of profiles by name; `next_cursor` is null at the end."""

    items: list[ProfileOut]
    next_cursor: str | None


class RevisionsOut(Output):
    """Every revision of a profile, in order."""

    name: str
    revisions: list[RevisionOut]


def profile_document(profile: HardwareProfile) -> dict[str, Any]:
    """ProfileOut."""
    return {
        "name": profile.name,
        "revision": profile.current.number,
        "latest_revision": profile.latest,
        "created_at": timestamp(profile.created_at),
        "revised_at": timestamp(profile.current.created_at),
        **model_document(profile.current.model),
        "provenance": _provenance_document(profile.current.provenance),
    }


def profiles_document(page: ProfilePage) -> dict[str, Any]:
    """ProfilesOut."""
    return {
        "items": [profile_document(profile) for profile in page.profiles],
        "next_cursor": page.after,
    }


def revisions_document(profile: HardwareProfile, revisions: tuple[Revision, ...]) -> dict[str, Any]:
    """RevisionsOut."""
    return {
        "name": profile.name,
        "revisions": [
            {
                "revision": revision.number,
                "is_current": revision.number == profile.current.number,
                "created_at": timestamp(revision.created_at),
                **model_document(revision.model),
                "provenance": _provenance_document(revision.provenance),
            }
            for revision in revisions
        ],
    }


def _provenance_document(provenance: Provenance) -> dict[str, Any]:
    return {
        "origin": provenance.origin,
        "detail": provenance.detail,
        "fit_id": provenance.fit_id,
    }
