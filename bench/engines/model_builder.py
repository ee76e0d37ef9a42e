"""GLOP through OR-Tools' ModelBuilder, from sparse arrays: the plain primal."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from ortools.linear_solver.python import model_builder_helper as helper
from scipy import sparse

from bench.engines.primal import TIME_LIMIT_S, Engine, EngineRun, primal_arrays
from solvers.line_problem import LineProblem


def _solve(parameters: str, lines: LineProblem, k: int) -> EngineRun:
    arrays = primal_arrays(lines, k)
    columns = len(arrays.cost)
    builder: Any = helper.ModelBuilderHelper()  # its stub has a wrong type for the arrays
    builder.fill_model_from_sparse_data(
        arrays.low,
        np.full(columns, np.inf),
        arrays.cost,
        np.append(arrays.row_low, lines.B),
        np.append(np.full(len(arrays.row_low), np.inf), lines.B),
        sparse.vstack([arrays.matrix, sparse.csr_matrix(arrays.byte_row[None])], format="csr"),
    )
    solver = helper.ModelSolverHelper("glop")
    if parameters:
        solver.set_solver_specific_parameters(parameters)
    solver.set_time_limit_in_seconds(TIME_LIMIT_S)
    solver.solve(builder)
    status = str(solver.status()).rsplit(".", 1)[-1].lower()
    return EngineRun(status, solver.objective_value() if solver.has_solution() else None)


PRIMAL_SIMPLEX = Engine("GLOP (ModelBuilder)", partial(_solve, ""))
DUAL_SIMPLEX = Engine("GLOP dual simplex (ModelBuilder)", partial(_solve, "use_dual_simplex:true"))
