"""An answer as parts: what to send, how good it is, the Gantt, and the cost of simpler cuts."""

from __future__ import annotations

from collections.abc import Iterator

from app.schemas.stages import sensitivity_facts, stored_pipeline
from app.schemas.uncertainty import uncertainty_facts
from app.text.numbers import (
    format_count,
    format_counted,
    format_excess,
    format_figure,
    format_gap,
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
from contract.optimize import BaselineOut, DeliveredOptimizeOut, OptimizeOut
from contract.profile import ProfileRevisionOut
from contract.uncertainty import UncertaintyOut
from domain.fit import MAY_BE_PIPELINED
from domain.units import format_bytes

STATUS_SAYS = {
    "optimal": f"proven optimum {OF_MODEL}, in whole bytes",
    "optimal_before_rounding": f"proven optimum {OF_MODEL} in real-valued sizes; whole bytes add "
    "the gap",
    "proven_gap": f"no proven optimum {OF_MODEL}; the gap is the most that can be missing",
    "time_limit": "stopped early: the best so far; the gap is the most that can be missing",
}
_AT_MOST = "latency_is_upper_bound"


def parts(
    answer: OptimizeOut, *, width: int, ink: Ink, with_sensitivities: bool = False
) -> Iterator[Part]:
    """Yield an answer: what to send, how good it is, the Gantt, and the cost of simpler cuts.

    That its model failed on the machine comes before all of it.
    """
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


def uncertainty_parts(known: UncertaintyOut) -> Iterator[Part]:
    """Yield what to do, and how sure that is."""
    yield printable(known.sentence)
    yield ""
    yield Facts(tuple(uncertainty_facts(known)))


def schedule_parts(answer: OptimizeOut, *, width: int, ink: Ink) -> Iterator[Part]:
    """Yield what to send, how good it is, and the Gantt."""
    size = format_bytes(answer.message_bytes)
    yield f"{size} through {_crossed(answer)}{_source(answer.profile)}"
    yield ""
    yield Facts(tuple(_answer_facts(answer)))
    yield ""
    yield from gantt_parts(answer, width=width, ink=ink)


def _answer_facts(answer: OptimizeOut) -> Iterator[tuple[str, str]]:
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


def gantt_parts(answer: OptimizeOut, *, width: int, ink: Ink) -> Iterator[Part]:
    """Yield the Gantt of an answer; a sentence instead where it cannot be drawn."""
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


def delivery_facts(answer: OptimizeOut) -> Iterator[tuple[str, str]]:
    """Yield labels and values of what its stages choose, as a person reads it; else nothing."""
    if not isinstance(answer, DeliveredOptimizeOut):
        return
    for stage in answer.delivery:
        eager = f"eager from {format_count(stage.threshold_bytes or 1)} bytes"
        static = f"{format_count(stage.pulse_bytes or 0)} bytes each"
        what = static if stage.threshold_bytes is None else eager
        noun = "pulse" if stage.pulses == 1 else "pulses"
        yield f"stage {stage.stage}", f"{format_count(stage.pulses)} {noun}, {what}"
    yield "cut-through", f"{format_time(answer.ideal_us)} at best"
    yield "whole", f"{format_time(answer.store_and_forward_us)}, store and forward"
    if answer.sustained_mb_per_s is not None:
        yield "back to back", f"{format_figure(answer.sustained_mb_per_s)} MB/s at most"
