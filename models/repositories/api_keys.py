"""Keys by which programs and browsers say who they are."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.orm import Session

from domain.errors import NotFound
from models.base import utc_now
from models.records import OWNER, ApiKeyRecord
from models.repositories.changes import note_change
from models.repositories.statements import (
    check_text,
    insert_if_absent,
    is_storable,
)
from models.rows.api_key import ApiKeyRow

Keys = list[ApiKeyRecord]


class ApiKeyRepository:
    """An owner's keys by identifier; `usable` are those of all owners."""

    def __init__(self, session: Session, owner: str = OWNER) -> None:
        self._session = session
        self._owner = owner

    def add(self, record: ApiKeyRecord) -> bool:
        """Store a key; False, with nothing changed, where its identifier is taken."""
        check_text("name", record.name)
        values = {**asdict(record), "owner": self._owner, "scope": record.scope.value}
        is_new = bool(insert_if_absent(self._session, ApiKeyRow, values))
        if is_new:
            verb = "create" if record.parent is None else "sign-in"
            self._note(verb, record.id, after=record.scope.value)
        return is_new

    def get(self, key_id: str) -> ApiKeyRecord:
        """The key. Raises NotFound."""
        row = self._session.get(ApiKeyRow, key_id) if is_storable(key_id) else None
        if row is None or row.owner != self._owner:
            raise NotFound("there is no key", field="id", subject=key_id)
        return row.to_record()

    def list(self) -> Keys:
        """Every key of the owner that is no browser's, the newest first, revoked ones as well."""
        found = (
            select(ApiKeyRow)
            .where(ApiKeyRow.owner == self._owner, ApiKeyRow.parent.is_(None))
            .order_by(ApiKeyRow.id.desc())
        )
        return [row.to_record() for row in self._session.scalars(found)]

    def count(self) -> int:
        """How many keys there are, of all owners and in any state."""
        return self._session.scalar(select(func.count()).select_from(ApiKeyRow)) or 0

    def usable(self) -> Keys:
        """The keys of all owners that are neither revoked nor expired."""
        row = ApiKeyRow
        is_valid = or_(row.expires_at.is_(None), row.expires_at > utc_now())
        found = select(row).where(row.revoked_at.is_(None), is_valid)
        return [one.to_record() for one in self._session.scalars(found)]

    def revoke(self, key_id: str) -> ApiKeyRecord:
        """End a key and the browsers that signed in by it. Raises NotFound."""
        was, row = self.get(key_id), ApiKeyRow
        if was.revoked_at is None:
            self._note("revoke", key_id)
        self._session.execute(
            update(row)
            .where(row.owner == self._owner, or_(row.id == key_id, row.parent == key_id))
            .where(row.revoked_at.is_(None))
            .values(revoked_at=utc_now())
        )
        self._session.expire_all()
        return self.get(key_id)

    def keep_browsers(self, key_id: str, most: int) -> None:
        """Delete the browsers that signed in by a key, but for the newest that are valid."""
        row = ApiKeyRow
        of_key = (row.owner == self._owner, row.parent == key_id)
        newest = (
            select(row.id)
            .where(*of_key, row.revoked_at.is_(None), row.expires_at > utc_now())
            .order_by(row.id.desc())
            .limit(most)
        )
        self._session.execute(delete(row).where(*of_key, row.id.not_in(newest)))

    def expire(self, key_id: str, at: datetime) -> None:
        """Have a key end no later than then, and the browsers that signed in by it."""
        row = ApiKeyRow
        self._session.execute(
            update(row)
            .where(row.owner == self._owner, or_(row.id == key_id, row.parent == key_id))
            .where(or_(row.expires_at.is_(None), row.expires_at > at))
            .values(expires_at=at)
        )
        self._session.expire_all()
        self._note("expire", key_id, after=at.isoformat())

    def _note(self, verb: str, key_id: str, *, after: str | None = None) -> None:
        note_change(self._session, self._owner, f"key.{verb}", key_id, after=after)
