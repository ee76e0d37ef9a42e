"""POST /measurement-plans: what was measured so far in, what to measure next out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from app.flows.questions import Measurement
from app.schemas.base import Bytes, Input, Output, same_named
from app.schemas.fit_requests import MeasurementsIn
from domain.errors import InconsistentInput, InvalidInput
from domain.plan import DEFAULT_TOLERANCE, MeasurementPlan, PlanLimits, Quantity


class MeasurementPlanIn(Input):
    """Measurements so far, none at the start, and the message sizes of interest."""

    measurements: MeasurementsIn | None = None
    least_bytes: Bytes
    greatest_bytes: Bytes
    tolerance: Annotated[float, Field(ge=0.001, le=0.5)] = DEFAULT_TOLERANCE

    def given(self) -> tuple[Measurement, ...]:
        """The texts that were measured."""
        if self.measurements is None:
            return ()
        many = self.measurements if isinstance(self.measurements, list) else [self.measurements]
        return tuple(Measurement(one.content, one.kind) for one in many)

    def limits(self) -> PlanLimits:
        """The sizes of interest. Raises InconsistentInput where they are too close."""
        try:
            return PlanLimits(self.least_bytes, self.greatest_bytes, self.tolerance)
        except InvalidInput as refusal:
            raise InconsistentInput(refusal.detail, field=refusal.field) from None


@dataclass(frozen=True)
class NextMeasurementOut(Output):
    """One size to measure, how often, and why."""

    message_bytes: int
    what: Quantity
    repetitions: int
    why: str


@dataclass(frozen=True)
class TransitionOut(Output):
    """Where one bottleneck takes over from another; `at_bytes` is null for a protocol switch."""

    between_bytes: tuple[int, int]
    at_bytes: int | None


@dataclass(frozen=True)
class KnownBottleneckOut(Output):
    """A line that inter-arrival times lie on; its overhead may come out below 0 in a part."""

    from_bytes: int
    to_bytes: int
    overhead_us: float
    ns_per_byte: float


@dataclass(frozen=True)
class MeasurementPlanOut(Output):
    """What to measure next; `decided` where nothing is, with the reason."""

    decided: bool
    reason: str
    measure: tuple[NextMeasurementOut, ...]
    transitions: tuple[TransitionOut, ...]
    bottlenecks: tuple[KnownBottleneckOut, ...]

    @classmethod
    def of(cls, plan: MeasurementPlan) -> MeasurementPlanOut:
        """Return a plan as it is sent."""
        return cls(
            decided=plan.decided,
            reason=plan.reason,
            measure=tuple(
                NextMeasurementOut(one.message_bytes, one.quantity, one.repetitions, one.why)
                for one in plan.measure
            ),
            transitions=tuple(same_named(TransitionOut, one) for one in plan.transitions),
            bottlenecks=tuple(
                KnownBottleneckOut(
                    one.from_bytes, one.to_bytes, one.line.overhead_us, one.line.ns_per_byte
                )
                for one in plan.bottlenecks
            ),
        )
