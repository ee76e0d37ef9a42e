"""Who changed what: pages of an owner's changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from models.records import ChangeRecord

if TYPE_CHECKING:
    from models.session import Store


@dataclass(frozen=True, slots=True)
class ChangePage:
    """One page, newest first; `after` is where the next one starts, None at the end."""

    changes: tuple[ChangeRecord, ...]
    after: str | None


def list_changes(
    store: Store, *, subject: str | None = None, after: str | None = None, limit: int = 50
) -> ChangePage:
    """Return a page of who changed what of the owner's, or of one subject of it."""
    with store.reading() as unit:
        found = unit.changes.list(subject=subject, after=after, limit=limit + 1)
    last = found[limit - 1].id if len(found) > limit else None
    return ChangePage(tuple(found[:limit]), last)
