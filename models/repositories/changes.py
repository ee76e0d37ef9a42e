"""Who changed what: noted by what changes it, in the same transaction."""

from __future__ import annotations

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from models.base import utc_now
from models.identifiers import new_id
from models.records import NOBODY, OWNER, ChangedBy, ChangeRecord
from models.repositories.statements import is_storable
from models.rows.change import ChangeRow

CHANGED_BY = "changed_by"  # of a session: who acts in it

Changes = list[ChangeRecord]


def note_change(
    session: Session,
    owner: str,
    action: str,
    subject: str,
    *,
    before: str | None = None,
    after: str | None = None,
) -> None:
    """Note a change that this session makes: `action` is what and how, as `profile.create`.

    `before` and `after` are revisions, digests or states, None where there is none.
    """
    by: ChangedBy = session.info.get(CHANGED_BY, NOBODY)
    values = {
        "id": new_id(),
        "created_at": utc_now(),
        "owner": owner,
        "made_by": by.name,
        "key_id": by.key_id or None,
        "request": by.request or None,
        "action": action,
        "subject": subject,
        "before": before,
        "after": after,
    }
    session.execute(insert(ChangeRow).values(**values))


class ChangeRepository:
    """An owner's changes, the newest first."""

    def __init__(self, session: Session, owner: str = OWNER) -> None:
        self._session = session
        self._owner = owner

    def note(
        self, action: str, subject: str, *, before: str | None = None, after: str | None = None
    ) -> None:
        """Note what is changed by other means than a repository of a session."""
        note_change(self._session, self._owner, action, subject, before=before, after=after)

    def list(self, *, subject: str | None = None, after: str | None = None, limit: int) -> Changes:
        """A page, beginning behind the identifier `after`; of one subject, if any is given."""
        if not (is_storable(subject or "") and is_storable(after or "")):
            return []
        found = select(ChangeRow).where(ChangeRow.owner == self._owner)
        if subject is not None:
            found = found.where(ChangeRow.subject == subject)
        if after is not None:
            found = found.where(ChangeRow.id < after)
        found = found.order_by(ChangeRow.id.desc()).limit(limit)
        return [row.to_record() for row in self._session.scalars(found)]
