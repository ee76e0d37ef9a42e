"""What the service sends, as a person reads it; each function gives parts to print in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from app.text.numbers import (
    format_cost,
    format_gap,
    format_size_span,
)
from app.text.units import format_given_time, printable
from app.ui.parts import Column, Grid, Part
from domain.units import format_bytes

if TYPE_CHECKING:
    from contract.pipeline import AggregateOut, PipelineOut, StageOut
    from contract.profiles import ProfileOut, ProfilesOut, RevisionOut, RevisionsOut
    from contract.table import TablesOut

Parts = Iterator[Part]


# --- pipelines -----------------------------------------------------------------------------------


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


# --- profiles -------------------------------------------------------------------------------------


def profiles_table(profiles: ProfilesOut) -> Grid:
    """Return all profiles."""
    columns = (
        Column("profile", is_number=False),
        Column("revision"),
        Column("stages"),
        Column("from", is_number=False),
    )
    rows = (
        (
            item.name,
            f"{item.revision} of {item.latest_revision}",
            _how_many(item),
            _provenance(item),
        )
        for item in profiles.items
    )
    return Grid(columns, tuple(rows))


def profile_parts(name: str, shown: ProfileOut | RevisionOut) -> Parts:
    """Yield a profile, or one revision of it: its stages and where they came from."""
    yield f"{name}@{shown.revision}  {_provenance(shown)}"
    yield ""
    if shown.pipeline:
        yield stages_table(shown.pipeline)
        yield from _handoffs(shown.pipeline)
    if shown.aggregate:
        yield aggregate_table(shown.aggregate)
    model = shown.pipeline or shown.aggregate
    if model and model.delay_us > 0.0:
        yield f"and a constant delay of {format_given_time(model.delay_us)}"


def _handoffs(pipeline: PipelineOut) -> Parts:
    """Yield which stages hand their bytes on as they move."""
    from app.schemas.stages import stored_pipeline

    for stage in stored_pipeline(pipeline).stages:
        if stage.handoff_bytes is not None:
            grain = format_bytes(stage.handoff_bytes)
            yield f"{printable(stage.name)} hands bytes on as they move, {grain} at a time"


_DIGITS = 16  # of a digest: enough to name a table by


def tables_table(tables: TablesOut) -> Grid:
    """Return a profile's compiled tables, newest first."""
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
            str(item.profile.revision),
            "active" if item.active else "",
            format_size_span(item.min_message_bytes, item.max_message_bytes),
            format_gap(item.relative_gap),
            item.created_at[:19],
            item.digest[:_DIGITS],
        )
        for item in tables.items
    ]
    return Grid(columns, tuple(rows))


def revisions_table(profile: RevisionsOut) -> Grid:
    """Return every revision of a profile; the current one is marked."""
    columns = (
        Column("revision"),
        Column("", is_number=False),
        Column("created", is_number=False),
        Column("stages"),
        Column("from", is_number=False),
    )
    rows = (
        (
            str(item.revision),
            "current" if item.is_current else "",
            item.created_at[:19].replace("T", " "),
            _how_many(item),
            _provenance(item),
        )
        for item in profile.revisions
    )
    return Grid(columns, tuple(rows))


def _how_many(shown: ProfileOut | RevisionOut) -> str:
    pipeline = shown.pipeline
    return str(len(pipeline.stages)) if pipeline else "aggregate"


def _provenance(shown: ProfileOut | RevisionOut) -> str:
    provenance = shown.provenance
    detail = printable(provenance.detail)
    return f"{provenance.origin}: {detail}" if detail else str(provenance.origin)


# --- small things ---------------------------------------------------------------------------------
