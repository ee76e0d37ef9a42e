"""Plan: prepared from a request, made by whoever reads the files, nothing kept."""

from __future__ import annotations

from app.operations.fits import ReadFiles
from app.questions.plans import PlanWork
from app.verbs.plan.request import plan_limits, planned_measurements
from contract.plan import MeasurementPlanIn
from domain.plan import MeasurementPlan


def operation(asked: MeasurementPlanIn) -> ReadFiles[MeasurementPlan]:
    """Return what a worker reads and plans by. Raises InconsistentInput."""
    return ReadFiles(PlanWork(planned_measurements(asked), plan_limits(asked)))
