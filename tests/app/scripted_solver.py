"""A solver for the tests of jobs: the name of the pipeline's first stage says what it does.

Operations that run in the engine's workers find it in place of `solvers.solve`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import solvers
from app.execution.operation_process import run_operation
from app.operations import table_work
from app.operations.operation import Report
from app.questions import tables
from domain.problem import Problem
from domain.schedule import Schedule, latency_us
from domain.solution import Solution, Status, Strategy
from tests.support.engines import solver_gate

ANSWERS, IMPROVES, WAITS, CRASHES = "answers", "improves", "waits", "crashes"
SOLVE = solvers.solve


def run(work: bytes, report: Report) -> object:
    """Run an operation whose solves are scripted, and whose compilations wait at the gate."""
    solvers.solve = solve
    vars(table_work)["compile_table"] = compile_at_gate
    return run_operation(work, report)


def compile_at_gate(
    question: Any, progress: Callable[[int, int], None], is_ended: Callable[[], bool]
) -> Any:
    """Compile once the gate is open."""
    progress(1, 1000)
    _wait_at_gate()
    return tables.compile_table(question, progress, is_ended)


def solve(
    problem: Problem,
    strategy: Strategy,
    *,
    on_incumbent: Callable[[Solution], None] | None = None,
    **options: Any,
) -> Solution:
    """Behave as the first stage is named; solve in earnest where that is no behaviour."""
    behaviour = problem.pipeline.stages[0].name
    if behaviour not in (ANSWERS, IMPROVES, WAITS, CRASHES):
        return SOLVE(problem, strategy, on_incumbent=on_incumbent, **options)
    if behaviour == CRASHES:
        os._exit(3)
    if behaviour == IMPROVES and on_incumbent is not None:
        on_incumbent(_cut(problem, 1, Status.PROVEN_GAP))
        on_incumbent(_cut(problem, 2, Status.PROVEN_GAP))
    if behaviour in (IMPROVES, WAITS):
        _wait_at_gate()
    return _cut(problem, 4, Status.PROVEN_GAP)


def _wait_at_gate() -> None:
    gate = solver_gate()
    while not gate.exists():
        time.sleep(0.01)


def _cut(problem: Problem, fragments: int, status: Status) -> Solution:
    each, rest = divmod(problem.message_bytes, fragments)
    sizes = (each + rest, *(each for _ in range(fragments - 1)))
    return Solution(
        problem=problem,
        strategy=Strategy.EXACT,
        schedule=Schedule(sizes),
        latency_us=latency_us(problem.pipeline, sizes),
        lower_bound_us=1.0,
        status=status,
    )
