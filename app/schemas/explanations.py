"""GET /optimizations/{id}/explanation: where the latency is spent, what less cost would buy."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.explain import Explained
from analysis.explanation import Cost, Explanation
from app.schemas.base import Output, same_named
from app.schemas.optimize import OptimizeOut
from domain.errors import StrategyDeclined


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class ExplanationOut(Output):
    """Why an answer takes as long as it does, and what would make it faster."""

    id: str
    latency_us: float
    delay_us: float
    path: tuple[PathShareOut, ...]
    cheaper_by: float
    savings: tuple[SavingOut, ...]

    @classmethod
    def of(cls, explanation: Explanation, *, answer_id: str) -> ExplanationOut:
        """Return the explanation of a stored answer as it is sent."""
        return cls(
            id=answer_id,
            latency_us=explanation.latency_us,
            delay_us=explanation.delay_us,
            path=tuple(same_named(PathShareOut, one) for one in explanation.shares),
            cheaper_by=explanation.cheaper_by,
            savings=tuple(same_named(SavingOut, one) for one in explanation.savings),
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
        answer.pipeline.to_domain(),
        answer.levels or (answer.fragment_bytes,),
        answer.constraints.to_domain(),
        fragment_cap,
        cheaper_by,
    )
