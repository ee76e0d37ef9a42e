"""Why a stored answer takes as long as it does, and what cheaper stages would buy."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import solvers
from analysis.explanation import (
    DEFAULT_SHARE,
    Explanation,
    Saving,
    cheaper_pipelines,
    path_shares,
)
from domain.errors import InvalidInput
from domain.nested import NestedSchedule, nested_latency_us
from domain.pipeline import Pipeline
from domain.problem import FragmentLimits, Problem
from domain.solution import Strategy
from domain.timeline import Timeline, nested_timeline_of, timeline_of

SOLVES_LIMIT_S = 0.5  # for all the cheaper pipelines of one answer
ONE_SOLVE_LIMIT_S = 0.04
MAX_CELLS = 2_000_000  # fragments times stages of an answer that is explained
EXPLAINED_AT_ONCE = 200_000  # of them; beyond, it takes some 100 ms
_FEW_FRAGMENTS = 8  # take less time than handing a pipeline to a kernel
_MANY_FRAGMENTS = 5_000
_NOISE = 1e-11  # relative: what a kernel may differ from the evaluator, and no saving


@dataclass(frozen=True, slots=True)
class Explained:
    """An answer as far as it has to be known: its pipeline, its cuts, and what was admitted.

    `stage_bytes` has one cut that all stages share, or one for each stage.
    """

    pipeline: Pipeline
    stage_bytes: tuple[tuple[int, ...], ...]
    limits: FragmentLimits
    fragment_cap: int
    cheaper_by: float = DEFAULT_SHARE

    @property
    def is_nested(self) -> bool:
        """Whether the stages' cuts may differ."""
        return len(self.stage_bytes) > 1

    @property
    def cells(self) -> int:
        """Fragments times stages."""
        stages = 1 if self.is_nested else len(self.pipeline)
        return stages * sum(map(len, self.stage_bytes))

    def timeline(self, pipeline: Pipeline) -> Timeline:
        """Return the timeline of the same cuts through this pipeline."""
        if self.is_nested:
            return nested_timeline_of(pipeline, NestedSchedule(self.stage_bytes))
        return timeline_of(pipeline, self.stage_bytes[0])

    def latencies_us(self, pipelines: Iterable[Pipeline]) -> Iterator[float]:
        """Return how long the same cuts take through each of these, by the evaluator.

        Many fragments by the kernel, which is within `_NOISE` of it and lets other threads run.
        """
        if self.is_nested:
            schedule = NestedSchedule(self.stage_bytes)
            return (nested_latency_us(one, schedule) for one in pipelines)
        (cut,) = self.stage_bytes
        if len(cut) <= _FEW_FRAGMENTS:
            return (one.latency_us(cut) for one in pipelines)
        if len(cut) <= _MANY_FRAGMENTS:
            return (solvers.evaluator_of(one)(cut) for one in pipelines)
        return _by_kernel(cut, pipelines)


def explain(asked: Explained) -> Explanation:
    """Return shares of the critical path, and what each cost, made cheaper, would take off the
    latency.

    The best cut of each cheaper pipeline is solved anew where that is quick and all stages share
    one cut. Raises InvalidInput for an answer with too many fragments times stages.
    """
    if asked.cells > MAX_CELLS:
        raise InvalidInput(
            f"expected fragments x stages <= {MAX_CELLS} to explain an answer, got {asked.cells}",
            field="id",
        )
    timeline = asked.timeline(asked.pipeline)
    return Explanation(
        timeline.latency_us,
        timeline.delay_us,
        path_shares(timeline),
        asked.cheaper_by,
        tuple(_savings(asked, timeline.latency_us)),
    )


def _savings(asked: Explained, latency_us: float) -> Iterator[Saving]:
    ends_s = time.monotonic() + SOLVES_LIMIT_S
    variants = list(cheaper_pipelines(asked.pipeline, by=asked.cheaper_by))
    latencies = asked.latencies_us(variant for _, _, variant in variants)
    for (stage, cost, variant), cheaper_us in zip(variants, latencies, strict=True):
        same_us = latency_us - cheaper_us if cheaper_us < latency_us * (1.0 - _NOISE) else 0.0
        best_us = None
        if time.monotonic() < ends_s:
            best_us = _best_us(asked, variant)
        saved_us = None if best_us is None else max(same_us, latency_us - best_us)
        yield Saving(stage, asked.pipeline.stages[stage].name, cost, same_us, saved_us)


def _by_kernel(cut: tuple[int, ...], pipelines: Iterable[Pipeline]) -> Iterator[float]:
    import numpy as np

    from solvers.kernels.recurrence import latencies_us

    sizes = np.array([cut], dtype=np.float64)
    return (float(latencies_us(one, sizes)[0]) for one in pipelines)


def _best_us(asked: Explained, variant: Pipeline) -> float | None:
    """The best latency of a cheaper pipeline; None where it cannot be had quickly."""
    message = sum(asked.stage_bytes[0])
    problem = Problem(variant, message, asked.limits, fragment_cap=asked.fragment_cap)
    if asked.is_nested or not solvers.is_quick(problem, Strategy.AUTO):
        return None
    solution = solvers.solve(problem, time_limit_s=ONE_SOLVE_LIMIT_S)
    return None if solution.cut_off else solution.latency_us
