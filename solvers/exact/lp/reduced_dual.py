"""The reduced dual as sparse arrays, rows named as the equations of results sec. 1.

Source    results sec. 1.
Notation  n stages, k fragments; p_i (i = 1..k-1): distribution over the stages of the step from
          fragment i-1 to fragment i; Q_c = G_0+..+G_c, Q-_c = Q_{c-1}; lambda: one free number.
          Substituting x = m + y for the least size m: g' = g + mG, B' = B - km, M' = M - m.

    maximise    lambda B' + sum_i g'.p_i - M' sum_i mu_i      (constant sum_j g'_j left out)
    byte row i  Q.p_{i+1} - Q-.p_i - lambda + mu_i >= 0        i = 0..k-1, p_0 = e_0, p_k = e_{n-1}
    unit row i  sum_c p_i(c) = 1                               i = 1..k-1
    order row   sum_{c<=d} (p_i(c) - p_{i+1}(c)) >= 0          pairs (i, d) that were asked for

The multipliers of the byte rows are the sizes y. Without order rows this is the dual of the
no-wait chain (theory sec. 6), which is optimal for most pipelines; order rows enter only where
its solution violates them. That leaves 2k-1 rows where the primal has 2kn.

Cost      O(k n) entries, plus O(n) for each order row.
Exact     the same optimum as the primal in bench/reference/: tests/solvers/test_exact_lp.py.
Traps     times are scaled by the latency of one fragment and bytes by B', so that the solver's
          absolute tolerances mean something at every scale; zero coefficients are left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from solvers.exact.lp.glop import SparseModel, sparse_matrix
from solvers.line_problem import LineProblem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def reduced_dual(lines: LineProblem, k: int, order_rows: tuple[Ints, Ints]) -> SparseModel:
    """Return the model for k >= 2 fragments; order_rows are index arrays (i, d), i from 0
    to k-3.
    """
    n = lines.n
    overhead, Q, Q_minus, cap = _scaled(lines, k)
    columns = (k - 1) * n
    steps = np.repeat(np.arange(k - 1), n)
    cells = np.arange(columns)
    capped = np.arange(k) if cap is not None else np.arange(0)
    rows = [steps, steps + 1, np.arange(k), steps + k, capped]
    cols = [cells, cells, np.full(k, columns), cells, columns + 1 + capped]
    data = [
        np.tile(Q, k - 1),
        -np.tile(Q_minus, k - 1),
        np.full(k, -1.0),
        np.ones(columns),
        np.ones(len(capped)),
    ]
    order = order_entries(order_rows, n, first_row=2 * k - 1)
    size = (2 * k - 1 + len(order_rows[0]), columns + 1 + len(capped))
    entries = [
        np.concatenate([*part, extra])
        for part, extra in zip((rows, cols, data), order, strict=True)
    ]
    kept = entries[2] != 0.0
    matrix = sparse_matrix(entries[2][kept], entries[0][kept], entries[1][kept], shape=size)
    open_rows = np.full(len(order_rows[0]), np.inf)
    return SparseModel(
        cost=-np.concatenate(
            [np.tile(overhead, k - 1), [1.0], np.full(len(capped), -(cap or 0.0))]
        ),
        low=np.concatenate([np.zeros(columns), [-np.inf], np.zeros(len(capped))]),
        high=np.concatenate([np.ones(columns), [np.inf], np.full(len(capped), np.inf)]),
        row_low=np.concatenate(
            [np.zeros(k - 1), [-Q[-1]], np.ones(k - 1), np.zeros(len(open_rows))]
        ),
        row_high=np.concatenate([np.full(k, np.inf), np.ones(k - 1), open_rows]),
        matrix=matrix,
    )


def _scaled(lines: LineProblem, k: int) -> tuple[Floats, Floats, Floats, float | None]:
    """g', Q, Q- and M' in units of one fragment's latency and of the free bytes."""
    free = lines.free_bytes(k) or 1.0
    overhead = lines.g + lines.m * lines.G
    unit = float(overhead.sum() + free * lines.G.sum()) or 1.0
    Q = np.cumsum(lines.G)
    spread = lines.M - lines.m
    cap = spread / free if spread < free else None
    return overhead / unit, Q * free / unit, (Q - lines.G) * free / unit, cap


def order_entries(
    order_rows: tuple[Ints, Ints], n: int, *, first_row: int
) -> tuple[Ints, Ints, Floats]:
    """Return entries of the order rows: +1 on p_i(c), -1 on p_{i+1}(c), for every c <= d."""
    i, d = order_rows
    width = d + 1
    row = first_row + np.repeat(np.arange(len(i)), width)
    c = np.arange(int(width.sum())) - np.repeat(np.cumsum(width) - width, width)
    here = np.repeat(i, width) * n + c
    ones = np.ones(len(c))
    return (
        np.concatenate([row, row]),
        np.concatenate([here, here + n]),
        np.concatenate([ones, -ones]),
    )


_VIOLATED = 1e-12  # how much of a distribution may be out of order before a row is added
NO_ROWS: tuple[Ints, Ints] = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


def with_violated(rows: tuple[Ints, Ints], p: Floats) -> tuple[Ints, Ints]:
    """Return the order rows so far, and every row of the stages where p violates one.

    Adding the violated rows alone takes many rounds, each of which moves the violation by a step.
    """
    running = np.cumsum(p, axis=1)[:, :-1]
    violated = running[1:] - running[:-1] > _VIOLATED
    violated |= np.any(violated, axis=0, keepdims=True)
    violated[rows] = True
    i, d = np.nonzero(violated)
    return i.astype(np.int64), d.astype(np.int64)
