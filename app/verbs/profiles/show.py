"""Profiles as parts: lists of them, of their revisions and tables, and one with its stages."""

from __future__ import annotations

from collections.abc import Iterator

from app.console.reports import aggregate_table, stages_table
from app.text.numbers import format_cost, format_count, format_gap, format_size_span
from app.text.units import format_given_time, printable
from app.ui.parts import Column, Grid, Part, failures
from app.ui.verification import verification_parts
from contract.pipeline import AggregateOut, PipelineOut, WindowOut
from contract.profiles import (
    AnyProfileOut,
    AnyRevisionOut,
    ProfilesOut,
    RevisionOut,
    RevisionsOut,
    VerifiedProfileOut,
    VerifiedRevisionOut,
)
from contract.table import TablesOut
from domain.units import format_bytes
from domain.verification import CONTRADICTED

ORIGINS = {"given": "given", "fit": "fitted", "paper": "published", "layer": "counted"}
MAX_DETAIL = 500  # characters that are shown: of a layer, the detail is its whole document
_DIGITS = 16  # of a digest: enough to name a table by


def listing(profiles: ProfilesOut) -> Grid:
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


def parts(name: str, shown: AnyProfileOut | AnyRevisionOut) -> Iterator[Part]:
    """Yield a profile, or one revision of it, and what transfers said of it, a failure first."""
    if isinstance(shown, RevisionOut):
        yield from failures(notice for notice in shown.warnings if notice.code == CONTRADICTED)
    if isinstance(shown, VerifiedProfileOut | VerifiedRevisionOut):
        yield from verification_parts(shown.verification)
        yield ""
    yield f"{name}@{shown.revision}  {_provenance(shown)}"
    yield ""
    yield from costs(shown.pipeline, shown.aggregate)


def costs(pipeline: PipelineOut | None, aggregate: AggregateOut | None) -> Iterator[Part]:
    """Yield a table of the stages, or of what is known of them from outside, and what is said of
    it.
    """
    if pipeline:
        yield stages_table(pipeline)
        yield from _words(pipeline)
    if aggregate:
        yield aggregate_table(aggregate)
    model = pipeline or aggregate
    if model and model.delay_us > 0.0:
        yield f"A constant delay of {format_given_time(model.delay_us)} follows."


def _words(pipeline: PipelineOut) -> Iterator[Part]:
    """Yield how stages handle fragments beside what that costs: which of them hand their bytes on
    as they move, have lanes, delays or a processor, and what bounds the fragments under way.
    """
    for stage in pipeline.stages:
        name = printable(stage.name)
        if stage.handoff_bytes is not None:
            grain = format_bytes(stage.handoff_bytes)
            yield f"{name} hands bytes on as they move, {grain} at a time"
        if stage.lanes > 1:
            shared = ""
            if stage.shared_ns_per_byte:
                shared = f", which share {format_cost(stage.shared_ns_per_byte)} ns per byte"
            yield f"{name} handles {stage.lanes} fragments at once, on lanes in turn{shared}"
        if stage.delay_us:
            yield f"{name}: the next stage has a fragment {format_given_time(stage.delay_us)} later"
        if stage.processor is not None:
            yield f"{name} takes turns on {printable(stage.processor)}"
    yield from map(window_words, pipeline.windows)


def window_words(window: WindowOut) -> str:
    """Return what a window bounds."""
    sizes = []
    if "fragments" in window:
        sizes.append(f"{format_count(int(window['fragments']))} fragments")
    if "bytes" in window:
        sizes.append(format_bytes(int(window["bytes"])))
    ends = (printable(str(window[end])) for end in ("from", "to"))
    back = ""
    if "return_us" in window:
        back = f", a place back after {format_given_time(float(window['return_us']))}"
    return f"at most {' and '.join(sizes)} from {' to '.join(ends)}{back}"


def tables(tables: TablesOut) -> list[Part]:
    """Return a profile's compiled tables, newest first, and what was measured against them."""
    columns = (
        Column("revision"),
        Column("", is_number=False),
        Column("messages", is_number=False),
        Column("tolerance"),
        Column("created", is_number=False),
        Column("digest", is_number=False),
    )
    rows = (
        (
            str(item.profile.revision),
            "active" if item.active else "",
            format_size_span(item.min_message_bytes, item.max_message_bytes),
            format_gap(item.relative_gap),
            item.created_at[:19],
            item.digest[:_DIGITS],
        )
        for item in tables.items
    )
    warned = [notice for item in tables.items for notice in item.warnings]
    said = {notice.code + notice.detail: notice for notice in warned}
    return [*failures(said.values()), Grid(columns, tuple(rows))]


def revisions(profile: RevisionsOut) -> Grid:
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


def _how_many(shown: AnyProfileOut | AnyRevisionOut) -> str:
    pipeline = shown.pipeline
    return str(len(pipeline.stages)) if pipeline else "aggregate"


def _provenance(shown: AnyProfileOut | AnyRevisionOut) -> str:
    provenance = shown.provenance
    origin, detail = ORIGINS[provenance.origin], shortened(printable(provenance.detail))
    return f"{origin}: {detail}" if detail else origin


def shortened(detail: str) -> str:
    """Return where stages came from, of a long text its beginning."""
    return detail if len(detail) <= MAX_DETAIL else f"{detail[:MAX_DETAIL]}…"
