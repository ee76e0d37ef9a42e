"""Profiles and their revisions, as contract/profiles.py sends them."""

from __future__ import annotations

from collections.abc import Iterable

from app.questions.profiles import ProfilePage
from app.schemas.base import notices_out, timestamp
from app.schemas.stages import aggregate_or_none, pipeline_or_none
from app.schemas.verification import verification_out
from contract.profiles import (
    AnyProfileOut,
    AnyRevisionOut,
    ProfileOut,
    ProfilesOut,
    ProvenanceOut,
    RevisionOut,
    RevisionsOut,
    VerifiedProfileOut,
    VerifiedRevisionOut,
)
from domain.profile import HardwareProfile, Provenance, Revision
from domain.verification import Against, said_of


def _provenance(provenance: Provenance) -> ProvenanceOut:
    return ProvenanceOut(provenance.origin.value, provenance.detail, provenance.fit_id)


def revision_of_profile_out(
    revision: Revision, *, current: int, against: Against | None
) -> AnyRevisionOut:
    """Return a revision of a profile whose current one has this number, and what was measured for
    or against it.
    """
    said = said_of(against)
    shown = RevisionOut(
        revision=revision.number,
        is_current=revision.number == current,
        created_at=timestamp(revision.created_at),
        pipeline=pipeline_or_none(revision.model),
        aggregate=aggregate_or_none(revision.model),
        provenance=_provenance(revision.provenance),
        warnings=notices_out(() if said is None else (said,)),
    )
    if revision.verification is None:
        return shown
    return VerifiedRevisionOut(**vars(shown), verification=verification_out(revision.verification))


def profile_out(profile: HardwareProfile) -> AnyProfileOut:
    """Return a profile as it is sent."""
    current = profile.current
    shown = ProfileOut(
        name=profile.name,
        revision=current.number,
        latest_revision=profile.latest,
        created_at=timestamp(profile.created_at),
        revised_at=timestamp(current.created_at),
        pipeline=pipeline_or_none(current.model),
        aggregate=aggregate_or_none(current.model),
        provenance=_provenance(current.provenance),
    )
    if current.verification is None:
        return shown
    return VerifiedProfileOut(**vars(shown), verification=verification_out(current.verification))


def profiles_out(page: ProfilePage) -> ProfilesOut:
    """Return a page of profiles as it is sent."""
    return ProfilesOut(tuple(map(profile_out, page.profiles)), page.after)


def revisions_out(
    profile: HardwareProfile, revisions: Iterable[tuple[Revision, Against | None]]
) -> RevisionsOut:
    """Return the revisions of a profile as they are sent, with what was measured of each."""
    current = profile.current.number
    return RevisionsOut(
        profile.name,
        tuple(
            revision_of_profile_out(revision, current=current, against=against)
            for revision, against in revisions
        ),
    )
