"""The backend of models whose stages are known: each function's module is imported when called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from domain.pipeline import Pipeline
from domain.problem import Problem
from domain.solution import Solution, Strategy
from solvers.backends import Backend
from solvers.contract import SolveOptions
from solvers.kernels import stage_times_us

if TYPE_CHECKING:
    from domain.plan_table import PlanTable
    from solvers.default_settings import BaselineSet

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def _solve(problem: Problem, strategy: Strategy, options: SolveOptions) -> Solution:
    from solvers.strategies import solve_with

    return solve_with(problem, strategy, options)


def _is_quick(problem: Problem, strategy: Strategy) -> bool:
    from solvers.default_settings import is_quick

    return is_quick(problem, strategy)


def _baselines(problem: Problem, current_bytes: int | None) -> BaselineSet:
    from solvers.default_settings import baselines_of

    return baselines_of(problem, current_bytes)


def _compile_table(*args: object, **options: object) -> PlanTable:
    from solvers.tables.compile import compile_table

    return compile_table(*args, solve=_solve, **options)  # type: ignore[arg-type]


def _repeated_us(pipeline: Pipeline, q: Ints, s: Ints, r: Ints) -> Floats:
    full, rest = (
        stage_times_us(pipeline, s.astype(float)),
        stage_times_us(pipeline, r.astype(float)),
    )
    first = np.zeros(s.shape)  # when the first fragment leaves the stage
    slowest, last = np.zeros(s.shape), np.zeros(s.shape)
    left = first
    for j in range(len(pipeline)):
        first = first + full[..., j]
        slowest = np.maximum(slowest, full[..., j])
        left = first + (q - 1) * slowest
        last = np.maximum(last, left) + rest[..., j]
    latency: Floats = np.where(r > 0, last, left)
    return latency


BACKEND = Backend(
    solve=_solve,
    is_quick=_is_quick,
    baselines=_baselines,
    repeated_us=_repeated_us,
    costs=len,
    compile_table=_compile_table,
)
