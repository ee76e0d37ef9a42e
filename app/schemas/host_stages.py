"""Stages on processors that calculate while a message is under way, as requests name them."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.hiding import HostStages
from contract.hide import HostStagesIn
from domain.errors import InconsistentInput, StrategyDeclined
from domain.problem import AnyProblem, Problem


def of_stages(problem: AnyProblem, *, field: str) -> Problem:
    """Return a problem whose stages are known. Raises StrategyDeclined."""
    if isinstance(problem, Problem):
        return problem
    raise StrategyDeclined(
        "hiding needs the stages of a pipeline; of this one the total and the bottleneck "
        "alone are known",
        field=field,
    )


def host_stages(asked: HostStagesIn, problem: Problem) -> HostStages:
    """Return the places of these stages. Raises InconsistentInput for what is unknown, ambiguous,
    or named twice.
    """
    names = [stage.name for stage in problem.pipeline.stages]
    sender = _indices(asked.sender, names, field="host_stages.sender")
    receiver = _indices(asked.receiver, names, field="host_stages.receiver")
    if set(sender) & set(receiver):
        raise InconsistentInput("expected each stage at most once", field="host_stages")
    return HostStages(sender, receiver)


def _indices(given: Sequence[int | str], names: Sequence[str], *, field: str) -> tuple[int, ...]:
    """Return the places of these stages. Raises InvalidInput for what is unknown or ambiguous."""
    found = []
    for place, stage in enumerate(given):
        at = f"{field}.{place}"
        if isinstance(stage, int):
            if stage >= len(names):
                raise InconsistentInput(f"expected a stage from 0 to {len(names) - 1}", field=at)
            found.append(stage)
        elif names.count(stage) != 1:
            raise InconsistentInput("expected the name of one stage of the pipeline", field=at)
        else:
            found.append(names.index(stage))
    if len(set(found)) < len(found):
        raise InconsistentInput("expected each stage at most once", field=field)
    return tuple(found)
