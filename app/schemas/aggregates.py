"""Aggregates, in and out, and what stands for either model: one of `pipeline` and `aggregate`."""

from __future__ import annotations

from typing import Any

from app.schemas.base import Input, Output
from app.schemas.stages import (
    LineStageOut,
    OverheadUs,
    RangesStageOut,
    StageIn,
    pipeline_document,
    stage_document,
    stage_of,
)
from domain.aggregate import Aggregate
from domain.model import CostModel
from domain.pipeline import Pipeline


class AggregateIn(Input):
    """All stages together, the slowest of them, and a known delay that is not in the total."""

    total: StageIn
    bottleneck: StageIn
    delay_us: OverheadUs = 0.0

    def to_domain(self) -> Aggregate:
        """The domain's aggregate. Raises InvalidStage naming the part at fault."""
        return Aggregate(
            stage_of(self.total, field="aggregate.total", called="the total"),
            stage_of(self.bottleneck, field="aggregate.bottleneck", called="the bottleneck"),
            self.delay_us,
        )


class AggregateOut(Output):
    """An aggregate in the form that requests have; the sums are null where there are ranges."""

    sum_overhead_us: float | None
    sum_ns_per_byte: float | None
    total: LineStageOut | RangesStageOut
    bottleneck: LineStageOut | RangesStageOut
    delay_us: float


def model_document(model: CostModel) -> dict[str, Any]:
    """The two fields `pipeline` and `aggregate`, of which one is null."""
    return {
        "pipeline": pipeline_document(model) if isinstance(model, Pipeline) else None,
        "aggregate": aggregate_document(model) if isinstance(model, Aggregate) else None,
    }


def aggregate_document(aggregate: Aggregate) -> dict[str, Any]:
    """AggregateOut."""
    line = aggregate.total.ranges[0] if aggregate.total.is_line else None
    return {
        "sum_overhead_us": line.overhead_us if line else None,
        "sum_ns_per_byte": line.ns_per_byte if line else None,
        "total": stage_document(aggregate.total),
        "bottleneck": stage_document(aggregate.bottleneck),
        "delay_us": aggregate.delay_us,
    }
