"""The CBC that PuLP brings, in a process of its own, fed by a file."""

from __future__ import annotations

import pulp

from bench.engines.primal import TIME_LIMIT_S, Engine, EngineRun
from solvers.line_problem import LineProblem


def _solve(lines: LineProblem, k: int) -> EngineRun:
    model = _model(lines, k)
    model.solve(pulp.PULP_CBC_CMD(msg=False, timeLimit=TIME_LIMIT_S))
    if model.sol_status not in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        return EngineRun(pulp.LpSolution[model.sol_status].lower(), None)
    status = "optimal" if model.sol_status == pulp.LpSolutionOptimal else "feasible"
    return EngineRun(status, float(pulp.value(model.objective)))


def _model(lines: LineProblem, k: int) -> pulp.LpProblem:
    g, G, n = lines.g.tolist(), lines.G.tolist(), lines.n
    model = pulp.LpProblem("fragmentation", pulp.LpMinimize)
    x = [pulp.LpVariable(f"x{i}", lines.m) for i in range(k)]
    tau = [[pulp.LpVariable(f"t{i}_{j}", 0.0) for j in range(n)] for i in range(k)]
    model.setObjective(pulp.LpAffineExpression([(tau[-1][-1], 1.0)]))
    for i in range(k):
        for j in range(n):
            own = [(tau[i][j], 1.0), (x[i], -G[j])]
            if i == j == 0:
                _add(model, own, g[j])
            if i:
                _add(model, [*own, (tau[i - 1][j], -1.0)], g[j])
            if j:
                _add(model, [*own, (tau[i][j - 1], -1.0)], g[j])
    total = pulp.LpAffineExpression([(size, 1.0) for size in x])
    model.addConstraint(pulp.LpConstraint(total, pulp.LpConstraintEQ, rhs=lines.B))
    return model


def _add(model: pulp.LpProblem, terms: list[tuple[pulp.LpVariable, float]], minimum: float) -> None:
    expression = pulp.LpAffineExpression(terms)
    model.addConstraint(pulp.LpConstraint(expression, pulp.LpConstraintGE, rhs=minimum))


CBC = Engine("CBC (PuLP)", _solve)
