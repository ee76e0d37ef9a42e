"""An independent statement of the exact linear program, solved by another library (HiGHS).

Minimise tau[k-1, n-1] subject to the recurrence as inequalities (theory.md sec. 1); nothing of
`solvers` is used. Times are scaled by one fragment's latency, bytes by the message.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from domain.pipeline import Pipeline


def optimum_us(
    pipeline: Pipeline, size: float, k: int, *, least: float = 0.0, greatest: float | None = None
) -> float:
    """T*(k) in µs, without the constant delay, for real sizes in [least, greatest]."""
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
    total = sparse.csr_matrix(
        (np.ones(k), (np.zeros(k, int), k * n + np.arange(k))), (1, k * n + k)
    )
    objective = np.zeros(k * n + k)
    objective[k * n - 1] = 1.0
    limits = (least / size, (greatest or size) / size)
    result = linprog(
        objective,
        A_ub=cast(Any, matrix),
        b_ub=-g[j] / unit,
        A_eq=cast(Any, total),
        b_eq=[1.0],
        bounds=[(0.0, None)] * (k * n) + [limits] * k,
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert result.status == 0, result.message
    assert result.fun is not None
    return float(result.fun) * unit
