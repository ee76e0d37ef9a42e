"""Counts of an installed MPI as parts."""

from __future__ import annotations

from collections.abc import Iterator

from app.console.counting import CALLS
from app.text.numbers import format_instructions
from app.text.units import printable
from app.ui.parts import Column, Grid, Part, noted
from contract.layer import CountedLayerOut
from domain.messaging_layer import Service
from domain.units import format_bytes


def parts(found: CountedLayerOut) -> Iterator[Part]:
    """Yield what was counted, a row for each call, and what to beware of."""
    yield printable(f"{found.version}, {found.compiler}, {found.valgrind}")
    yield ""
    there = {name for call in found.calls for name in call.services}
    services = [name for name in Service if name in there]
    columns = [
        Column("call", is_number=False),
        *map(Column, ("message", "instructions", "data", "same", *services)),
    ]
    rows = []
    for call in found.calls:
        shown = (
            [format_instructions(call.instructions), format_instructions(call.data)]
            if call.countable
            else ["–", "–"]
        )
        rows.append(
            (
                CALLS[call.end],
                format_bytes(call.message_bytes),
                *shown,
                f"{call.identical} of {call.repetitions}",
                *(
                    format_instructions(call.services.get(name, 0)) if call.countable else "–"
                    for name in services
                ),
            )
        )
    yield Grid(tuple(columns), tuple(rows))
    yield ""
    yield from noted(found.warnings)
    yield "Services are by the names of functions alone; what no name tells is other."
