"""Hardware profiles and their revisions: what makes one, and what is sent of them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from .declare import Input, Output, asked, documented, exactly_one, output, rule, sent
from .fit import FitOut
from .limits import MAX_DETAIL, MAX_REVISION
from .notices import NoticeOut
from .pipeline import AggregateIn, AggregateOut, PipelineIn, PipelineOut
from .rules import FitId, ProfileName
from .verification import VerificationOut

SOURCES_OF_REVISION = ("pipeline", "aggregate", "fit", "fit_id")
Origin: TypeAlias = Literal["given", "fit", "paper", "layer"]

# A text column of PostgreSQL cannot hold NUL.
Detail = Annotated[
    str,
    rule(max_length=MAX_DETAIL, pattern=r"^[^\u0000]*$"),
    documented(description="where the stages came from"),
]


# --- in -------------------------------------------------------------------------------------------


class RevisionIn(Input):
    """A new revision of a profile: a pipeline, an aggregate, or a fit, which is stored with it."""

    schema_rules: ClassVar = {"oneOf": exactly_one(*SOURCES_OF_REVISION)}

    pipeline: PipelineIn | None = asked("the stages, in their order", default=None)
    aggregate: AggregateIn | None = asked(
        "all stages together and the slowest of them, where single ones are not known",
        default=None,
    )
    fit: FitOut | None = asked("a fit, as POST /fit gave it", default=None)
    fit_id: FitId | None = asked("a stored fit, as `fit_id` of POST /fit", default=None)
    detail: Detail = asked("where the stages came from", default="")


class ProfileIn(RevisionIn):
    """A new profile."""

    name: ProfileName = asked(
        "what the profile is called, in lower case", metavar="PROFILE", label="Name"
    )


class CurrentIn(Input):
    """Which revision is to be the current one."""

    revision: Annotated[int, rule(ge=1, le=MAX_REVISION, is_whole=True)] = asked(
        "the number of a revision that exists", metavar="REVISION", unit="whole"
    )


# --- out ------------------------------------------------------------------------------------------


@output
class ProvenanceOut(Output):
    """Where the stages of a revision came from."""

    origin: Origin = sent(
        "given: by a user; fit: fitted to measurements; paper: published numbers; layer: counted "
        "instructions of a messaging layer"
    )
    detail: str = sent("where they came from, in words")
    fit_id: str | None = sent("the stored fit that they are of; null: of none")


@output
class RevisionOut(Output):
    """One immutable revision; `warnings` are what was measured for or against it until now."""

    revision: int = sent("its number, from 1")
    is_current: bool = sent("whether it is the profile's current one")
    created_at: str = sent("when it was stored, RFC 3339 in UTC")
    pipeline: PipelineOut | None = sent("its stages; null: they are not known one by one")
    aggregate: AggregateOut | None = sent(
        "all stages together and the slowest of them; null: single ones are known"
    )
    provenance: ProvenanceOut = sent("where its stages came from")
    warnings: tuple[NoticeOut, ...] = sent("what was measured for or against it until now")


@output
class VerifiedRevisionOut(RevisionOut):
    """One immutable revision that was verified."""

    verification: VerificationOut = sent("whether its model holds, by recorded transfers")


@output
class ProfileOut(Output):
    """A profile at its current revision."""

    name: str = sent("what the profile is called")
    revision: int = sent("number of the current revision")
    latest_revision: int = sent("number of the revision that was stored last")
    created_at: str = sent("when the profile was stored, RFC 3339 in UTC")
    revised_at: str = sent("when the current revision was stored, RFC 3339 in UTC")
    pipeline: PipelineOut | None = sent("its stages; null: they are not known one by one")
    aggregate: AggregateOut | None = sent(
        "all stages together and the slowest of them; null: single ones are known"
    )
    provenance: ProvenanceOut = sent("where its stages came from")


@output
class VerifiedProfileOut(ProfileOut):
    """A profile whose current revision was verified."""

    verification: VerificationOut = sent("whether its model holds, by recorded transfers")


# A field that is only there where it is set: bodies of others stay as they were.
AnyRevisionOut: TypeAlias = VerifiedRevisionOut | RevisionOut
AnyProfileOut: TypeAlias = VerifiedProfileOut | ProfileOut


@output
class ProfilesOut(Output):
    """A page of profiles by name; `next_cursor` is null at the end."""

    items: tuple[AnyProfileOut, ...] = sent("the profiles, in the order of their names")
    next_cursor: str | None = sent("the `cursor` of the next page; null: this is the last one")


@output
class RevisionsOut(Output):
    """Every revision of a profile, in order."""

    name: str = sent("what the profile is called")
    revisions: tuple[AnyRevisionOut, ...] = sent("its revisions, the first one first")
