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
    from sluice.analysis.bucket_trial import Trainer, find_buckets
    from sluice.analysis.buckets import (
        advise_buckets,
        buckets_of,
        exact_buckets,
        one_cap_buckets,
        queued_sizes,
        verified_buckets,
    )
    from sluice.domain.aggregate import Aggregate
    from sluice.domain.bucket_setting import BucketSetting
    from sluice.domain.items import Fill, FillRule, ItemProblem, ItemSequence, layout
    from sluice.domain.pipeline import Pipeline, Stage, pipeline_of_lines
    from sluice.domain.problem import AggregateProblem, FragmentLimits, Problem
    from sluice.domain.solution import Solution, Status, Strategy
    from sluice.fitting.queued import queued_line
    from sluice.solvers import baselines, compile_table, solve
    from sluice.solvers.items.solve import solve_items

_HOMES = {
    "Aggregate": "domain.aggregate",
    "AggregateProblem": "domain.problem",
    "BucketSetting": "domain.bucket_setting",
    "Fill": "domain.items",
    "FillRule": "domain.items",
    "FragmentLimits": "domain.problem",
    "ItemProblem": "domain.items",
    "ItemSequence": "domain.items",
    "Pipeline": "domain.pipeline",
    "Problem": "domain.problem",
    "Solution": "domain.solution",
    "Stage": "domain.pipeline",
    "Status": "domain.solution",
    "Strategy": "domain.solution",
    "Trainer": "analysis.bucket_trial",
    "advise_buckets": "analysis.buckets",
    "baselines": "solvers",
    "buckets_of": "analysis.buckets",
    "compile_table": "solvers",
    "exact_buckets": "analysis.buckets",
    "find_buckets": "analysis.bucket_trial",
    "layout": "domain.items",
    "one_cap_buckets": "analysis.buckets",
    "pipeline_of_lines": "domain.pipeline",
    "queued_line": "fitting.queued",
    "queued_sizes": "analysis.buckets",
    "solve": "solvers",
    "solve_items": "solvers.items.solve",
    "verified_buckets": "analysis.buckets",
}

__all__ = [
    "Aggregate",
    "AggregateProblem",
    "BucketSetting",
    "Fill",
    "FillRule",
    "FragmentLimits",
    "ItemProblem",
    "ItemSequence",
    "Pipeline",
    "Problem",
    "Solution",
    "Stage",
    "Status",
    "Strategy",
    "Trainer",
    "advise_buckets",
    "baselines",
    "buckets_of",
    "compile_table",
    "exact_buckets",
    "find_buckets",
    "layout",
    "one_cap_buckets",
    "pipeline_of_lines",
    "queued_line",
    "queued_sizes",
    "solve",
    "solve_items",
    "verified_buckets",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
