"""What the service sends, as a person reads it; each function gives parts to print in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from app.text.notices import notice_lines
from app.text.numbers import (
    format_cost,
    format_count,
    format_counted,
    format_excess,
    format_gap,
    format_percent,
    format_sizes,
)
from app.text.units import (
    NOT_OF_MACHINE,
    OF_MODEL,
    format_proven,
    format_repeated,
    format_setting_name,
    format_time,
    printable,
)
from app.ui.gantt import MAX_BLOCKS, Ink, chart_of, draw
from app.ui.notices import failures, noted, others
from app.ui.parts import Column, Facts, Grid, Part
from domain.fit import MAY_BE_PIPELINED
from domain.units import format_bytes

if TYPE_CHECKING:
    from contract.fit import EstimateOut, FitOut, LogGPFitOut, StageFitOut
    from contract.optimize import BaselineOut, OptimizeOut
    from contract.pipeline import AggregateOut, PipelineOut, StageOut
    from contract.profile import ProfileRevisionOut
    from contract.uncertainty import UncertaintyOut

Parts = Iterator[Part]

STATUS_SAYS = {
    "optimal": f"proven optimum {OF_MODEL}, in whole bytes",
    "optimal_before_rounding": f"proven optimum {OF_MODEL} in real-valued sizes; whole bytes add "
    "the gap",
    "proven_gap": f"no proven optimum {OF_MODEL}; the gap is the most that can be missing",
    "time_limit": "stopped early: the best so far; the gap is the most that can be missing",
}
_INTERVALS_FROM_WIDTH = 110
_AT_MOST = "latency_is_upper_bound"


# --- an answer ------------------------------------------------------------------------------------


def answer_parts(
    answer: OptimizeOut, *, width: int, ink: Ink, with_sensitivities: bool = False
) -> Parts:
    """Yield an answer: what to send, how good it is, the Gantt, and the cost of simpler cuts.

    That its model failed on the machine comes before all of it.
    """
    from app.schemas.stages import sensitivity_facts

    yield from failures(answer.warnings)
    if answer.uncertainty:
        yield from uncertainty_parts(answer.uncertainty)
        yield ""
    elif answer.set_this:
        yield from (answer.set_this.sentence, "")
    if answer.set_this and answer.set_this.over:
        yield from (answer.set_this.over.sentence, "")
    yield from schedule_parts(answer, width=width, ink=ink)
    yield ""
    if with_sensitivities and answer.sensitivities:
        yield Facts(tuple(sensitivity_facts(answer.sensitivities)))
        yield ""
    yield instead_table(answer)
    if any(one.source for one in answer.baselines):
        yield "What sets the defaults of systems, and where they are written: --json."
    yield ""
    # Those of its fit are counted above it, and listed by the fit.
    of_fit = answer.fit.warnings if answer.fit else ()
    shown = [
        warning
        for warning in others(answer.warnings)
        if warning not in of_fit or warning.code == MAY_BE_PIPELINED
    ]
    yield from noted(shown)


def uncertainty_parts(known: UncertaintyOut) -> Parts:
    """Yield what to do, and how sure that is."""
    yield printable(known.sentence)
    yield ""
    from app.schemas.uncertainty import uncertainty_facts

    yield Facts(tuple(uncertainty_facts(known)))


def schedule_parts(answer: OptimizeOut, *, width: int, ink: Ink) -> Parts:
    """Yield what to send, how good it is, and the Gantt."""
    size = format_bytes(answer.message_bytes)
    yield f"{size} through {_crossed(answer)}{_source(answer.profile)}"
    yield ""
    yield Facts(tuple(_answer_facts(answer)))
    yield ""
    yield from gantt_parts(answer, width=width, ink=ink)


def _answer_facts(answer: OptimizeOut) -> Iterator[tuple[str, str]]:
    from app.schemas.optimize import delivery_facts

    yield "strategy", answer.strategy
    yield (
        "fragments",
        f"{format_count(answer.fragments)}: {format_sizes(answer.fragment_bytes)} bytes",
    )
    is_max = any(found.code == _AT_MOST for found in answer.warnings)
    latency, bound = format_proven(answer.latency_us, answer.lower_bound_us)
    yield "latency", ("at most " if is_max else "") + latency
    gap = format_gap(answer.relative_gap)
    yield "bound", f"no schedule of its class is below {bound}; gap {gap}"
    yield "status", f"{answer.status}: {STATUS_SAYS.get(answer.status, '')}"
    if answer.is_fitted:
        yield "proof", NOT_OF_MACHINE
    yield "bottleneck", _bottleneck(answer)
    yield from delivery_facts(answer)
    if answer.levels:
        yield "levels", "stages cut differently; the coarsest cut is shown above"
    if answer.limited_by:
        yield "limited by", answer.limited_by


def _bottleneck(answer: OptimizeOut) -> str:
    if answer.pipeline is None or answer.bottleneck_stage is None:
        return "known by its time, not by its place"
    return printable(answer.pipeline.stages[answer.bottleneck_stage].name)


def _crossed(answer: OptimizeOut) -> str:
    """Return in a few words what the message crosses."""
    if answer.pipeline is None:
        return "a pipeline seen from outside"
    return format_counted(len(answer.pipeline.stages), "stage")


def _source(profile: ProfileRevisionOut | None) -> str:
    return f", profile {profile.reference}" if profile else ""


def gantt_parts(answer: OptimizeOut, *, width: int, ink: Ink) -> Parts:
    """Yield the Gantt of an answer; a sentence instead where it cannot be drawn."""
    from app.schemas.stages import stored_pipeline

    if answer.pipeline is None:
        yield "(no Gantt: outside measurements do not tell when a fragment is in which stage)"
        return
    if answer.cells > MAX_BLOCKS:
        yield f"(no Gantt: {answer.cells} blocks are more than can be distinguished)"
        return
    chart = chart_of(
        stored_pipeline(answer.pipeline),
        answer.fragment_bytes,
        bottleneck=answer.bottleneck_stage or 0,
        levels=answer.levels,
    )
    yield "\n".join(draw(chart, width=width, ink=ink))


def instead_table(answer: OptimizeOut) -> Grid:
    """Return what other settings cost: the one in use, one piece, and the systems' defaults."""
    latency_us = answer.latency_us
    rows = []
    best = answer.best_fixed
    if best:
        how = _repeated(best.size_bytes, best.fragments)
        rows.append(_instead_row("best fixed size", how, best.latency_us, latency_us))
    for baseline in answer.baselines:
        how, name = _how(baseline), format_setting_name(baseline.name or baseline.strategy)
        rows.append(_instead_row(name, how, baseline.latency_us, latency_us))
    columns = (Column("instead", is_number=False), Column("how", is_number=False))
    return Grid((*columns, Column("latency"), Column("more by")), tuple(rows))


def _how(baseline: BaselineOut) -> str:
    if baseline.latency_us is None:
        return f"not possible: {printable(baseline.declined or '')}"
    if baseline.static_bytes:
        return _repeated(baseline.static_bytes, baseline.fragments or 0, baseline.default_bytes)
    if baseline.fragments == 1:
        return "not cut" if baseline.measured_us is None else "not cut, at most as measured"
    return format_counted(baseline.fragments or 0, "fragment")


def _repeated(size: int, fragments: int, default_bytes: int | None = None) -> str:
    return f"{format_repeated(size, default_bytes)}: {format_counted(fragments, 'fragment')}"


def _instead_row(name: str, how: str, other_us: float | None, latency_us: float) -> tuple[str, ...]:
    if other_us is None:
        return (name, how, "", "")
    return (name, how, format_time(other_us), format_excess(other_us, latency_us))


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


# --- small things ---------------------------------------------------------------------------------


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        return printable(", ".join(map(str, value)))
    return printable(str(value))
