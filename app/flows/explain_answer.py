"""Why a stored answer takes as long as it does, and what cheaper stages would buy."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import solvers
from analysis.explanation import (
    USUAL_SHARE,
    Explanation,
    Saving,
    cheaper_pipelines,
    path_shares,
)
from domain.course import Course, course_of, nested_course_of
from domain.errors import InvalidInput
from domain.nested import NestedSchedule
from domain.pipeline import Pipeline
from domain.problem import FragmentLimits, Problem
from domain.solution import Strategy

SOLVES_LIMIT_S = 0.5  # for all the cheaper pipelines of one answer
ONE_SOLVE_LIMIT_S = 0.04
MAX_CELLS = 200_000  # fragments times stages of an answer that is explained


@dataclass(frozen=True, slots=True)
class Explained:
    """An answer as far as it has to be known: its pipeline, its cuts, and what was admitted.

    `stage_bytes` has one cut that all stages share, or one for each stage.
    """

    pipeline: Pipeline
    stage_bytes: tuple[tuple[int, ...], ...]
    limits: FragmentLimits
    fragment_cap: int
    cheaper_by: float = USUAL_SHARE

    @property
    def is_nested(self) -> bool:
        """Whether the stages' cuts may differ."""
        return len(self.stage_bytes) > 1

    def course(self, pipeline: Pipeline) -> Course:
        """The course of the same cuts through this pipeline."""
        if self.is_nested:
            return nested_course_of(pipeline, NestedSchedule(self.stage_bytes))
        return course_of(pipeline, self.stage_bytes[0])


def explain(asked: Explained) -> Explanation:
    """Shares of the critical path, and what each cost, made cheaper, would take off the latency.

    The best cut of each cheaper pipeline is solved anew where that is quick and all stages share
    one cut. Raises InvalidInput for an answer with too many fragments times stages.
    """
    _check_cells(asked)
    course = asked.course(asked.pipeline)
    return Explanation(
        course.latency_us,
        course.delay_us,
        path_shares(course),
        asked.cheaper_by,
        tuple(_savings(asked, course.latency_us)),
    )


def _savings(asked: Explained, latency_us: float) -> Iterator[Saving]:
    ends_s = time.monotonic() + SOLVES_LIMIT_S
    for stage, cost, variant in cheaper_pipelines(asked.pipeline, by=asked.cheaper_by):
        same_us = max(0.0, latency_us - asked.course(variant).latency_us)
        best_us = None
        if time.monotonic() < ends_s:
            best_us = _best_us(asked, variant)
        saved_us = None if best_us is None else max(same_us, latency_us - best_us)
        yield Saving(stage, asked.pipeline.stages[stage].name, cost, same_us, saved_us)


def _best_us(asked: Explained, variant: Pipeline) -> float | None:
    """The best latency of a cheaper pipeline; None where it cannot be had quickly."""
    message = sum(asked.stage_bytes[0])
    problem = Problem(variant, message, asked.limits, fragment_cap=asked.fragment_cap)
    if asked.is_nested or not solvers.is_quick(problem, Strategy.AUTO):
        return None
    solution = solvers.solve(problem, time_limit_s=ONE_SOLVE_LIMIT_S)
    return None if solution.cut_off else solution.latency_us


def _check_cells(asked: Explained) -> None:
    stages = 1 if asked.is_nested else len(asked.pipeline)
    cells = stages * sum(map(len, asked.stage_bytes))
    if cells > MAX_CELLS:
        raise InvalidInput(
            f"expected fragments x stages <= {MAX_CELLS} of an answer to explain, got {cells}",
            field="id",
        )
