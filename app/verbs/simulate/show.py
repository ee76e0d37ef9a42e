"""A run of a cut as parts: what it takes, what each stage did, when."""

from __future__ import annotations

from collections.abc import Iterator

from app.questions.simulate import Cut
from app.schemas.items import slots_facts
from app.schemas.stages import stored_stages
from app.text.numbers import format_count, format_counted, format_percent, format_sizes
from app.text.units import PROVEN_BOUND, format_proven, format_time, printable
from app.ui.gantt import chart_of, machine_chart_of
from app.ui.parts import Column, Facts, Grid, Part, failures, noted, others
from contract.simulate import DeliveredOut, ItemsRunOut, MachineRunOut, PricedCutOut, SimulateOut
from domain.machine import Machine
from domain.machine_timeline import machine_timeline_of
from domain.units import format_bytes

_SHOWN = 50  # fragments of items as rows


def parts(found: SimulateOut | PricedCutOut, cut: Cut) -> Iterator[Part]:
    """Yield what a cut took, which stage was busy longest, and when each fragment was where."""
    yield from failures(found.warnings)
    if isinstance(found, PricedCutOut):
        yield Facts(tuple(_priced_facts(found)))
        return
    yield from _delivered(found) if isinstance(found, DeliveredOut) else _run(found, cut)
    yield from noted(others(found.warnings))


def items_parts(found: ItemsRunOut) -> Iterator[Part]:
    """Yield what a cut between items took, and when each fragment was ready and done."""
    yield from failures(found.warnings)
    names = [printable(stage.name) for stage in found.pipeline.stages]
    bottleneck = found.bottleneck_stage
    of = f", profile {found.profile.reference}" if found.profile else ""
    yield f"{format_bytes(found.message_bytes)} through {format_counted(len(names), 'stage')}{of}"
    yield ""
    busy = format_time(found.busy_us[bottleneck])
    yield Facts(
        (
            ("items", format_count(len(found.items.bytes))),
            ("latency", format_time(found.latency_us)),
            ("bottleneck", f"{names[bottleneck]}, busy for {busy}"),
            *slots_facts(found.slots, found.pipeline),
            ("what limits", found.limit.sentence),
        )
    )
    yield ""
    last = len(names) - 1
    done = [one for one in found.intervals if one.stage == last]
    columns = ("fragment", "up to item", "bytes", "ready", "done")
    rows = zip(done[:_SHOWN], found.cut, found.ready_us, strict=False)
    yield Grid(
        tuple(map(Column, columns)),
        tuple(
            (
                format_count(one.fragment + 1),
                format_count(end),
                format_count(one.fragment_bytes),
                format_time(ready_us),
                format_time(one.exit_us),
            )
            for one, end, ready_us in rows
        ),
    )
    if len(done) > _SHOWN:
        yield f"… and {format_count(len(done) - _SHOWN)} fragments more: --json has all"
    yield from noted(others(found.warnings))


def _run(found: SimulateOut, cut: Cut) -> Iterator[Part]:
    """Yield a given cut: what it takes, which stage is busy longest, and the Gantt."""
    stages = found.pipeline.stages
    bottleneck = found.bottleneck_stage
    busy = format_time(found.busy_us[bottleneck])
    lanes = min(stages[bottleneck].lanes, len(cut.levels[0]))
    of_lanes = f" on {lanes} lanes together" if lanes > 1 else ""
    of = f", profile {found.profile.reference}" if found.profile else ""
    yield f"{format_bytes(found.message_bytes)} through {len(stages)} stages{of}"
    yield ""
    cuts = [f"{format_count(len(sizes))}: {format_sizes(sizes)} bytes" for sizes in cut.levels]
    names = [printable(stage.name) for stage in stages] if cut.is_nested else ["fragments"]
    yield Facts(
        (
            *zip(names, cuts, strict=True),
            ("latency", format_time(found.latency_us)),
            ("bottleneck", f"{printable(stages[bottleneck].name)}, busy for {busy}{of_lanes}"),
            *_lags(found),
        )
    )
    yield ""
    levels = cut.levels if cut.is_nested else None
    model = stored_stages(found.pipeline)
    if isinstance(model, Machine):
        yield machine_chart_of(machine_timeline_of(model, cut.levels[0]))
    else:
        yield chart_of(model, cut.levels[0], bottleneck=bottleneck, levels=levels)


def _lags(found: SimulateOut) -> Iterator[tuple[str, str]]:
    """Yield in which order each processor handles its fragments."""
    if not isinstance(found, MachineRunOut):
        return
    for one in found.lags:
        ahead = f"{format_count(one.lag)} fragment{'' if one.lag == 1 else 's'} ahead"
        order = f"its earlier stage {ahead}" if one.lag else "fragment by fragment"
        yield printable(one.processor), order


def _delivered(found: DeliveredOut) -> Iterator[Part]:
    took, bound = format_proven(found.latency_us, found.lower_bound_us)
    saved = 1.0 - found.latency_us / found.store_and_forward_us if found.latency_us else 0.0
    versus = f"{format_percent(abs(saved))} {'less' if saved >= 0.0 else 'more'} here"
    yield Facts(
        (
            ("latency", f"{took}, {PROVEN_BOUND} {bound}"),
            ("store and forward", f"{format_time(found.store_and_forward_us)}; {versus}"),
        )
    )
    yield ""
    columns = (Column("stage"), Column("pulses"), Column("sizes", is_list=True), Column("busy"))
    rows = tuple(
        (stage.name, format_count(len(sizes)), format_sizes(sizes), format_time(busy_us))
        for stage, sizes, busy_us in zip(
            found.pipeline.stages, found.levels, found.busy_us, strict=True
        )
    )
    yield Grid(columns, rows)


def _priced_facts(found: PricedCutOut) -> Iterator[tuple[str, str]]:
    """Yield labels and values, as a person reads them."""
    of = f", profile {found.profile.reference}" if found.profile else ""
    sizes = found.fragment_bytes
    most = "at most " if len(set(sizes)) > 1 else ""  # equal fragments take just that
    what = f"{format_bytes(found.message_bytes)} through a pipeline seen from outside"
    yield "message", f"{what}{of}"
    yield "fragments", f"{format_count(len(sizes))}: {format_sizes(sizes)} bytes"
    yield "latency", f"{most}{format_time(found.latency_us)}"
    yield "one piece", format_time(found.one_piece_us)
