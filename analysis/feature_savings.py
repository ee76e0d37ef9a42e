"""What a network's features save of a messaging layer once the cut is tuned again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import solvers
from analysis.comparison import Cell, Solve, each_cell
from analysis.layer_cost import FeatureSet, feature_sets
from analysis.layer_stages import LayerStages, StageQuestion, layer_stages
from domain.instruction_counts import CycleModel
from domain.messaging_layer import MessagingLayer, NetworkFeature
from domain.nested import NestedSchedule, nested_latency_us
from domain.pipeline import Pipeline
from domain.problem import DEFAULT_FRAGMENT_CAP, Problem
from domain.solution import Solution, Strategy


@dataclass(frozen=True, slots=True)
class FeatureStages:
    """A set of features, the layer on a network that has them, and its stages."""

    features: FeatureSet
    layer: MessagingLayer
    stages: LayerStages


def stages_with_features(
    layer: MessagingLayer,
    costs: CycleModel,
    asked: StageQuestion,
    features: Sequence[NetworkFeature],
) -> tuple[FeatureStages, ...]:
    """Return the layer's stages as it is, then with each feature, then with all of them.

    Empty where the layer as it is makes no pipeline. Raises InvalidInput.
    """
    found = []
    for one in ((), *feature_sets(features)):
        changed = layer.with_features(one)
        stages = layer_stages(changed, costs, asked)
        if stages is None:
            if not one:
                return ()
            continue
        found.append(FeatureStages(one, changed, stages))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class TunedMessage:
    """One message: the best cut through each pipeline of `stages_with_features`, in their order.

    `cells` are None while they are not solved yet. `at_old_cut_us` is the latency in µs, through
    each pipeline, of the cut that is best for the first, None before there is one.
    """

    message_bytes: int
    cells: tuple[Cell | None, ...]
    at_old_cut_us: tuple[float | None, ...]

    @property
    def before(self) -> Solution | None:
        """The best cut with the layer as it is, where there is one."""
        return self.cells[0].solution if self.cells and self.cells[0] else None


def _latencies_us(cut: Solution, pipelines: Sequence[Pipeline]) -> tuple[float, ...]:
    """Return the latency in µs of one cut through each pipeline."""
    levels = cut.levels or (cut.schedule.fragment_bytes,)
    if len(levels) == 1:
        return tuple(pipeline.latency_us(levels[0]) for pipeline in pipelines)
    return tuple(nested_latency_us(one, NestedSchedule(levels)) for one in pipelines)


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningQuestion:
    """Which messages to cut anew with which features; `time_limit_s` is for all solves together."""

    pipelines: tuple[FeatureStages, ...]
    message_bytes: tuple[int, ...]
    relative_gap: float = solvers.DEFAULT_RELATIVE_GAP
    time_limit_s: float = solvers.DEFAULT_TIME_LIMIT_S
    fragment_cap: int = field(default=DEFAULT_FRAGMENT_CAP)

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems by message, then by pipeline. Raises InvalidInput."""
        return tuple(
            Problem(one.stages.pipeline, size, one.stages.limits, self.fragment_cap)
            for size in self.message_bytes
            for one in self.pipelines
        )


def tuned(
    question: TuningQuestion,
    solve: Solve = solvers.solve,
    on_cell: Callable[[int, tuple[TunedMessage, ...]], None] | None = None,
) -> tuple[TunedMessage, ...]:
    """Return the best cut of each message through each pipeline, each latency with its bound.

    `on_cell` is called after each solve with how many are done and the messages so far. A solve
    that has no answer, or no time left, is a cell that says why; none begins after the limit.
    """
    problems, sets = question.problems(), len(question.pipelines)
    pipelines = [one.stages.pipeline for one in question.pipelines]
    known: list[Cell | None] = [None] * len(problems)
    old_us: list[tuple[float | None, ...]] = [(None,) * sets] * len(question.message_bytes)

    def messages() -> tuple[TunedMessage, ...]:
        return tuple(
            TunedMessage(size, tuple(known[place * sets : (place + 1) * sets]), old_us[place])
            for place, size in enumerate(question.message_bytes)
        )

    cells = each_cell(
        problems,
        (Strategy.AUTO,),
        solve,
        relative_gap=question.relative_gap,
        time_limit_s=question.time_limit_s,
        grace_s=0.0,
    )
    for done, (place, cell) in enumerate(cells, start=1):
        known[place] = cell
        if place % sets == 0 and cell.solution is not None:
            old_us[place // sets] = _latencies_us(cell.solution, pipelines)
        if on_cell is not None:
            on_cell(done, messages())
    return messages()
