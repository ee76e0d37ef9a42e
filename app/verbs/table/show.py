"""A compiled table as parts: its certificate, the fragments, and where the tolerance is missed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.text.numbers import (
    format_count,
    format_gap,
    format_percent,
    format_size_span,
)
from app.text.units import OF_MODEL, format_time, printable
from app.ui.parts import Column, Facts, Grid, Part, failures, noted, others
from contract.table import GapRangeOut, TableOut
from domain.units import format_byte_range, format_bytes

_MAX_ROWS = 12
MISSED = "Where the tolerance is missed"


def parts(table: TableOut) -> Iterator[Part]:
    """Yield the certificate, the numbers of fragments, and where the tolerance is missed."""
    yield from failures(table.warnings)
    span = format_size_span(table.min_message_bytes, table.max_message_bytes)
    yield f"messages of {span}{_of(table)}"
    yield ""
    yield figures(table)
    yield ""
    yield "Fragments by message size:"
    yield _counts_table(table)
    if table.missed:
        yield ""
        yield f"Where the tolerance is not proven {OF_MODEL}:"
        yield missed(table)
    yield ""
    yield from noted(others(table.warnings))


def figures(table: TableOut) -> Facts:
    """Return what is proven of a table, and what its file has."""
    return Facts(tuple(_facts(table)))


def _facts(table: TableOut) -> Iterator[tuple[str, str]]:
    asked = format_gap(table.relative_gap)
    yield "tolerance", asked
    yield "schedules", f"at most {_worst(table.worst)} above the bound {OF_MODEL} over every cut"
    yield (
        "repeated sizes",
        f"at most {_worst(table.worst_repeat)} above the bound {OF_MODEL} over every repeated size",
    )
    if table.uncertainty:
        yield f"in {table.uncertainty.draws} draws", printable(table.uncertainty.sentence)
    cuts, repeats = format_count(table.cut_entries), format_count(table.repeat_entries)
    yield "entries", f"{cuts} cuts, {repeats} repeated sizes"
    yield "file", f"{format_count(table.file_bytes)} bytes, SHA-256 {table.digest}"
    yield "compiled", f"{table.created_at}, in {format_time(1e3 * table.compile_ms)}"


def _worst(one: GapRangeOut) -> str:
    return f"{format_gap(one.relative_gap)} ({format_size_span(one.from_bytes, one.to_bytes)})"


def _of(table: TableOut) -> str:
    return f", profile {table.profile.reference}" if table.profile else ""


def _counts_table(table: TableOut) -> Grid:
    columns = (Column("messages", is_number=False), Column("fragments"))
    rows = [
        (format_size_span(run.from_bytes, run.to_bytes), format_count(run.fragments))
        for run in table.counts
    ]
    return Grid(columns, _shortened(rows, table.counts_total, _MAX_ROWS))


def missed(table: TableOut, *, most: int = _MAX_ROWS) -> Grid:
    """Return the first ranges where the tolerance is missed, `most` of them."""
    columns = (Column("messages", is_number=False), Column("proven"))
    rows = [
        (format_size_span(message.from_bytes, message.to_bytes), format_gap(message.relative_gap))
        for message in table.missed
    ]
    return Grid(columns, _shortened(rows, table.missed_total, most), MISSED)


def _shortened(
    rows: Sequence[tuple[str, str]], total: int, most: int
) -> tuple[tuple[str, str], ...]:
    if total <= most:
        return tuple(rows)
    shown = rows[:most]
    return (*shown, (f"… {total - len(shown)} more", ""))


def format_missed(table: TableOut) -> str:
    """Return by how much a table misses its tolerance; "" where it keeps it."""
    if not table.missed_total:
        return ""
    worst, asked = table.worst, format_percent(table.relative_gap)
    return (
        f"It misses its tolerance of {asked} for {format_count(table.missed_bytes)} message "
        f"sizes: proven {OF_MODEL} is {format_gap(worst.relative_gap)} at worst, at "
        f"{format_gap_range(worst)}."
    )


def format_gap_range(one: GapRangeOut) -> str:
    """Return message sizes, inclusive."""
    first, last = one.from_bytes, one.to_bytes
    return format_bytes(first) if first == last else format_byte_range(first, last)
