"""What a cut takes, as contract/simulate.py sends it."""

from __future__ import annotations

from analysis.items import critical_steps, item_path, window_slots
from app.questions.items import ItemsRun
from app.questions.simulate import PricedCut, Simulation
from app.schemas.base import notices_out, revision_out
from app.schemas.items import crossed_by, items_out, limit_out, slots_out
from app.schemas.stages import aggregate_out, pipeline_out
from contract.simulate import (
    DeliveredOut,
    Interval,
    ItemsRunOut,
    LagOut,
    MachineRunOut,
    PathStepOut,
    PricedCutOut,
    SimulateOut,
)


def sent(found: Simulation | PricedCut) -> SimulateOut | PricedCutOut:
    """Return what a cut takes as it is sent."""
    return _priced(found) if isinstance(found, PricedCut) else _run(found)


def _run(simulation: Simulation) -> SimulateOut:
    path = simulation.critical_path
    common = SimulateOut(
        message_bytes=simulation.message_bytes,
        latency_us=simulation.latency_us,
        intervals=simulation.intervals,
        critical_path=None if path is None else tuple(PathStepOut(*step) for step in path),
        bottleneck_stage=simulation.bottleneck_stage,
        busy_us=simulation.busy_us,
        pipeline=pipeline_out(simulation.pipeline),
        profile=revision_out(simulation.profile),
        warnings=notices_out(simulation.notices),
    )
    if simulation.machine is not None:
        lags = tuple(LagOut(*found) for found in simulation.lags.items())
        return MachineRunOut(**vars(common), lags=lags)
    delivered = simulation.delivered
    if delivered is None:
        return common
    return DeliveredOut(
        **vars(common),
        levels=delivered.levels,
        store_and_forward_us=delivered.store_and_forward_us,
        lower_bound_us=delivered.lower_bound_us,
    )


def sent_items(found: ItemsRun) -> ItemsRunOut:
    """Return what a cut between items takes as it is sent."""
    problem, times = found.problem, found.times
    spans, sizes = times.in_stages, problem.sequence.fragment_bytes(times.cut)
    intervals = tuple(
        Interval(place, stage, size, *span)
        for place, size in enumerate(sizes)
        for stage, span in enumerate(zip(spans.start_us[place], spans.exit_us[place], strict=True))
    )
    steps, _, _ = critical_steps(problem, times)
    busy = spans.busy_us()
    return ItemsRunOut(
        message_bytes=problem.sequence.total_bytes,
        latency_us=problem.latency_us(times.cut),
        intervals=intervals,
        critical_path=tuple(PathStepOut(*step) for step in steps),
        bottleneck_stage=busy.index(max(busy)),
        busy_us=busy,
        pipeline=pipeline_out(crossed_by(problem)),
        profile=revision_out(found.profile),
        warnings=notices_out((*found.said, *problem.sequence.notices)),
        items=items_out(problem.sequence),
        cut=times.cut,
        ready_us=times.ready_us,
        limit=limit_out(problem, item_path(problem, times.cut)),
        slots=slots_out(window_slots(problem, times.cut)),
    )


def _priced(priced: PricedCut) -> PricedCutOut:
    return PricedCutOut(
        priced.message_bytes,
        priced.fragment_bytes,
        priced.latency_us,
        priced.aggregate.latency_us((priced.message_bytes,)),
        aggregate_out(priced.aggregate),
        revision_out(priced.profile),
        notices_out(priced.notices),
    )
