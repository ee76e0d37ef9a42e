"""What can be measured here, as a table."""

from __future__ import annotations

from collections.abc import Iterable

from app.ui.parts import Column, Grid


def measurable(rows: Iterable[tuple[str, str, str]]) -> Grid:
    """Return a row for each: what it is measured as, its name, and what it is."""
    columns = tuple(Column(name, is_number=False) for name in ("what", "name", "is"))
    return Grid(columns, tuple(rows))
