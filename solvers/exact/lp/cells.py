"""The reduced dual where every cell of the grid has its own cost, convex or one line.

Source    results sec. 1, with costs that differ from fragment to fragment; docs/theory.md sec. 7.
Notation  n stages, k fragments; p_i (i = 1..k-1): distribution over the stages of the step from
          fragment i-1 to fragment i; F_i: its running sums; cell (i, j) costs the greatest of
          lines (c_ijl, G_ijl) of y_i = x_i - low_i, l = 0 the first; C_i, Q_i: running sums of
          c_ij0 and G_ij0 over the stages, C-, Q- without the last term; e_ijl: flow of cell
          (i, j) that is priced by line l > 0; B': the message less all low_i.

    maximise    lambda B' + sum_i (C_{i-1} - C-_i).p_i + sum (c_ijl - c_ij0) e_ijl - sum_i S_i mu_i
    byte row i  Q_i.p_{i+1} - Q-_i.p_i + sum_jl (G_ijl - G_ij0) e_ijl - lambda + mu_i >= 0
    unit row i  sum_c p_i(c) = 1
    split row   F_i(j) - F_{i+1}(j-1) - sum_l e_ijl >= 0        cells with more than one line
    order row   as in reduced_dual.py

with p_0 = e_0, p_k = e_{n-1}, S_i the spread of sizes of fragment i (no mu_i without a bound that
can bind). The multipliers of the byte rows are the y_i.

Cost      O(k n) entries, plus O(n) for each split and order row.
Exact     the optimum of a primal program with a row for each line: tests/solvers/test_ranges.py.
Traps     as in reduced_dual.py: times and bytes are scaled, zero coefficients left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from solvers.exact.lp.glop import SparseModel, sparse_matrix
from solvers.exact.lp.reduced_dual import order_entries

if TYPE_CHECKING:
    from scipy import sparse

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cells:
    """Costs c, G (k, n) of the first lines at y = 0; further lines as (i, j, c, G) columns.

    `total` is B' in bytes, `spread` (k,) the greatest y_i; `unit_us` the scale of times.
    """

    c: Floats
    G: Floats
    i: Ints
    j: Ints
    extra_c: Floats
    extra_G: Floats
    total: float
    spread: Floats
    unit_us: float


class _Entries:
    """Row, column, value triples of a sparse matrix, collected block by block."""

    def __init__(self) -> None:
        self._rows: list[Ints] = []
        self._columns: list[Ints] = []
        self._values: list[Floats] = []

    def add(self, rows: Ints, columns: Ints, values: Floats) -> None:
        kept = values != 0.0
        self._rows.append(rows[kept])
        self._columns.append(columns[kept])
        self._values.append(values[kept])

    def matrix(self, shape: tuple[int, int]) -> sparse.csr_matrix:
        rows, columns = np.concatenate(self._rows), np.concatenate(self._columns)
        return sparse_matrix(np.concatenate(self._values), rows, columns, shape=shape)


def cells_dual(cells: Cells, order_rows: tuple[Ints, Ints]) -> SparseModel:
    """Return the model for k >= 2 fragments. Columns: p, lambda, e, mu; rows: byte, unit, split,
    order.
    """
    k, n = cells.c.shape
    free, unit = cells.total or 1.0, cells.unit_us or 1.0
    c, G = cells.c / unit, cells.G * (free / unit)
    more_c, more_G = cells.extra_c / unit, cells.extra_G * (free / unit)
    spread = cells.spread / free
    capped = np.flatnonzero(spread < 1.0)
    columns, extras = (k - 1) * n, len(cells.i)
    first_mu = columns + 1 + extras
    split, member = _split_rows(cells, n)
    entries = _Entries()
    _byte_rows(entries, G)
    every = np.arange(k)
    entries.add(every, np.full(k, columns), np.full(k, -1.0))
    extra = columns + 1 + np.arange(extras)
    entries.add(cells.i, extra, more_G - G[cells.i, cells.j])
    entries.add(capped, first_mu + np.arange(len(capped)), np.ones(len(capped)))
    steps = np.repeat(np.arange(k - 1), n)
    entries.add(steps + k, np.arange(columns), np.ones(columns))
    _flow_rows(entries, split, 2 * k - 1, (k, n))
    entries.add(2 * k - 1 + member, extra, np.full(extras, -1.0))
    entries.add(*order_entries(order_rows, n, first_row=2 * k - 1 + len(split)))
    orders = len(order_rows[0])
    rows = 2 * k - 1 + len(split) + orders
    Q_last = np.zeros(k)
    Q_last[-1] = G[-1].sum()
    return SparseModel(
        cost=-np.concatenate(
            [_step_costs(c).ravel(), [1.0], more_c - c[cells.i, cells.j], -spread[capped]]
        ),
        low=np.concatenate([np.zeros(columns), [-np.inf], np.zeros(extras + len(capped))]),
        high=np.concatenate([np.ones(columns), np.full(1 + extras + len(capped), np.inf)]),
        row_low=np.concatenate(
            [-Q_last, np.ones(k - 1), np.where(split[:, 0] == 0, -1.0, 0.0), np.zeros(orders)]
        ),
        row_high=np.concatenate(
            [np.full(k, np.inf), np.ones(k - 1), np.full(len(split) + orders, np.inf)]
        ),
        matrix=entries.matrix((rows, first_mu + len(capped))),
    )


def _split_rows(cells: Cells, n: int) -> tuple[Ints, Ints]:
    """The cells (i, j) with more than one line, and which of them each further line belongs to."""
    keys, member = np.unique(cells.i * n + cells.j, return_inverse=True)
    return np.stack([keys // n, keys % n], axis=1), member.astype(np.int64)


def _step_costs(c: Floats) -> Floats:
    """C_{i-1} - C-_i for i = 1..k-1, (k-1, n)."""
    running = np.cumsum(c, axis=1)
    costs: Floats = running[:-1] - (running[1:] - c[1:])
    return costs


def _byte_rows(entries: _Entries, G: Floats) -> None:
    k, n = G.shape
    Q = np.cumsum(G, axis=1)
    steps, columns = np.repeat(np.arange(k - 1), n), np.arange((k - 1) * n)
    entries.add(steps, columns, Q[:-1].ravel())
    entries.add(steps + 1, columns, -(Q - G)[1:].ravel())


def _flow_rows(entries: _Entries, split: Ints, first_row: int, shape: tuple[int, int]) -> None:
    """F_i(j) - F_{i+1}(j-1) of the split cells in terms of p; F_0 = 1 is in the row's limit."""
    k, n = shape
    i, j = split[:, 0][:, None], split[:, 1][:, None]
    stage = np.arange(n)[None, :]
    for rows_of, sign, inside in (
        (i - 1, 1.0, (stage <= j) & (i >= 1)),
        (i, -1.0, (stage < j) & (i <= k - 2)),
    ):
        row, c = np.nonzero(inside)
        at = rows_of[row, 0] * n + c
        entries.add(first_row + row, at, np.full(len(row), sign))
