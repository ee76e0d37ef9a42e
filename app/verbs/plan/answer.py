"""What was planned, as contract/plan.py sends it."""

from __future__ import annotations

from app.schemas.base import same_named
from contract.plan import (
    KnownBottleneckOut,
    MeasurementPlanOut,
    NextMeasurementOut,
    TransitionOut,
)
from domain.plan import MeasurementPlan


def planned(plan: MeasurementPlan) -> MeasurementPlanOut:
    """Return a plan as it is sent."""
    return MeasurementPlanOut(
        decided=plan.decided,
        reason=plan.reason,
        measure=tuple(
            NextMeasurementOut(step.message_bytes, step.quantity.value, step.repetitions, step.why)
            for step in plan.measure
        ),
        transitions=tuple(same_named(TransitionOut, change) for change in plan.transitions),
        bottlenecks=tuple(
            KnownBottleneckOut(
                known.from_bytes, known.to_bytes, known.line.overhead_us, known.line.ns_per_byte
            )
            for known in plan.bottlenecks
        ),
    )
