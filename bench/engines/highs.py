"""HiGHS through scipy.optimize.linprog: simplex and interior point."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import optimize, sparse

from bench.engines.primal import TIME_LIMIT_S, Engine, EngineRun, primal_arrays
from solvers.line_problem import LineProblem

_STATUS = ("optimal", "limit", "infeasible", "unbounded", "numerical difficulties")
linprog: Any = optimize.linprog  # its stub knows no sparse matrices


def _solve(method: str, lines: LineProblem, k: int) -> EngineRun:
    arrays = primal_arrays(lines, k)
    result = linprog(
        arrays.cost,
        A_ub=-arrays.matrix,
        b_ub=-arrays.row_low,
        A_eq=sparse.csr_matrix(arrays.byte_row[None]),
        b_eq=[lines.B],
        bounds=np.column_stack([arrays.low, np.full(len(arrays.low), np.inf)]),
        method=method,
        options={"time_limit": TIME_LIMIT_S},
    )
    objective = float(result.fun) if result.fun is not None else None
    return EngineRun(_STATUS[result.status], objective)


SIMPLEX = Engine("HiGHS simplex (SciPy)", partial(_solve, "highs-ds"))
INTERIOR_POINT = Engine("HiGHS interior point (SciPy)", partial(_solve, "highs-ipm"))
