"""What contract/plan.py declares: the sizes of interest, and a plan as it is sent."""

from __future__ import annotations

from app.questions.question import Measurement
from app.schemas.base import same_named
from contract.measurements import listed
from contract.plan import (
    KnownBottleneckOut,
    MeasurementPlanIn,
    MeasurementPlanOut,
    NextMeasurementOut,
    TransitionOut,
)
from domain.errors import InconsistentInput, InvalidInput
from domain.plan import MeasurementPlan, PlanLimits


def planned_measurements(asked: MeasurementPlanIn) -> tuple[Measurement, ...]:
    """Return the texts that were measured."""
    return tuple(Measurement(file.content, file.kind) for file in listed(asked.measurements))


def plan_limits(asked: MeasurementPlanIn) -> PlanLimits:
    """Return the sizes of interest. Raises InconsistentInput where they are too close."""
    try:
        return PlanLimits(asked.min_message_bytes, asked.max_message_bytes, asked.tolerance)
    except InvalidInput as refusal:
        raise InconsistentInput(refusal.detail, field=refusal.field) from None


def plan_out(plan: MeasurementPlan) -> MeasurementPlanOut:
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
