"""A compiled table as parts: its certificate, the fragments, and where the tolerance is missed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.text.numbers import (
    format_count,
    format_gap,
    format_percent,
    format_size,
    format_size_span,
)
from app.text.units import OF_MODEL, format_time, printable
from app.ui.notices import failures, noted, others
from app.ui.parts import Column, Facts, Grid, Part
from app.verbs.table.request import format_table_range
from contract.table import GapRangeOut, TableOut
from domain.units import format_byte_range, format_bytes
from domain.verification import Against, said_of

_MAX_ROWS = 12


def parts(table: TableOut) -> Iterator[Part]:
    """Yield the certificate, the numbers of fragments, and where the tolerance is missed."""
    yield from failures(table.warnings)
    span = format_size_span(table.min_message_bytes, table.max_message_bytes)
    yield f"messages of {span}{_of(table)}"
    yield ""
    yield Facts(tuple(_facts(table)))
    yield ""
    yield "Fragments by message size:"
    yield _counts_table(table)
    if table.missed:
        yield ""
        yield f"Where the tolerance is not proven {OF_MODEL}:"
        yield _missed_table(table)
    yield ""
    yield from noted(others(table.warnings))


def _facts(table: TableOut) -> Iterator[tuple[str, str]]:
    asked = format_gap(table.relative_gap)
    yield "tolerance", asked
    yield "schedules", f"at most {_worst(table.worst)} above the bound over every cut"
    yield (
        "repeated sizes",
        f"at most {_worst(table.worst_repeat)} above the bound over every repeated size",
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
    return Grid(columns, _shortened(rows, table.counts_total))


def _missed_table(table: TableOut) -> Grid:
    columns = (Column("messages", is_number=False), Column("proven"))
    rows = [
        (format_size_span(message.from_bytes, message.to_bytes), format_gap(message.relative_gap))
        for message in table.missed
    ]
    return Grid(columns, _shortened(rows, table.missed_total))


def _shortened(rows: Sequence[tuple[str, str]], total: int) -> tuple[tuple[str, str], ...]:
    if total <= _MAX_ROWS:
        return tuple(rows)
    return (*rows[:_MAX_ROWS], (f"… {total - _MAX_ROWS} more", ""))


# --- on the page ----------------------------------------------------------------------------------


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


@dataclass(frozen=True, slots=True)
class MissedLine:
    """Message sizes whose schedules are not proven to the tolerance."""

    range: str
    proven: str


@dataclass(frozen=True, slots=True)
class TableView:
    """What page/table.html is given. `more` is how many ranges are not listed."""

    reference: str
    digest: str
    range: str
    tolerance: str
    worst: str
    worst_repeat: str
    entries: str
    file: str
    missed: str
    lines: tuple[MissedLine, ...]
    more: str
    warnings: tuple[str, ...]
    is_active: bool
    said: str
    has_failed: bool

    @classmethod
    def of(cls, table: TableOut, against: Against | None, *, is_active: bool) -> TableView:
        said = said_of(against)
        lines = table.missed
        more = table.missed_total - len(lines)
        return cls(
            reference=table.profile.reference if table.profile else "",
            digest=table.digest,
            range=format_table_range(table),
            tolerance=format_percent(table.relative_gap),
            worst=_worst_at(table.worst),
            worst_repeat=_worst_at(table.worst_repeat),
            entries=f"{format_count(table.cut_entries)} cuts, "
            f"{format_count(table.repeat_entries)} repeated sizes",
            file=format_size(table.file_bytes),
            missed=format_missed(table),
            lines=tuple(_missed_line(one) for one in lines),
            more=format_count(more) if more else "",
            warnings=tuple(one.detail for one in table.warnings),
            is_active=is_active,
            said=said.detail if said else "",
            has_failed=against is not None and against.has_failed,
        )


def _missed_line(one: GapRangeOut) -> MissedLine:
    return MissedLine(format_gap_range(one), format_gap(one.relative_gap))


def _worst_at(one: GapRangeOut) -> str:
    return f"{format_gap(one.relative_gap)}, at {format_gap_range(one)}"
