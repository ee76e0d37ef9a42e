"""Which messages to measure next: stateless, from what was measured so far."""

from __future__ import annotations

from app.flows.fit_trace import held_measurements, read_traces
from app.flows.questions import Measurement
from domain.errors import UnreadableTrace
from domain.measurement import MessageTrace
from domain.plan import MeasurementPlan, PlanLimits


def plan(measurements: tuple[Measurement, ...], limits: PlanLimits) -> MeasurementPlan:
    """The next sizes, or that enough is known. Raises UnreadableTrace, naming the measurement."""
    import fitting
    import measuring

    if not measurements:
        return measuring.plan(None, limits)
    traces, kinds = held_measurements(measurements)
    trace = fitting.join(read_traces(traces, kinds))
    if not isinstance(trace, MessageTrace):
        raise UnreadableTrace(
            f"plans are made for messages seen from outside; this trace is {trace.kind}, which "
            "tells the stages already",
            field="measurements",
        )
    return measuring.plan(trace, limits)
