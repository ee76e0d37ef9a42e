"""The optimum for k fragments with convex costs: the cells' dual solved by GLOP, certified.

Source    docs/theory.md sec. 5 and 7; the model is below.
Notation  k fragments, n stages; phi_j: minorants; p: (k-1, n); x: (k,) real sizes, bytes.
Cost      one simplex solve of 2k-1 rows and one for each cell with several lines; a few more where
          fragments wait in front of a stage at the optimum.
Exact     what is returned is certified on both sides and not taken from the solver: `upper_us` is
          the latency of the sizes on the minorants, `lower_us` the value of the repaired dual.
Traps     as in lines.py; lines of steep pieces have intercepts far below zero, so that
          GLOP may fail where costs differ by many orders: then the gap between the bounds shows it.

The reduced dual where every cell of the grid has its own cost, convex or one line.

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
    order row   as in lines.py

with p_0 = e_0, p_k = e_{n-1}, S_i the spread of sizes of fragment i (no mu_i without a bound that
can bind). The multipliers of the byte rows are the y_i.

Cost      O(k n) entries, plus O(n) for each split and order row.
Exact     the optimum of a primal program with a row for each line: tests/solvers/test_ranges.py.
Traps     as in lines.py: times and bytes are scaled, zero coefficients left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from solvers.contract import Deadline
from solvers.exact.convex import ConvexProblem, Steps, flow_of, value_us
from solvers.exact.dual import repaired
from solvers.exact.lp.lines import (
    CLOSE,
    NO_ROWS,
    PARAMETER_SETS,
    CountResult,
    SparseModel,
    order_entries,
    run_glop,
    sparse_matrix,
    spread_shares,
    with_violated,
)

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


MAX_ENTRIES = 4_000_000  # of a model; a larger one is not built, and equal sizes stand


@dataclass(frozen=True, slots=True)
class ConvexResult(CountResult):
    """T*(k) of the convex problem between two bounds; `steps` feeds the bounds at k-1 and k+1."""

    steps: Steps


def solve_convex_count(
    convex: ConvexProblem, k: int, deadline: Deadline, *, close: float = CLOSE
) -> ConvexResult:
    """Solve for exactly k fragments; never raises for a solver's failure, only widens the gap."""
    best = _equal(convex, k)
    if k == 1 or convex.n == 1 or convex.free_bytes(k) <= 0.0:
        return best
    if k * (convex.pieces + convex.n) * convex.n > MAX_ENTRIES:
        return best
    cells = _cells_of(convex, k, best.upper_us)
    rows, attempt = NO_ROWS, 0
    while attempt < len(PARAMETER_SETS) and not deadline.passed:
        found = run_glop(cells_dual(cells, rows), PARAMETER_SETS[attempt], deadline)
        if found is None:
            attempt += 1
            continue
        columns = (k - 1) * convex.n
        p = found[0][:columns].reshape(k - 1, convex.n)
        best = _better(convex, cells, best, found)
        if best.upper_us - best.lower_us <= close * best.upper_us:
            break
        grown = with_violated(rows, p)
        if len(grown[0]) == len(rows[0]):
            attempt += 1
        rows = grown
    return best


def _cells_of(convex: ConvexProblem, k: int, unit_us: float) -> Cells:
    """Every fragment with the lines of every minorant, as functions of the bytes above m."""
    first_c, first_G, j, more_c, more_G = [], [], [], [], []
    for stage, hull in enumerate(convex.hulls):
        slopes = np.diff(hull[:, 1]) / np.diff(hull[:, 0]) if len(hull) > 1 else np.zeros(1)
        starts = hull[: len(slopes), 1] - slopes * (hull[: len(slopes), 0] - convex.m)
        first_c.append(float(hull[0, 1]))
        first_G.append(float(slopes[0]))
        j += [stage] * (len(slopes) - 1)
        more_c += starts[1:].tolist()
        more_G += slopes[1:].tolist()
    pieces = len(j)
    return Cells(
        c=np.tile(np.array(first_c), (k, 1)),
        G=np.tile(np.array(first_G), (k, 1)),
        i=np.repeat(np.arange(k), pieces),
        j=np.tile(np.array(j, dtype=np.int64), k),
        extra_c=np.tile(np.array(more_c), k),
        extra_G=np.tile(np.array(more_G), k),
        total=convex.free_bytes(k),
        spread=np.full(k, convex.M - convex.m),
        unit_us=unit_us,
    )


def _better(
    convex: ConvexProblem, cells: Cells, best: ConvexResult, found: tuple[Floats, Floats]
) -> ConvexResult:
    """The tighter of what is known and of what this solve gives, side by side."""
    k = best.k
    p = repaired(found[0][: (k - 1) * convex.n].reshape(k - 1, convex.n))
    lower, steps = value_us(convex, p), _steps(convex, cells, p, found[0])
    x = convex.m + spread_shares(found[1][:k], cells.total, cells.spread)
    upper = convex.latency_us(x)
    if lower <= best.lower_us:
        lower, p, steps = best.lower_us, best.p, best.steps
    if upper >= best.upper_us:
        upper, x = best.upper_us, best.x
    return ConvexResult(k, lower, upper, x, p, steps)


def _steps(convex: ConvexProblem, cells: Cells, p: Floats, values: Floats) -> Steps:
    """What the flow pays for one more, or one less, step: see Steps."""
    k, n = cells.c.shape
    flow = flow_of(p)
    e = values[(k - 1) * n + 1 :][: len(cells.i)]
    G, c = flow * cells.G, flow * cells.c
    np.add.at(G, (cells.i, cells.j), e * (cells.extra_G - cells.G[cells.i, cells.j]))
    np.add.at(c, (cells.i, cells.j), e * (cells.extra_c - cells.c[cells.i, cells.j]))
    known = flow > 0.0
    mean_G = np.where(known, G / np.where(known, flow, 1.0), cells.G)[1:]
    mean_c = np.where(known, c / np.where(known, flow, 1.0), cells.c)[1:]
    slope, start = (p * mean_G).sum(axis=1), (p * (mean_c - convex.m * mean_G)).sum(axis=1)
    price = float(values[(k - 1) * n]) * (cells.unit_us or 1.0) / (cells.total or 1.0)
    return Steps(slope, start, price)


def _equal(convex: ConvexProblem, k: int) -> ConvexResult:
    """Equal sizes, and the bound of the stage that is slowest at that size (p = e_b)."""
    x = np.full(k, convex.B / k)
    times = convex.times_us(x[:1])[0]
    b, p = int(np.argmax(times)), np.zeros((k - 1, convex.n))
    p[:, b] = 1.0
    reach = convex.times_us(np.array([x[0] * (1.0 + 1e-6), x[0] * (1.0 - 1e-6)]))[:, b]
    slope = float(reach[0] - reach[1]) / (2e-6 * float(x[0]))
    steps = Steps(np.full(k - 1, slope), np.full(k - 1, times[b] - slope * x[0]), slope)
    return ConvexResult(k, value_us(convex, p), convex.latency_us(x), x, p, steps)
