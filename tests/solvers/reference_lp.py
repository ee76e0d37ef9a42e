"""An independent statement of the exact linear program, solved by another library (HiGHS).

Minimise tau[k-1, n-1] subject to the recurrence as inequalities (theory.md sec. 1); nothing of
`solvers` is used. Times are scaled by one fragment's latency, bytes by the message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from domain.pipeline import Pipeline
from domain.schedule import latency_us

PROVEN = 2e-8  # relative distance of the program's own two bounds at which it succeeded


@dataclass(frozen=True)
class _Program:
    """minimise tau[k-1, n-1] subject to A v <= b and the sum of the sizes, v = (tau, x)."""

    matrix: sparse.csr_matrix
    b: NDArray[np.float64]
    sums: sparse.csr_matrix
    objective: NDArray[np.float64]
    limits: tuple[float, float]
    unit_us: float


def _program(pipeline: Pipeline, size: float, k: int, minimum: float, maximum: float) -> _Program:
    g = np.array([stage.ranges[0].overhead_us for stage in pipeline.stages])
    cost = np.array([stage.ranges[0].ns_per_byte for stage in pipeline.stages]) / 1000.0 * size
    unit = float(g.sum() + cost.sum()) or 1.0
    n = len(g)
    cell = np.arange(k * n).reshape(k, n)
    here = np.concatenate([cell.ravel(), cell[:, 1:].ravel()])
    before = np.concatenate([np.full(n, -1), cell[:-1].ravel(), cell[:, :-1].ravel()])
    rows = np.arange(len(here))
    i, j = np.divmod(here, n)
    linked = before >= 0
    matrix = sparse.csr_matrix(
        (
            np.concatenate([-np.ones(len(here)), np.ones(int(linked.sum())), cost[j] / unit]),
            (
                np.concatenate([rows, rows[linked], rows]),
                np.concatenate([here, before[linked], k * n + i]),
            ),
        ),
        shape=(len(here), k * n + k),
    )
    sums = sparse.csr_matrix((np.ones(k), (np.zeros(k, int), k * n + np.arange(k))), (1, k * n + k))
    objective = np.zeros(k * n + k)
    objective[k * n - 1] = 1.0
    return _Program(matrix, -g[j] / unit, sums, objective, (minimum / size, maximum / size), unit)


def _solved(program: _Program) -> Any:
    cells = len(program.objective) - program.sums.nnz
    return linprog(
        program.objective,
        A_ub=cast(Any, program.matrix),
        b_ub=program.b,
        A_eq=cast(Any, program.sums),
        b_eq=[1.0],
        bounds=[(0.0, None)] * cells + [program.limits] * program.sums.nnz,
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )


def optimum_us(
    pipeline: Pipeline, size: float, k: int, *, minimum: float = 0.0, maximum: float | None = None
) -> float:
    """T*(k) in µs, without the constant delay, for real sizes in [least, greatest]."""
    program = _program(pipeline, size, k, minimum, maximum or size)
    result = _solved(program)
    assert result.status == 0, result.message
    assert result.fun is not None
    return float(result.fun) * program.unit_us


def proven_optimum_us(
    pipeline: Pipeline, size: float, k: int, *, minimum: float = 0.0, maximum: float | None = None
) -> float | None:
    """As `optimum_us`, or None where the library fails or its answer proves itself no better than
    to 2e-8: by the evaluator's latency of its sizes, and by the Lagrangian of its multipliers.
    """
    program = _program(pipeline, size, k, minimum, maximum or size)
    result = _solved(program)
    if result.status != 0:
        return None
    value = float(result.fun) * program.unit_us
    x = np.clip(result.x[-k:], *program.limits)
    upper = latency_us(pipeline, (x * (size / x.sum())).tolist()) - pipeline.delay_us
    lower = _lagrangian(program, result, k) * program.unit_us
    if upper - lower > PROVEN * max(upper, value):
        return None
    return value


def _lagrangian(program: _Program, result: Any, k: int) -> float:
    """The least value of the Lagrangian over the limits; no exit time exceeds the latency."""
    rows = np.minimum(result.ineqlin.marginals, 0.0)
    left = program.objective - program.matrix.T @ rows
    left[-k:] -= result.eqlin.marginals[0]
    low, high = program.limits
    value = float(rows @ program.b) + float(result.eqlin.marginals[0])
    value += float(np.minimum(left[:-k], 0.0).sum()) * float(result.fun)
    return value + float(np.minimum(left[-k:] * low, left[-k:] * high).sum())
