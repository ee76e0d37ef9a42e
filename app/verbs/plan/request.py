"""What contract/plan.py declares, as the domain has it: measurements, and the sizes of interest."""

from __future__ import annotations

from app.questions.traces import Measurement
from contract.measurements import listed
from contract.plan import MeasurementPlanIn
from domain.errors import InconsistentInput, InvalidInput
from domain.plan import PlanLimits


def planned_measurements(asked: MeasurementPlanIn) -> tuple[Measurement, ...]:
    """Return the texts that were measured."""
    return tuple(Measurement(file.content, file.kind) for file in listed(asked.measurements))


def plan_limits(asked: MeasurementPlanIn) -> PlanLimits:
    """Return the sizes of interest. Raises InconsistentInput where they are too close."""
    try:
        return PlanLimits(asked.min_message_bytes, asked.max_message_bytes, asked.tolerance)
    except InvalidInput as refusal:
        raise InconsistentInput(refusal.detail, field=refusal.field) from None
