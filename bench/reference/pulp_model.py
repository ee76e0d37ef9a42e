"""The readable reference model: Wang's recurrence as a linear program, in PuLP, solved by CBC.

Source    Wang98 sec. 2, eq. (1)-(3); theory sec. 1. Minimising a maximum of sums is linear: each
          "max" becomes two inequalities, and the minimum pulls the exit times down onto it.
Notation  n stages, k fragments; x_i: bytes; tau_ij: exit time of fragment i from stage j, µs.
Cost      2kn rows, k(n+1) columns; a process for CBC. For checking, not for service.
Exact     for k fragments in real sizes within [m, M].
Traps     PuLP calls a CBC that ran out of time "Optimal"; only `sol_status` tells the truth. CBC's
          own tolerances are absolute, so the message is one unit here, and one fragment's latency
          another.
"""

from __future__ import annotations

from dataclasses import dataclass

import pulp

from domain.errors import SolverFailed
from solvers.line_problem import LineProblem


@dataclass(frozen=True, slots=True)
class ReferenceResult:
    """Objective (µs, no delay) and sizes (bytes) as CBC gave them, and whether it proved them."""

    latency_us: float
    x: tuple[float, ...]
    proven: bool


def reference_model(lines: LineProblem, k: int) -> tuple[pulp.LpProblem, float]:
    """The linear program for k fragments, and the µs in one of its time units."""
    n, size = lines.n, lines.B
    unit_us = float(lines.g.sum() + size * lines.G.sum()) or 1.0
    model = pulp.LpProblem("fragmentation", pulp.LpMinimize)
    x = [
        pulp.LpVariable(f"x_{i}", lowBound=lines.m / size, upBound=lines.M / size) for i in range(k)
    ]
    tau = [[pulp.LpVariable(f"tau_{i}_{j}", lowBound=0) for j in range(n)] for i in range(k)]
    model += tau[k - 1][n - 1], "latency"
    model += pulp.lpSum(x) == 1, "the_fragments_are_the_message"
    for i in range(k):
        for j in range(n):
            t = float(lines.g[j]) / unit_us + float(lines.G[j]) * size / unit_us * x[i]
            model += tau[i][j] >= (tau[i - 1][j] if i else 0) + t, f"stage_{j}_is_free_for_{i}"
            if j:
                model += tau[i][j] >= tau[i][j - 1] + t, f"fragment_{i}_has_left_stage_{j - 1}"
    return model, unit_us


def solve_reference(
    lines: LineProblem, k: int, *, time_limit_s: float | None = None
) -> ReferenceResult:
    """Solve with PuLP's bundled CBC. Raises SolverFailed where it returns no solution at all."""
    model, unit_us = reference_model(lines, k)
    model.solve(pulp.PULP_CBC_CMD(msg=False, timeLimit=time_limit_s, threads=1))
    if model.sol_status not in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        raise SolverFailed(f"CBC ended as {pulp.LpStatus[model.status]}")
    names = model.variablesDict()
    sizes = tuple(float(pulp.value(names[f"x_{i}"])) * lines.B for i in range(k))
    return ReferenceResult(
        latency_us=float(pulp.value(model.objective)) * unit_us,
        x=sizes,
        proven=model.sol_status == pulp.LpSolutionOptimal,
    )
