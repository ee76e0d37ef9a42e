"""Counts of an installed MPI beside those of a baseline, as parts."""

from __future__ import annotations

from collections.abc import Iterator

from app.console.counting import CALLS
from app.text.numbers import format_instructions, format_percent, format_signed_percent
from app.text.units import printable
from app.ui.parts import Column, Grid, Part
from contract.layer import CountChecksOut, CountedLayerOut
from domain.units import format_bytes


def parts(found: CountChecksOut, baseline: CountedLayerOut) -> Iterator[Part]:
    """Yield a row for each call, before and now, and whether the limit is kept."""
    yield printable(f"{found.version}, beside {baseline.version}")
    columns = (Column("call", is_number=False), *map(Column, ("message", "before", "now", "more")))
    rows = tuple(
        (
            CALLS[call.end],
            format_bytes(call.message_bytes),
            format_instructions(call.before),
            "waited" if call.now is None else format_instructions(call.now),
            "–" if call.share is None else format_signed_percent(call.share),
        )
        for call in found.calls
    )
    yield Grid(columns, rows)
    limit = format_percent(found.max_more)
    yield f"{'within' if found.is_kept else 'over'} {limit} more, call by call"
