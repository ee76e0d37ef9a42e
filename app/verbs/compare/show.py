"""A comparison as parts: a table for each message size, and why strategies have no answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.text.numbers import (
    format_count,
    format_counted,
    format_excess,
    format_excess_span,
    format_gap,
)
from app.text.units import format_time, printable
from app.ui.parts import Column, Grid, Part, failures, noted, others
from contract.compare import CompareOut, CompareRowOut, ItemsCompareOut, ItemsCompareRowOut
from domain.units import format_bytes

_NESTED_MARK = " *"
_WAYS = {
    "exact": "exact cut",
    "best_cap_until": "best cap, until",
    "best_cap_before": "best cap, before",
    "one_fragment": "one fragment",
    "one_item_each": "one item each",
    "pytorch_default": "PyTorch's default",
}


def parts(found: CompareOut | ItemsCompareOut) -> Iterator[Part]:
    """Yield one grid a message size, what was declined, and the notices."""
    if isinstance(found, ItemsCompareOut):
        yield from _between_items(found)
        return
    yield from failures(found.said)
    through = "a pipeline seen from outside"
    if found.pipeline is not None:
        through = format_counted(len(found.pipeline.stages), "stage")
    yield through + (f", profile {found.profile.reference}" if found.profile else "")
    for size in dict.fromkeys(row.message_bytes for row in found.rows):
        rows = [row for row in found.rows if row.message_bytes == size]
        yield ""
        yield format_bytes(size)
        yield grid(rows)
        yield from notes(rows)
    yield from noted(others(found.said))


def _between_items(found: ItemsCompareOut) -> Iterator[Part]:
    """Yield one grid of the ways to cut between items, what was declined, and the notices."""
    yield from failures(found.warnings)
    count = format_counted(len(found.items.bytes), "item")
    through = format_counted(len(found.pipeline.stages), "stage")
    of_profile = f", profile {found.profile.reference}" if found.profile else ""
    yield f"{count}, {format_bytes(found.message_bytes)}, through {through}{of_profile}"
    yield ""
    yield items_grid(found.rows)
    for row in found.rows:
        if row.latency_us is None:
            yield f"{way_words(row)}: {printable(row.declined or 'no answer')}"
    yield from noted(others(found.warnings))


def items_grid(rows: Sequence[ItemsCompareRowOut]) -> Grid:
    """Return what each way to cut between items costs; the least latency is marked."""
    columns = (
        *(Column("way", is_number=False), Column("caps"), Column("fragments"), Column("largest")),
        *(Column("latency"), Column("more by")),
    )
    priced = [(row, row.latency_us) for row in rows if row.latency_us is not None]
    min_us = min(latency_us for _, latency_us in priced)
    return Grid(
        columns,
        tuple(
            (
                way_words(row),
                _caps(row),
                format_count(row.fragments or 0),
                format_bytes(row.largest_fragment_bytes or 0),
                format_time(latency_us),
                _more_by(row, latency_us, min_us),
            )
            for row, latency_us in priced
        ),
    )


def way_words(row: ItemsCompareRowOut) -> str:
    """Return what a way to cut between items is called."""
    if row.way != "cap":
        return _WAYS[row.way]
    first = "" if row.first_bytes is None else f", first {format_bytes(row.first_bytes)}"
    return f"cap, {row.rule}{first}"


def _caps(row: ItemsCompareRowOut) -> str:
    if row.from_bytes is None:
        return ""
    if row.to_bytes is None:
        return f"from {format_bytes(row.from_bytes)}"
    if row.to_bytes == row.from_bytes:
        return format_bytes(row.from_bytes)
    return f"{format_bytes(row.from_bytes)} to {format_bytes(row.to_bytes)}"


def grid(rows: Sequence[CompareRowOut]) -> Grid:
    """Return what each strategy costs on one message; the least latency is marked."""
    priced = [(row, row.latency_us) for row in rows if row.latency_us is not None]
    min_us = min((latency_us for _, latency_us in priced), default=0.0)
    columns: tuple[Column, ...] = (
        Column("strategy", is_number=False),
        Column("fragments"),
        Column("largest"),
        Column("latency"),
        Column("more by"),
        Column("gap"),
    )
    if any(row.serial_us is not None for row in rows):
        columns = (*columns, Column("serial"))
    return Grid(columns, tuple(_row(*one, min_us) for one in priced))


def _row(row: CompareRowOut, latency_us: float, min_us: float) -> tuple[str, ...]:
    serial = () if row.serial_us is None else (format_time(row.serial_us),)
    name = str(row.strategy)
    if row.chosen != name:
        name += f" ({row.chosen})"
    return (
        name + (_NESTED_MARK if _is_nested(row) else ""),
        format_count(row.fragments or 0),
        f"{row.largest_fragment_bytes} B",
        format_time(latency_us),
        _more_by(row, latency_us, min_us),
        format_gap(row.relative_gap or 0.0) + (" (cut off)" if _is_cut_off(row) else ""),
        *serial,
    )


def _more_by(row: CompareRowOut | ItemsCompareRowOut, latency_us: float, min_us: float) -> str:
    """How far it is above the best: between limits where time ended a search."""
    at_least, at_most = row.excess_at_least, row.excess_at_most
    is_open = at_least is not None and at_least != at_most
    if latency_us <= min_us:
        return "best so far" if is_open else "best"
    if not is_open or at_least is None:
        return format_excess(latency_us, min_us)
    return format_excess_span(at_least, at_most)


def notes(rows: Sequence[CompareRowOut]) -> Iterator[Part]:
    """Yield what the mark means, and which strategies have no answer, and why."""
    if any(map(_is_nested, rows)):
        yield "* stages may cut differently: a class of its own, with a lower bound of its own"
    if any(map(_is_cut_off, rows)):
        yield (
            "cut off: time ended the search; its latency is at most the gap above what more time "
            "may find"
        )
    for row in rows:
        if row.latency_us is None:
            yield f"{row.strategy}: {printable(row.declined or 'no answer')}"


def _is_cut_off(row: CompareRowOut) -> bool:
    return row.status == "time_limit"


def _is_nested(row: CompareRowOut) -> bool:
    return str(row.chosen or "").startswith(("hierarchical", "eager", "pulses"))
