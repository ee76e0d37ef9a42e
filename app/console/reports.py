"""What the service sends, as a person reads it; each function gives parts to print in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from app.text.numbers import (
    format_cost,
)
from app.text.units import printable
from app.ui.parts import Column, Grid, Part
from domain.units import format_bytes

if TYPE_CHECKING:
    from contract.pipeline import AggregateOut, PipelineOut, StageOut

Parts = Iterator[Part]


def stages_table(pipeline: PipelineOut) -> Grid:
    """Return the stages of a pipeline; a stage with several ranges takes a row for each."""
    return _costs_table(pipeline.stages, heading="stage")


def aggregate_table(aggregate: AggregateOut) -> Grid:
    """Return the total and the bottleneck of an aggregate, each as a stage."""
    parts = [
        replace(aggregate.total, name="total"),
        replace(aggregate.bottleneck, name="bottleneck"),
    ]
    return _costs_table(parts, heading="seen from outside")


def _costs_table(stages: Sequence[StageOut], *, heading: str) -> Grid:
    has_ranges = any(len(stage.parts) > 1 for stage in stages)
    columns = [Column(heading, is_number=False), Column("overhead µs"), Column("ns per byte")]
    if has_ranges:
        columns.append(Column("fragments up to"))
    rows: list[tuple[str, ...]] = []
    for stage in stages:
        for place, part in enumerate(stage.parts):
            name = printable(stage.name) if place == 0 else ""
            row = [name, format_cost(part.overhead_us), format_cost(part.ns_per_byte)]
            if has_ranges:
                end = part.up_to_bytes
                row.append(format_bytes(end) if end else "any" if place == 0 else "larger")
            rows.append(tuple(row))
    return Grid(tuple(columns), tuple(rows))
