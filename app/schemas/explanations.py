"""GET /optimizations/{id}/explanation: where the latency is spent, what less cost would buy."""

from __future__ import annotations

import json
from typing import Any

from analysis.explain import Explained
from analysis.explanation import Cost, Explanation
from app.schemas.base import Output
from app.schemas.stages import ConstraintsIn, PipelineIn
from domain.errors import StrategyDeclined


class PathShareOut(Output):
    """What one stage contributes to the critical path; µs. `share` is of the time in stages.

    `is_binding`: more than one of its fragments is on the path, so that it holds the message up.
    """

    stage: int
    name: str
    fragments: int
    overhead_us: float
    bytes_us: float
    share: float
    is_binding: bool


class SavingOut(Output):
    """What one cost of one stage, made cheaper, would take off the latency; µs.

    `same_cut_us`: with the schedule as it is. `best_cut_us`: with the best schedule of the cheaper
    pipeline, null where it was not solved.
    """

    stage: int
    name: str
    cost: Cost
    same_cut_us: float
    best_cut_us: float | None


class ExplanationOut(Output):
    """Why an answer takes as long as it does, and what would make it faster."""

    id: str
    latency_us: float
    delay_us: float
    path: list[PathShareOut]
    cheaper_by: float
    savings: list[SavingOut]


def explained_of(body: bytes, *, cheaper_by: float, fragment_cap: int) -> Explained:
    """What a stored answer is explained by. Raises StrategyDeclined for one about an aggregate."""
    answer = json.loads(body)
    if answer["pipeline"] is None:
        raise StrategyDeclined(
            "only an answer about the stages of a pipeline is explained; of this one the total and "
            "the bottleneck alone are known",
            field="id",
        )
    levels = answer["levels"] or [answer["fragment_bytes"]]
    return Explained(
        PipelineIn.model_validate(answer["pipeline"]).to_domain(),
        tuple(tuple(cut) for cut in levels),
        ConstraintsIn.model_validate(answer["constraints"]).to_domain(),
        fragment_cap,
        cheaper_by,
    )


def explanation_document(explanation: Explanation, *, answer_id: str) -> dict[str, Any]:
    """ExplanationOut."""
    return {
        "id": answer_id,
        "latency_us": explanation.latency_us,
        "delay_us": explanation.delay_us,
        "path": [
            {
                "stage": one.stage,
                "name": one.name,
                "fragments": one.fragments,
                "overhead_us": one.overhead_us,
                "bytes_us": one.bytes_us,
                "share": one.share,
                "is_binding": one.is_binding,
            }
            for one in explanation.shares
        ],
        "cheaper_by": explanation.cheaper_by,
        "savings": [
            {
                "stage": one.stage,
                "name": one.name,
                "cost": one.cost,
                "same_cut_us": one.same_cut_us,
                "best_cut_us": one.best_cut_us,
            }
            for one in explanation.savings
        ],
    }
