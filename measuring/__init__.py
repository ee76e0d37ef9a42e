"""Measurements: which to make, the probe that makes them, and counts of instructions.

from measuring import plan
from measuring.count import CountPlan, count
"""

from __future__ import annotations

from domain.measurement import MessageTrace
from domain.plan import MeasurementPlan, PlanLimits

__all__ = ["plan"]


def plan(trace: MessageTrace | None, limits: PlanLimits) -> MeasurementPlan:
    """Return the sizes to measure next for the bottleneck's transitions, or that all are known.

    `trace` None is nothing measured so far.
    """
    from measuring.planning import plan_measurements

    return plan_measurements(trace, limits)
