"""What contract/changes.py declares, made of stored changes."""

from __future__ import annotations

from app.questions.changes import ChangePage
from app.schemas.base import timestamp
from contract.changes import ChangeOut, ChangesOut
from models.records import ChangeRecord


def change_out(change: ChangeRecord) -> ChangeOut:
    """Return a change as it is sent."""
    values = {name: getattr(change, name) for name in ChangeRecord.__slots__}
    return ChangeOut(**{**values, "created_at": timestamp(change.created_at)})


def changes_out(page: ChangePage) -> ChangesOut:
    """Return a page of changes as it is sent."""
    return ChangesOut(tuple(map(change_out, page.changes)), page.after)
