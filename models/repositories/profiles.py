"""Hardware profiles and their immutable revisions."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import cast

from sqlalchemy import Connection, Row, Select, Table, bindparam, delete, func, select, update
from sqlalchemy.orm import Session

from domain.errors import Conflict, NotFound
from domain.model import CostModel
from domain.profile import HardwareProfile, Provenance, Revision, check_profile_name
from domain.verification import Verification
from models.base import utc_now
from models.documents import dump_verification
from models.fit_documents import NO_STRUCTURE_IN_DOCUMENT, STRUCTURE_IN_DOCUMENT
from models.records import OWNER
from models.repositories.changes import note_change
from models.repositories.statements import (
    check_text,
    flush,
    insert_if_absent,
    is_row_number,
    is_storable,
    mark_changed_choices,
)
from models.repositories.stored_bytes import bytes_of, tally_of
from models.rows.compiled_table import CompiledTableRow
from models.rows.fit import FitRow
from models.rows.profile import ProfileRow
from models.rows.revision import RevisionRow, revision_of, verification_of
from models.rows.verification import VerificationRow

Profiles = list[HardwareProfile]
Revisions = list[Revision]
LaterFit = tuple[int, str]  # number, identifier of the fit

# Every answer about a profile reads one revision: as with answers, the statements are built once.
_PROFILE = cast(Table, ProfileRow.__table__)
_REVISION = cast(Table, RevisionRow.__table__)
_FIT = cast(Table, FitRow.__table__)
_VERIFICATION = cast(Table, VerificationRow.__table__)
_REVISIONS = (
    select(
        _REVISION,
        _VERIFICATION.c.document,
        _VERIFICATION.c.created_at.label("verified_at"),
    )
    .join_from(_REVISION, _VERIFICATION, isouter=True)
    .where(_REVISION.c.owner == bindparam("owner"), _REVISION.c.profile_name == bindparam("name"))
)
_NUMBERED = _REVISIONS.where(_REVISION.c.number == bindparam("number"))
_CURRENT = _REVISIONS.where(
    _PROFILE.c.owner == _REVISION.c.owner,
    _PROFILE.c.name == _REVISION.c.profile_name,
    _PROFILE.c.current_number == _REVISION.c.number,
)

# The database looks into the documents of the fits.
_HAS_NO_STRUCTURE = _FIT.c.document.contains(NO_STRUCTURE_IN_DOCUMENT, autoescape=True)
_OF_BEGINS = (
    select(_REVISION.c.number, _REVISION.c.fit_id)
    .join_from(
        _REVISION,
        _PROFILE,
        (_PROFILE.c.owner == _REVISION.c.owner) & (_PROFILE.c.name == _REVISION.c.profile_name),
    )
    .join(_FIT, (_FIT.c.owner == _REVISION.c.owner) & (_FIT.c.id == _REVISION.c.fit_id))
    .where(
        _REVISION.c.owner == bindparam("owner"),
        _REVISION.c.profile_name == bindparam("name"),
        _FIT.c.document.contains(STRUCTURE_IN_DOCUMENT, autoescape=True),
    )
    .order_by(_REVISION.c.number.desc())
)
# It stops at the first that tells: how many others have come since costs no answer more than that.
_LATER_STRUCTURE = _OF_BEGINS.where(
    _REVISION.c.number > bindparam("number"),
    _PROFILE.c.current_number != bindparam("number"),
    ~_HAS_NO_STRUCTURE,
).limit(1)
_ALL_OF_BEGINS = _OF_BEGINS.add_columns(
    _PROFILE.c.current_number, _HAS_NO_STRUCTURE.label("has_no_structure")
)


@dataclass(frozen=True, slots=True)
class RevisionsOfBegins:
    """A profile's revisions whose fits have seen begins of stages.

    `current` is the number of the current one, `numbers` those of the revisions; `newest` is the
    last one whose begins show a structure, None where none does.
    """

    current: int
    numbers: frozenset[int]
    newest: LaterFit | None


class ProfileRepository:
    """An owner's profiles by name.

    Numbers of revisions count from 1 and are never reused while one lives.
    """

    def __init__(
        self, connection: Connection, opened: Callable[[], Session], owner: str = OWNER
    ) -> None:
        self._connection = connection
        self._opened = opened
        self._owner = owner

    def list(self, *, containing: str = "", after: str | None = None, limit: int) -> Profiles:
        """A page by name, beginning behind `after`; of names that contain this text, if any."""
        if not (is_storable(after or "") and is_storable(containing)):
            return []
        statement = self._with_current().order_by(ProfileRow.name).limit(limit)
        if containing:
            statement = statement.where(ProfileRow.name.contains(containing, autoescape=True))
        if after is not None:
            statement = statement.where(ProfileRow.name > after)
        return [_to_profile(found) for found in self._session.execute(statement)]

    def get(self, name: str) -> HardwareProfile:
        """The profile. Raises NotFound."""
        if is_storable(name):
            asked = self._with_current().where(ProfileRow.name == name)
            found = self._session.execute(asked).first()
            if found is not None:
                return _to_profile(found)
        raise _unknown(name)

    def lock(self, name: str) -> HardwareProfile:
        """The profile, which nobody else changes until this transaction ends. Raises NotFound."""
        self._locked(name)
        return self.get(name)

    def revision(self, name: str, number: int | None = None) -> Revision:
        """One revision, the current one by default. Raises NotFound."""
        found = None
        if is_storable(name) and (number is None or is_row_number(number)):
            asked = _CURRENT if number is None else _NUMBERED
            of: dict[str, str | int] = {"owner": self._owner, "name": name}
            if number is not None:
                of["number"] = number
            found = self._connection.execute(asked, of).first()
        if found is None:
            self.get(name)  # says so where even the profile is unknown
            raise NotFound(
                f"there is no revision {number} of hardware profile", field="profile", subject=name
            )
        return revision_of(found, verification_of(found.document, found.verified_at))

    def revisions(self, name: str, *, numbers: Collection[int] | None = None) -> Revisions:
        """Every revision, or those of these numbers that are there, the oldest first. Raises
        NotFound.
        """
        self.get(name)
        statement = (
            select(RevisionRow)
            .where(RevisionRow.owner == self._owner, RevisionRow.profile_name == name)
            .order_by(RevisionRow.number)
        )
        if numbers is not None:
            statement = statement.where(RevisionRow.number.in_(filter(is_row_number, numbers)))
        return [row.to_domain() for row in self._session.scalars(statement)]

    def later_structure(self, name: str, number: int) -> LaterFit | None:
        """The newest later revision whose fit has seen a structure in begins; None where there is
        none, or this one is current.
        """
        if not (is_storable(name) and is_row_number(number)):
            return None
        of = {"owner": self._owner, "name": name, "number": number}
        found = self._connection.execute(_LATER_STRUCTURE, of).first()
        return None if found is None else (found.number, found.fit_id)

    def of_begins(self, name: str) -> RevisionsOfBegins | None:
        """The revisions whose fits have seen begins, in one query; None where no fit has."""
        if not is_storable(name):
            return None
        of = {"owner": self._owner, "name": name}
        found = self._connection.execute(_ALL_OF_BEGINS, of).all()
        if not found:
            return None
        newest = next(((row.number, row.fit_id) for row in found if not row.has_no_structure), None)
        return RevisionsOfBegins(
            found[0].current_number, frozenset(row.number for row in found), newest
        )

    def create(self, name: str, model: CostModel, provenance: Provenance) -> HardwareProfile:
        """A new profile at revision 1. Raises Conflict where the name is taken."""
        created = self.create_if_absent(name, model, provenance)
        if created is None:
            raise Conflict("there is already a hardware profile", field="name", subject=name)
        return created

    def create_if_absent(
        self, name: str, model: CostModel, provenance: Provenance
    ) -> HardwareProfile | None:
        """A new profile at revision 1, or None, with nothing changed, where the name is taken."""
        check_profile_name(name)
        revision = Revision(name, 1, model, provenance, utc_now())
        profile = HardwareProfile(name, revision, 1, revision.created_at)
        values = {
            "owner": self._owner,
            "name": name,
            "current_number": 1,
            "latest_number": 1,
            "created_at": profile.created_at,
        }
        if not insert_if_absent(self._session, ProfileRow, values):
            return None
        self._insert(revision)
        self._note("create", name, None, 1)
        return profile

    def add_revision(self, name: str, model: CostModel, provenance: Provenance) -> HardwareProfile:
        """A further revision, which becomes the current one. Raises NotFound."""
        row = self._locked(name)
        revision = Revision(name, row.latest_number + 1, model, provenance, utc_now())
        self._insert(revision)
        self._note("revise", name, row.current_number, revision.number)
        row.latest_number = row.current_number = revision.number
        self._session.flush()
        mark_changed_choices(self._session)
        return row.to_domain(revision)

    def save(self, name: str, model: CostModel, provenance: Provenance) -> HardwareProfile:
        """Create the profile, or add a revision where it exists."""
        created = self.create_if_absent(name, model, provenance)
        return created or self.add_revision(name, model, provenance)

    def set_current(self, name: str, number: int) -> HardwareProfile:
        """Roll back or forward to a revision. Raises NotFound."""
        row = self._locked(name)
        revision = self.revision(name, number)
        self._note("use", name, row.current_number, number)
        row.current_number = number
        self._session.flush()
        mark_changed_choices(self._session)
        return row.to_domain(revision)

    def verify(self, name: str, number: int, found: Verification) -> Revision:
        """Keep the verification of a revision, in the place of an earlier one. Raises NotFound."""
        self._locked(name)
        self.revision(name, number)
        earlier = delete(VerificationRow).where(
            VerificationRow.owner == self._owner,
            VerificationRow.profile_name == name,
            VerificationRow.profile_revision == number,
        )
        gone = earlier.returning(bytes_of(_VERIFICATION, _VERIFICATION.name))
        before = self._session.scalar(gone) or 0
        document = dump_verification(found)
        self._session.add(
            VerificationRow(
                owner=self._owner,
                profile_name=name,
                profile_revision=number,
                document=document,
                created_at=utc_now(),
            )
        )
        self._session.flush()
        tally_of(self._session).change(self._owner, -before)
        tally_of(self._session).store(self._owner, document)
        self._note("verify", name, None, number)
        self._session.expire_all()
        mark_changed_choices(self._session)
        return self.revision(name, number)

    def delete(self, name: str) -> None:
        """Remove the profile and its revisions; stored answers stay. Raises NotFound."""
        row = self._locked(name)
        self._session.expunge(row)
        table = CompiledTableRow
        self._session.execute(
            update(table)
            .where(table.owner == self._owner, table.profile_name == name)
            .values(profile_name=None, profile_revision=None)
        )
        for part in (_REVISION, _VERIFICATION):
            stored = select(func.sum(bytes_of(part, part.name))).where(
                part.c.owner == self._owner, part.c.profile_name == name
            )
            tally_of(self._session).change(self._owner, -int(self._session.scalar(stored) or 0))
        # One statement: the database removes the revisions (ON DELETE CASCADE).
        mine = ProfileRow.owner == self._owner, ProfileRow.name == name
        self._session.execute(delete(ProfileRow).where(*mine))
        self._note("delete", name, row.current_number, None)
        self._session.expire_all()
        mark_changed_choices(self._session)

    @property
    def _session(self) -> Session:
        return self._opened()

    def _note(self, verb: str, name: str, before: int | None, after: int | None) -> None:
        was, now = (None if number is None else str(number) for number in (before, after))
        note_change(self._session, self._owner, f"profile.{verb}", name, before=was, after=now)

    def _locked(self, name: str) -> ProfileRow:
        # SQLite has no row locks and ignores this: its one writer already holds the database.
        mine = ProfileRow.owner == self._owner, ProfileRow.name == name
        statement = select(ProfileRow).where(*mine).with_for_update()
        row = self._session.scalars(statement).first() if is_storable(name) else None
        if row is None:
            raise _unknown(name)
        return row

    def _insert(self, revision: Revision) -> None:
        check_text("provenance", revision.provenance.detail)
        row = RevisionRow.from_domain(self._owner, revision)
        self._session.add(row)
        flush(self._session, conflict="the revision refers to a fit that is not stored")
        tally_of(self._session).store(self._owner, row.pipeline, row.detail)

    def _with_current(self) -> Select[ProfileRow, RevisionRow]:
        mine = select(ProfileRow, RevisionRow).where(ProfileRow.owner == self._owner)
        return mine.join(
            RevisionRow,
            (RevisionRow.owner == ProfileRow.owner)
            & (RevisionRow.profile_name == ProfileRow.name)
            & (RevisionRow.number == ProfileRow.current_number),
        )


def _to_profile(found: Row[ProfileRow, RevisionRow]) -> HardwareProfile:
    profile, revision = found
    return profile.to_domain(revision.to_domain())


def _unknown(name: str) -> NotFound:
    return NotFound("there is no hardware profile", field="profile", subject=name)
