"""Changes as parts: who changed what, and from what to what."""

from __future__ import annotations

from app.text.moments import format_minute
from app.ui.parts import Column, Grid, Part
from contract.changes import ChangesOut

_COLUMNS = ("when", "who", "what", "of", "before", "after")


def parts(changes: ChangesOut) -> list[Part]:
    """Return a table of changes."""
    rows = (
        (
            format_minute(change.created_at),
            change.made_by or "anybody",
            change.action,
            change.subject,
            change.before or "",
            change.after or "",
        )
        for change in changes.items
    )
    return [Grid(tuple(Column(name, is_number=False) for name in _COLUMNS), tuple(rows))]
