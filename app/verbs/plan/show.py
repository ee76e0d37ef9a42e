"""A plan as parts: what is known and what is not, the sizes to measure, and the lines so far."""

from __future__ import annotations

from collections.abc import Iterator

from app.text.notices import capitalised
from app.text.numbers import format_figure
from app.text.units import format_time, printable
from app.ui.parts import Column, Grid, Part
from contract.plan import MeasurementPlanOut
from domain.units import format_bytes

_MEASURED = {
    "latency": "latency of a message on its own",
    "interarrival": "time between messages back to back",
}


def parts(plan: MeasurementPlanOut) -> Iterator[Part]:
    """Yield why it is decided or is not, what to measure next, and the bottlenecks."""
    yield capitalised(printable(plan.reason)) + "."
    if plan.measure:
        yield ""
        yield to_measure(plan)
    if plan.bottlenecks:
        yield ""
        yield bottlenecks(plan)


def to_measure(plan: MeasurementPlanOut) -> Grid:
    """Return the sizes to measure next, and how often."""
    columns = (Column("message"), Column("measure", is_number=False), Column("times"))
    rows = (
        (
            format_bytes(step.message_bytes),
            _MEASURED.get(step.what, step.what),
            str(step.repetitions),
        )
        for step in plan.measure
    )
    return Grid(columns, tuple(rows), "What to measure next")


def bottlenecks(plan: MeasurementPlanOut) -> Grid:
    """Return the lines that are known, each with the sizes that it is of."""
    headings = ("from", "to", "overhead", "ns per byte")
    rows = (
        (
            format_bytes(known.from_bytes),
            format_bytes(known.to_bytes),
            format_time(known.overhead_us),
            format_figure(known.ns_per_byte),
        )
        for known in plan.bottlenecks
    )
    return Grid(tuple(map(Column, headings)), tuple(rows), "Bottlenecks by size of the message")
