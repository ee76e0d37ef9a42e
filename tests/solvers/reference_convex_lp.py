"""An independent program for stages with ranges: Wang's recurrence over minorants, in HiGHS.

Written row by row from the vertices of the minorants; it shares nothing with the solvers but the
vertices, which tests/domain checks by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy import sparse
from scipy.optimize import linprog


def convex_optimum_us(
    hulls: Sequence[np.ndarray], total: float, k: int, *, minimum: float, maximum: float
) -> float:
    """The least latency over k real sizes within the limits, µs."""
    n = len(hulls)
    unit = sum(float(np.interp(total / k, hull[:, 0], hull[:, 1])) for hull in hulls) or 1.0
    rows: list[dict[int, float]] = []
    limits: list[float] = []
    for i in range(k):
        for j, hull in enumerate(hulls):
            t, tau = k + i * n + j, k + k * n + i * n + j
            for (x0, c0), (x1, c1) in pairwise(hull):
                slope = (c1 - c0) / (x1 - x0)
                rows.append({i: slope * total / unit, t: -1.0})
                limits.append((slope * x0 - c0) / unit)
            if len(hull) == 1:
                rows.append({t: -1.0})
                limits.append(-float(hull[0, 1]) / unit)
            rows.append({t: 1.0, tau: -1.0} | ({tau - n: 1.0} if i else {}))
            rows.append({t: 1.0, tau: -1.0} | ({tau - 1: 1.0} if j else {}))
            limits += [0.0, 0.0]
    return unit * _solve(rows, limits, k, k * n, minimum / total, maximum / total)


def _solve(
    rows: list[dict[int, float]],
    limits: list[float],
    k: int,
    cells: int,
    minimum: float,
    maximum: float,
) -> float:
    places = [(row, column) for row, entries in enumerate(rows) for column in entries]
    values = [value for entries in rows for value in entries.values()]
    shape = (len(rows), k + 2 * cells)
    matrix = sparse.csr_matrix((values, np.array(places).T), shape=shape)
    cost = np.zeros(shape[1])
    cost[-1] = 1.0
    whole = sparse.csr_matrix((np.ones(k), (np.zeros(k, dtype=int), np.arange(k))), (1, shape[1]))
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    between: list[tuple[float, float | None]] = [(minimum, maximum)] * k
    between += [(0.0, None)] * (2 * cells)
    result = linprog(
        cost,
        A_ub=matrix,
        b_ub=limits,
        A_eq=whole,
        b_eq=[1.0],
        bounds=between,
        method="highs",
        options=tight,
    )
    assert result.status == 0, result.message
    return float(result.fun)
