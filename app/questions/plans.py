"""Which messages to measure next, by the measurements so far."""

from __future__ import annotations

from dataclasses import dataclass

from app.questions.fits import loaded_measurements, read_traces
from app.questions.traces import Measurement
from domain.errors import UnreadableTrace
from domain.measurement import MessageTrace
from domain.plan import MeasurementPlan, PlanLimits


@dataclass(frozen=True, slots=True)
class PlanWork:
    """Measurements so far, and within which limits more may be made."""

    measurements: tuple[Measurement, ...]
    limits: PlanLimits

    def read(self) -> MeasurementPlan:
        """Plan. Raises as `plan`."""
        return plan(self.measurements, self.limits)


def plan(measurements: tuple[Measurement, ...], limits: PlanLimits) -> MeasurementPlan:
    """Return the next sizes, or that enough is known. Raises UnreadableTrace."""
    import fitting
    import measuring

    if not measurements:
        return measuring.plan(None, limits)
    traces, kinds = loaded_measurements(measurements)
    trace = fitting.join(read_traces(traces, kinds))
    if not isinstance(trace, MessageTrace):
        raise UnreadableTrace(
            f"plans are made for messages seen from outside; this trace is {trace.kind}, which "
            "tells the stages already",
            field="measurements",
        )
    return measuring.plan(trace, limits)
