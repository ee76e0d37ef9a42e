"""What a stored answer is explained by, and the explanation as it is sent."""

from __future__ import annotations

from analysis.explain import Explained
from analysis.explanation import Explanation
from app.schemas.base import same_named
from app.schemas.stages import limits_of, stored_pipeline
from contract.answers import ExplanationOut, PathShareOut, SavingOut
from contract.optimize import OptimizeOut
from domain.errors import StrategyDeclined


def explanation_out(explanation: Explanation, *, answer_id: str) -> ExplanationOut:
    """Return the explanation of a stored answer as it is sent."""
    return ExplanationOut(
        id=answer_id,
        latency_us=explanation.latency_us,
        delay_us=explanation.delay_us,
        path=tuple(same_named(PathShareOut, share) for share in explanation.shares),
        cheaper_by=explanation.cheaper_by,
        savings=tuple(same_named(SavingOut, saving) for saving in explanation.savings),
    )


def explained_of(answer: OptimizeOut, *, cheaper_by: float, fragment_cap: int) -> Explained:
    """Return what a stored answer is explained by.

    Raises StrategyDeclined for one about an aggregate.
    """
    if answer.pipeline is None:
        raise StrategyDeclined(
            "only an answer about the stages of a pipeline is explained; of this one the total and "
            "the bottleneck alone are known",
            field="id",
        )
    return Explained(
        stored_pipeline(answer.pipeline),
        answer.levels or (answer.fragment_bytes,),
        limits_of(answer.constraints),
        fragment_cap,
        cheaper_by,
    )
