"""Fragment schedules for messages that cross a pipeline of stages, each with a proof.

    from sluice import Problem, pipeline_of_lines, solve

    pipeline = pipeline_of_lines([("copy", 7.2, 7.0), ("wire", 7.5, 24.3)])  # name, µs, ns per byte
    print(solve(Problem(pipeline, 65536)).schedule.fragment_bytes)

Names are imported when they are first used, so that the command starts at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sluice.domain.aggregate import Aggregate
    from sluice.domain.pipeline import Pipeline, Stage, pipeline_of_lines
    from sluice.domain.problem import AggregateProblem, FragmentLimits, Problem
    from sluice.domain.solution import Solution, Status, Strategy
    from sluice.solvers import baselines, compile_table, solve

_HOMES = {
    "Aggregate": "domain.aggregate",
    "AggregateProblem": "domain.problem",
    "FragmentLimits": "domain.problem",
    "Pipeline": "domain.pipeline",
    "Problem": "domain.problem",
    "Solution": "domain.solution",
    "Stage": "domain.pipeline",
    "Status": "domain.solution",
    "Strategy": "domain.solution",
    "baselines": "solvers",
    "compile_table": "solvers",
    "pipeline_of_lines": "domain.pipeline",
    "solve": "solvers",
}

__all__ = [
    "Aggregate",
    "AggregateProblem",
    "FragmentLimits",
    "Pipeline",
    "Problem",
    "Solution",
    "Stage",
    "Status",
    "Strategy",
    "baselines",
    "compile_table",
    "pipeline_of_lines",
    "solve",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
