"""Compiled plan tables."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Select, and_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from domain.errors import Conflict, NotFound
from models.records import OWNER, ActiveTable, TableRecord, TableSummary
from models.repositories.changes import note_change
from models.repositories.statements import (
    insert_if_absent,
    is_row_number,
    is_storable,
    mark_changed_choices,
)
from models.repositories.stored_bytes import tally_of
from models.rows.active_table import ActiveTableRow
from models.rows.compiled_table import CompiledTableRow, values_of
from models.rows.compiled_table_file import CompiledTableFileRow
from models.rows.profile import ProfileRow
from models.rows.revision import verification_of
from models.rows.verification import VerificationRow

Summaries = list[TableSummary]
ActiveTables = list[ActiveTable]

_IS_CHOICE = and_(
    ActiveTableRow.owner == CompiledTableRow.owner, ActiveTableRow.digest == CompiledTableRow.digest
)


class TableRepository:
    """An owner's compiled plan tables by digest, by question, and in pages, newest first; and the
    choice of at most one of a revision's tables, the active one.

    A file never changes. One of a profile that is deleted stays under its digest, belonging to no
    profile: a reader by its digest goes on reading it.
    """

    def __init__(self, session: Session, owner: str = OWNER) -> None:
        self._session = session
        self._owner = owner

    def add(self, record: TableRecord) -> None:
        """Store a table; one of these very bytes only gets its revision back where it lost it.

        The profile is locked first, as its deletion does: in another order both would wait
        for each other. Raises Conflict where the revision that it belongs to is not stored.
        """
        named = record.profile_name
        if named is not None and self._session.scalar(self._lock_of(named)) is None:
            raise Conflict("the revision that the table belongs to is not stored")
        try:
            is_new = insert_if_absent(
                self._session, CompiledTableRow, values_of(self._owner, record)
            )
            if is_new:
                values = {
                    "owner": self._owner,
                    "digest": record.digest,
                    "file": record.file,
                    "document": record.document,
                }
                insert_if_absent(self._session, CompiledTableFileRow, values)
                tally_of(self._session).store(self._owner, record.file, record.document)
                self._note("store", named, record.profile_revision, None, record.digest)
            else:
                self._attach(record)
        except IntegrityError as error:
            raise Conflict("the revision that the table belongs to is not stored") from error

    def get(self, digest: str) -> TableRecord:
        """The table of this digest. Raises NotFound."""
        if is_storable(digest):
            found = self._first(self._whole().where(CompiledTableRow.digest == digest))
            if found is not None:
                return found
        raise NotFound("there is no compiled table of this digest", field="digest")

    def find(self, question_digest: str) -> TableRecord | None:
        """The newest table of this question that belongs to a stored revision, or None."""
        return self._first(
            self._whole()
            .where(
                CompiledTableRow.question_digest == question_digest,
                CompiledTableRow.profile_name.is_not(None),
            )
            .order_by(CompiledTableRow.id.desc())
            .limit(1)
        )

    def list(
        self, profile: str, *, revision: int | None = None, after: str | None = None, limit: int
    ) -> Summaries:
        """A page of a profile's tables, newest first, beginning behind the identifier `after`."""
        if not (is_storable(profile) and is_storable(after or "") and is_row_number(revision or 0)):
            return []
        statement = self._with_choice().where(CompiledTableRow.profile_name == profile)
        if revision is not None:
            statement = statement.where(CompiledTableRow.profile_revision == revision)
        if after is not None:
            statement = statement.where(CompiledTableRow.id < after)
        statement = statement.order_by(CompiledTableRow.id.desc()).limit(limit)
        return [
            row.to_summary(is_active=chosen is not None)
            for row, chosen in self._session.execute(statement)
        ]

    def active(self, profile_name: str, revision: int | None = None) -> TableRecord | None:
        """The active table of a revision, the current one by default; None where it has none."""
        if not (is_storable(profile_name) and is_row_number(revision or 0)):
            return None
        chosen = self._whole().join(ActiveTableRow, _IS_CHOICE)
        return self._first(chosen.where(*self._of_revision(profile_name, revision)))

    def active_summary(self, profile_name: str, revision: int | None = None) -> TableSummary | None:
        """The same without its file."""
        if not (is_storable(profile_name) and is_row_number(revision or 0)):
            return None
        chosen = self._with_choice().where(*self._of_revision(profile_name, revision))
        found = self._session.execute(chosen).first()
        return None if found is None else found[0].to_summary(is_active=True)

    def active_all(self) -> ActiveTables:
        """Every choice of all owners, by owner, profile and revision."""
        row, verified = ActiveTableRow, VerificationRow
        of_revision = (
            verified.owner == row.owner,
            verified.profile_name == row.profile_name,
            verified.profile_revision == row.profile_revision,
        )
        statement = (
            select(row.profile_name, ProfileRow.current_number, row.profile_revision, row.digest)
            .add_columns(verified.document, verified.created_at, row.owner)
            .join(
                ProfileRow,
                and_(ProfileRow.owner == row.owner, ProfileRow.name == row.profile_name),
            )
            .join(verified, and_(*of_revision), isouter=True)
            .order_by(row.owner, row.profile_name, row.profile_revision)
        )
        found = self._session.execute(statement)
        return [
            ActiveTable(
                name, current, revision, digest, verification_of(document, verified_at), owner
            )
            for name, current, revision, digest, document, verified_at, owner in found
        ]

    def activate(self, profile_name: str, digest: str, *, revision: int | None = None) -> None:
        """Have the revision that this table was compiled for answer from it from now on.

        `revision` is the one that the caller means, None for whichever it is. Raises NotFound for
        a profile or table that is not stored, Conflict where the table belongs to another one.
        """
        self._lock(profile_name)
        row = self._get(digest) if is_storable(digest) else None
        if row is None:
            raise NotFound("there is no compiled table of this digest", field="digest")
        if row.profile_name != profile_name or row.profile_revision is None:
            raise Conflict("the compiled table belongs to another profile", field="digest")
        if revision not in (None, row.profile_revision):
            raise Conflict("the compiled table belongs to another revision", field="digest")
        if not self._choose(profile_name, row.profile_revision, digest):
            chosen = self._of_revision(profile_name, row.profile_revision)
            before = self._session.scalar(select(ActiveTableRow.digest).where(*chosen))
            self._session.execute(update(ActiveTableRow).where(*chosen).values(digest=digest))
            self._note("activate", profile_name, row.profile_revision, before, digest)

    def activate_first(self, digest: str) -> None:
        """Make this table active where its revision has no active one; else change nothing."""
        row = self._get(digest)
        if row is not None and row.profile_name is not None and row.profile_revision is not None:
            self._choose(row.profile_name, row.profile_revision, digest)

    def _choose(self, profile_name: str, revision: int, digest: str) -> int:
        mark_changed_choices(self._session)
        values = {
            "owner": self._owner,
            "profile_name": profile_name,
            "profile_revision": revision,
            "digest": digest,
        }
        try:
            is_first = insert_if_absent(self._session, ActiveTableRow, values)
            if is_first:
                self._note("activate", profile_name, revision, None, digest)
            return is_first
        except IntegrityError as error:
            raise Conflict("the revision that the table belongs to is not stored") from error

    def _note(
        self, verb: str, name: str | None, revision: int | None, before: str | None, after: str
    ) -> None:
        subject = after if name is None else f"{name}@{revision}"
        note_change(
            self._session, self._owner, f"table.{verb}", subject, before=before, after=after
        )

    def _lock(self, profile_name: str) -> None:
        """Of two choices for a profile one waits, and the profile is not deleted in between."""
        if not is_storable(profile_name) or not self._session.scalar(self._lock_of(profile_name)):
            raise NotFound("there is no hardware profile", field="profile", subject=profile_name)

    def _attach(self, record: TableRecord) -> None:
        self._session.execute(
            update(CompiledTableRow)
            .where(CompiledTableRow.owner == self._owner, CompiledTableRow.digest == record.digest)
            .values(profile_name=record.profile_name, profile_revision=record.profile_revision)
        )

    def _first(self, statement: Select[CompiledTableRow, bytes, bytes]) -> TableRecord | None:
        found = self._session.execute(statement).first()
        if found is None:
            return None
        row, file, document = found
        return row.to_record(file, document)

    def _get(self, digest: str) -> CompiledTableRow | None:
        return self._session.get(CompiledTableRow, (self._owner, digest))

    def _lock_of(self, profile_name: str) -> Select[str]:
        mine = ProfileRow.owner == self._owner, ProfileRow.name == profile_name
        return select(ProfileRow.name).where(*mine).with_for_update()

    def _with_choice(self) -> Select[CompiledTableRow, str | None]:
        mine = select(CompiledTableRow, ActiveTableRow.digest).outerjoin(ActiveTableRow, _IS_CHOICE)
        return mine.where(CompiledTableRow.owner == self._owner)

    def _of_revision(
        self, profile_name: str, revision: int | None
    ) -> tuple[ColumnElement[bool], ...]:
        """The row of a revision's choice; of the current revision where none is said."""
        mine = ProfileRow.owner == self._owner, ProfileRow.name == profile_name
        number = (
            select(ProfileRow.current_number).where(*mine).scalar_subquery()
            if revision is None
            else revision
        )
        return (
            ActiveTableRow.owner == self._owner,
            ActiveTableRow.profile_name == profile_name,
            ActiveTableRow.profile_revision == number,
        )

    def _whole(self) -> Select[CompiledTableRow, bytes, bytes]:
        files = CompiledTableFileRow
        mine = select(CompiledTableRow, files.file, files.document).join(
            files,
            and_(
                files.owner == CompiledTableRow.owner,
                files.digest == CompiledTableRow.digest,
            ),
        )
        return mine.where(CompiledTableRow.owner == self._owner)
