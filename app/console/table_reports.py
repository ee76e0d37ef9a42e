"""What is told of a compiled plan table, as a person reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from app.console.reports import warning_parts
from app.console.screen import Column, Facts, Grid, Part
from app.text.numbers import format_count, format_gap
from app.text.units import format_time
from domain.units import format_bytes

if TYPE_CHECKING:
    from app.schemas.tables import GapRangeOut, TableOut, TablesOut

_MOST_ROWS = 12
_DIGITS = 16  # of a digest: enough to name a table by


def table_parts(table: TableOut) -> Iterator[Part]:
    """The certificate, the numbers of fragments, and where the tolerance is missed."""
    yield f"messages of {_span(table.least_bytes, table.greatest_bytes)}{_of(table)}"
    yield ""
    yield Facts(tuple(_facts(table)))
    yield ""
    yield "Fragments by message size:"
    yield _counts_table(table)
    if table.missed:
        yield ""
        yield "Where the tolerance is not proven:"
        yield _missed_table(table)
    yield ""
    yield from warning_parts(table.warnings)


def tables_table(tables: TablesOut) -> Grid:
    """A profile's compiled tables, newest first."""
    columns = (
        Column("revision"),
        Column("", is_number=False),
        Column("messages", is_number=False),
        Column("tolerance"),
        Column("created", is_number=False),
        Column("digest", is_number=False),
    )
    rows = [
        (
            str(one.profile.revision),
            "active" if one.active else "",
            _span(one.least_bytes, one.greatest_bytes),
            format_gap(one.relative_gap),
            one.created_at[:19],
            one.digest[:_DIGITS],
        )
        for one in tables.items
    ]
    return Grid(columns, tuple(rows))


def _facts(table: TableOut) -> Iterator[tuple[str, str]]:
    asked = format_gap(table.relative_gap)
    yield "tolerance", asked
    yield "schedules", f"at most {_worst(table.worst)} above the bound over every cut"
    yield (
        "repeated sizes",
        f"at most {_worst(table.worst_repeat)} above the bound over every repeated size",
    )
    cuts, repeats = format_count(table.cut_entries), format_count(table.repeat_entries)
    yield "entries", f"{cuts} cuts, {repeats} repeated sizes"
    yield "file", f"{format_count(table.file_bytes)} bytes, SHA-256 {table.digest}"
    yield "compiled", f"{table.created_at}, in {format_time(1e3 * table.compile_ms)}"


def _worst(one: GapRangeOut) -> str:
    return f"{format_gap(one.relative_gap)} ({_span(one.from_bytes, one.to_bytes)})"


def _of(table: TableOut) -> str:
    return f", profile {table.profile.reference}" if table.profile else ""


def _counts_table(table: TableOut) -> Grid:
    columns = (Column("messages", is_number=False), Column("fragments"))
    rows = [
        (_span(run.from_bytes, run.to_bytes), format_count(run.fragments)) for run in table.counts
    ]
    return Grid(columns, _shortened(rows, table.counts_total))


def _missed_table(table: TableOut) -> Grid:
    columns = (Column("messages", is_number=False), Column("proven"))
    rows = [
        (_span(one.from_bytes, one.to_bytes), format_gap(one.relative_gap)) for one in table.missed
    ]
    return Grid(columns, _shortened(rows, table.missed_total))


def _shortened(rows: Sequence[tuple[str, str]], total: int) -> tuple[tuple[str, str], ...]:
    if total <= _MOST_ROWS:
        return tuple(rows)
    return (*rows[:_MOST_ROWS], (f"… {total - _MOST_ROWS} more", ""))


def _span(least: int, greatest: int) -> str:
    if least == greatest:
        return format_bytes(least)
    return f"{format_bytes(least)} … {format_bytes(greatest)}"
