"""What became of the tables of many profiles, as parts: how many, and why some have none."""

from __future__ import annotations

from collections.abc import Iterator

from app.text.numbers import format_count
from app.ui.parts import Column, Grid, Part
from contract.table import FleetOut


def parts(report: FleetOut) -> Iterator[Part]:
    """Yield the counts, and a table of those that failed."""
    yield (
        f"{format_count(report.profiles)} profiles: {format_count(report.compiled)} compiled, "
        f"{format_count(report.stored)} were there, {format_count(report.failed)} failed"
    )
    if failed := [(item.profile, item.error) for item in report.items if item.error]:
        columns = (Column("profile", is_number=False), Column("why", is_number=False))
        yield Grid(columns, tuple(failed))
