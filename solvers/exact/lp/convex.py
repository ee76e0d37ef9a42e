"""The optimum for k fragments with convex costs: the cells' dual solved by GLOP, certified.

Source    docs/theory.md sec. 5 and 7; the model is in cells.py.
Notation  k fragments, n stages; phi_j: minorants; p: (k-1, n); x: (k,) real sizes, bytes.
Cost      one simplex solve of 2k-1 rows and one for each cell with several lines; a few more where
          fragments wait in front of a stage at the optimum.
Exact     what is returned is certified on both sides and not taken from the solver: `upper_us` is
          the latency of the sizes on the minorants, `lower_us` the value of the repaired dual.
Traps     as in glop.py; lines of steep pieces have intercepts far below zero, so that
          GLOP may fail where costs differ by many orders: then the gap between the bounds shows it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.contract import Deadline
from solvers.exact.convex_dual import Steps, flow_of, value_us
from solvers.exact.convex_problem import ConvexProblem
from solvers.exact.dual import repaired
from solvers.exact.lp.cells import Cells, cells_dual
from solvers.exact.lp.glop import PARAMETER_SETS, run_glop
from solvers.exact.lp.lines import CLOSE, CountResult, spread_shares
from solvers.exact.lp.reduced_dual import NO_ROWS, with_violated

Floats = NDArray[np.float64]

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
