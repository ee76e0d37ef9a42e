"""What the service sends, as a person reads it; each function gives parts to print in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from app.text.notices import notice_lines
from app.text.numbers import (
    format_cost,
    format_counted,
    format_gap,
    format_percent,
    format_size_span,
)
from app.text.units import format_given_time, printable
from app.ui.parts import Column, Facts, Grid, Part
from domain.units import format_bytes

if TYPE_CHECKING:
    from contract.fit import EstimateOut, FitOut, LogGPFitOut, StageFitOut
    from contract.pipeline import AggregateOut, PipelineOut, StageOut
    from contract.profiles import ProfileOut, ProfilesOut, RevisionOut, RevisionsOut
    from contract.table import TablesOut

Parts = Iterator[Part]

_INTERVALS_FROM_WIDTH = 110


# --- pipelines and fits ---------------------------------------------------------------------------


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


def fit_parts(fit: FitOut, *, width: int) -> Parts:
    """Yield a fit: what was understood, each stage's line with standard errors, the warnings."""
    from app.schemas.base import notice_of

    stated = fit.understood.items()
    yield Facts(tuple((name.replace("_", " "), _value(value)) for name, value in stated))
    yield ""
    if fit.loggp is not None:
        yield logp_table(fit.loggp)
    stages = _fitted_stages(fit)
    if fit.loggp is not None and stages:
        yield ""
    if stages:
        yield fit_table(stages, width=width)
    for line in notice_lines(notice_of(notice) for notice in fit.warnings):
        yield f"note: {printable(line)}"


def fit_summary_parts(fit: FitOut, *, width: int) -> Parts:
    """Yield a fit above the answer that it gave: its lines, and the number of its warnings."""
    yield fit_table(_fitted_stages(fit), width=width)
    codes = [warning.code for warning in fit.warnings]
    if codes:
        names = ", ".join(dict.fromkeys(codes))
        many = format_counted(len(codes), "warning")
        yield f"note: the fit has {many} ({names}); sluice fit tells them"


def logp_table(loggp: LogGPFitOut) -> Grid:
    """Return LogP's parameters of each message size in µs, with their 95 % intervals."""
    rows = [
        (format_bytes(one.message_bytes) if not place else "", name, *_estimate(found))
        for one in loggp.sizes
        for place, (name, found) in enumerate(
            (
                ("o_s, to send", one.send_overhead_us),
                ("o_r, to receive", one.receive_overhead_us),
                ("g, between messages", one.message_gap_us),
                ("L, on the wire", one.wire_latency_us),
            )
        )
    ]
    columns = (Column("size"), Column("", is_number=False), Column("µs"), Column("95 %"))
    return Grid(columns, tuple(rows))


def _estimate(found: EstimateOut | None) -> tuple[str, str]:
    """A value and its interval; nothing where the measurements do not give it."""
    if found is None:
        return "not measured", ""
    low, high = found.interval
    return f"{found.value:.4g}", f"{low:.4g} to {high:.4g}"


def _fitted_stages(fit: FitOut) -> list[StageFitOut]:
    aggregate = fit.aggregate
    outside = [aggregate.total, aggregate.bottleneck] if aggregate else []
    return [*fit.pipeline.stages, *outside]


def fit_table(stages: Sequence[StageFitOut], *, width: int) -> Grid:
    """Return estimates ± standard errors, a row for each range; 95 % intervals where they fit."""
    is_wide = width >= _INTERVALS_FROM_WIDTH
    has_ranges = any(len(stage.ranges) > 1 for stage in stages)
    columns = [Column("stage", is_number=False)] + [Column("up to")] * has_ranges
    columns += [Column("overhead µs ± s.e.")] + [Column("95 %")] * is_wide
    columns += [Column("ns per byte ± s.e.")] + [Column("95 %")] * is_wide
    columns += [Column("spread"), Column("misfit")]
    rows = [
        _fit_row(stage, place, is_wide=is_wide, has_ranges=has_ranges)
        for stage in stages
        for place in range(len(stage.ranges))
    ]
    return Grid(tuple(columns), tuple(rows))


def _fit_row(stage: StageFitOut, place: int, *, is_wide: bool, has_ranges: bool) -> tuple[str, ...]:
    line, row = stage.ranges[place], [printable(stage.name) if place == 0 else ""]
    if has_ranges:
        end = line.up_to_bytes
        row.append(format_bytes(end) if end else "larger" if place else "any")
    for value, error, (low, high), digits in (
        (line.overhead_us, line.overhead_std_error_us, line.overhead_us_interval, 3),
        (line.ns_per_byte, line.ns_per_byte_std_error, line.ns_per_byte_interval, 4),
    ):
        row.append(f"{value:.{digits}f} ± {error:.{digits}f}")
        if is_wide:
            row.append(f"{low:.{digits - 1}f} … {high:.{digits - 1}f}")
    shares = (stage.relative_residual_std, stage.misfit)
    known = [share if place == 0 else None for share in shares]
    return (*row, *("" if share is None else format_percent(share) for share in known))


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


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        return printable(", ".join(map(str, value)))
    return printable(str(value))
