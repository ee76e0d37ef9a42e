"""CLP, GLOP and CBC through OR-Tools' pywraplp, coefficient by coefficient."""

from __future__ import annotations

from functools import partial
from typing import Any

from ortools.linear_solver import pywraplp

from bench.engines.primal import TIME_LIMIT_S, Engine, EngineRun
from solvers.line_problem import LineProblem

_STATUS = ("optimal", "feasible", "infeasible", "unbounded", "abnormal", "model invalid")
create_solver: Any = pywraplp.Solver.CreateSolver  # untyped


def _solve(backend: str, lines: LineProblem, k: int) -> EngineRun:
    solver = create_solver(backend)
    exit_time = _state(solver, lines, k)
    solver.Objective().SetCoefficient(exit_time, 1.0)
    solver.Objective().SetMinimization()
    solver.SetTimeLimit(int(TIME_LIMIT_S * 1000))
    status = solver.Solve()
    ended = _STATUS[status] if status < len(_STATUS) else "not solved"
    has_one = status in (pywraplp.Solver.OPTIMAL, pywraplp.Solver.FEASIBLE)
    return EngineRun(ended, solver.Objective().Value() if has_one else None)


def _state(solver: Any, lines: LineProblem, k: int) -> Any:
    """All rows; returns the exit time of the last fragment from the last stage."""
    g, G, infinity = lines.g.tolist(), lines.G.tolist(), solver.infinity()
    x = [solver.NumVar(lines.m, infinity, "") for _ in range(k)]
    row_before: list[Any] = [None] * lines.n  # tau_{i-1,j}
    for size in x:
        stage_before = None  # tau_{i,j-1}
        for j in range(lines.n):
            tau = solver.NumVar(0.0, infinity, "")
            for earlier in _predecessors(row_before[j], stage_before):
                row = solver.Constraint(g[j], infinity)
                row.SetCoefficient(tau, 1.0)
                row.SetCoefficient(size, -G[j])
                if earlier is not None:
                    row.SetCoefficient(earlier, -1.0)
            row_before[j] = stage_before = tau
    total = solver.Constraint(lines.B, lines.B)
    for size in x:
        total.SetCoefficient(size, 1.0)
    return row_before[-1]


def _predecessors(row_before: Any, stage_before: Any) -> list[Any]:
    """What this exit time waits for; the first of all waits for nothing and still has its row."""
    known = [tau for tau in (row_before, stage_before) if tau is not None]
    return known or [None]


CLP = Engine("CLP (pywraplp)", partial(_solve, "CLP"))
GLOP = Engine("GLOP (pywraplp)", partial(_solve, "GLOP"))
CBC = Engine("CBC (pywraplp)", partial(_solve, "CBC"))
