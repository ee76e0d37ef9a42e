"""Hardware profiles: looked up, created, revised, rolled back, deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from domain.errors import InvalidInput, NotFound
from domain.profile import (
    HardwareProfile,
    Origin,
    ProfileReference,
    Provenance,
    Revision,
    check_profile_name,
)

if TYPE_CHECKING:
    from domain.model import CostModel
    from models.session import Store


@dataclass(frozen=True, slots=True)
class ProfilePage:
    """One page of profiles by name; `after` is where the next one starts, None at the end."""

    profiles: tuple[HardwareProfile, ...]
    after: str | None


def list_profiles(
    store: Store, *, containing: str = "", after: str | None = None, limit: int = 50
) -> ProfilePage:
    """Profiles in the order of their names; those whose names contain a text, if one is given."""
    with store.reading() as unit:
        found = tuple(unit.profiles.list(containing=containing, after=after, limit=limit + 1))
    return ProfilePage(found[:limit], found[limit - 1].name if len(found) > limit else None)


def get_profile(store: Store, name: str) -> HardwareProfile:
    """The profile of this name. Raises NotFound."""
    with store.reading() as unit:
        return unit.profiles.get(known_name(name))


def get_revision(store: Store, reference: ProfileReference) -> Revision:
    """The revision that a reference names. Raises NotFound."""
    with store.reading() as unit:
        return unit.profiles.revision(reference.name, reference.revision)


def create_profile(
    store: Store, name: str, model: CostModel, *, detail: str = ""
) -> HardwareProfile:
    """A new profile with revision 1. Raises InvalidInput for the name, Conflict if it is taken."""
    check_profile_name(name)
    with store.unit_of_work() as unit:
        return unit.profiles.create(name, model, Provenance(Origin.GIVEN, detail))


def revise_profile(
    store: Store, name: str, model: CostModel, *, detail: str = ""
) -> HardwareProfile:
    """Add a revision, which becomes current. Raises NotFound."""
    with store.unit_of_work() as unit:
        provenance = Provenance(Origin.GIVEN, detail)
        return unit.profiles.add_revision(known_name(name), model, provenance)


def list_revisions(store: Store, name: str) -> tuple[HardwareProfile, tuple[Revision, ...]]:
    """The profile and every revision of it. Raises NotFound."""
    with store.reading() as unit:
        profile = unit.profiles.get(known_name(name))
        return profile, tuple(unit.profiles.revisions(name))


def set_current(store: Store, name: str, revision: int) -> HardwareProfile:
    """Make an existing revision the current one. Raises NotFound."""
    with store.unit_of_work() as unit:
        return unit.profiles.set_current(known_name(name), revision)


def delete_profile(store: Store, name: str) -> None:
    """Delete a profile and its revisions; answers that name it stay. Raises NotFound."""
    with store.unit_of_work() as unit:
        unit.profiles.delete(known_name(name))


def known_name(name: str) -> str:
    """The name, if a profile may have it: nothing is stored under any other. Raises NotFound."""
    try:
        check_profile_name(name)
    except InvalidInput:
        raise NotFound("there is no profile of this name", field="profile") from None
    return name


def known_reference(text: str) -> ProfileReference:
    """The profile or revision that this can name. Raises NotFound."""
    try:
        return ProfileReference.parse(text)
    except InvalidInput:
        raise NotFound("there is no profile of this name", field="profile") from None
