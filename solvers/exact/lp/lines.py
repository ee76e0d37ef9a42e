"""The default engine: the reduced dual solved by OR-Tools' GLOP from sparse arrays.

Source    results sec. 1; the model is below.
Notation  k fragments, n stages; p: (k-1, n); x: (k,) real sizes, bytes.
Cost      one simplex solve of 2k-1 rows for most pipelines; a few more where fragments wait in
          front of a stage at the optimum (order rows are added until none is violated).
Exact     what is returned is certified on both sides and not taken from the solver: `upper_us` is
          the latency of the sizes, `lower_us` the value of the repaired dual.
Traps     GLOP may end ABNORMAL on badly scaled rows; then the next parameter set is tried, and what
          gap is left is stated by the two bounds. fill_model_from_sparse_data is on a helper class
          of OR-Tools rather than its public surface: the version is locked, and the building of
          the model through the public classes costs ten times more.

The reduced dual as sparse arrays, rows named as the equations of results sec. 1.

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

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from solvers.contract import Deadline
from solvers.exact.dual import repaired, value_us
from solvers.line_problem import LineProblem

if TYPE_CHECKING:
    from scipy import sparse

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SPARE = (
    2.0  # bytes that a fragment is smaller than it could be: whole ones near it mostly fit, too
)


@dataclass(frozen=True, slots=True)
class SparseModel:
    """minimise cost.v subject to row_low <= A v <= row_high, low <= v <= high."""

    cost: Floats
    low: Floats
    high: Floats
    row_low: Floats
    row_high: Floats
    matrix: sparse.csr_matrix


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


def sparse_matrix(
    values: Floats, rows: Ints, columns: Ints, *, shape: tuple[int, int]
) -> sparse.csr_matrix:
    """Return the matrix of these entries, in rows.

    SciPy's matrices and OR-Tools are imported by the first model: most problems need none, and a
    command would spend a third of its start on them.
    """
    from scipy import sparse

    return sparse.csr_matrix((values, (rows, columns)), shape=shape)


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


# GLOP's own tolerances of 1e-7 leave the two bounds up to 1e-8 apart, and further attempts
# start for nothing. `make bench` has the times that these choices rest on.
_TOLERANCES = " primal_feasibility_tolerance:1e-10 dual_feasibility_tolerance:1e-10"
# In order of trial: the dual simplex is the fastest here and rarely fails.
PARAMETER_SETS = (
    "use_dual_simplex:true use_preprocessing:false" + _TOLERANCES,
    _TOLERANCES,
    "solve_dual_problem:ALWAYS_DO" + _TOLERANCES,
    "use_dual_simplex:true use_scaling:false",
)
CLOSE = 1e-9  # relative distance of the two bounds at which a solve is finished
_VIOLATED = 1e-12  # how much of a distribution may be out of order before a row is added
NO_ROWS: tuple[Ints, Ints] = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class CountResult:
    """T*(k) between two proven bounds (µs, no delay): the sizes x behind the upper, p the lower."""

    k: int
    lower_us: float
    upper_us: float
    x: Floats
    p: Floats


def solve_count(
    lines: LineProblem, k: int, deadline: Deadline, *, close: float = CLOSE
) -> CountResult:
    """Solve for exactly k fragments; never raises for a solver's failure, only widens the gap."""
    if k == 1:
        return single_fragment(lines)
    if lines.n == 1 or lines.free_bytes(k) <= 0.0:
        return equal_sizes(lines, k)
    return _search(lines, k, deadline, close)


def _search(lines: LineProblem, k: int, deadline: Deadline, close: float) -> CountResult:
    best = equal_sizes(lines, k)
    rows = NO_ROWS
    attempt = 0
    while attempt < len(PARAMETER_SETS) and not deadline.passed:
        found = run_glop(reduced_dual(lines, k, rows), PARAMETER_SETS[attempt], deadline)
        if found is None:
            attempt += 1
            continue
        p, shares = found[0][: (k - 1) * lines.n].reshape(k - 1, lines.n), found[1][:k]
        best = _better(lines, best, p, shares)
        if best.upper_us - best.lower_us <= close * best.upper_us:
            break
        grown = with_violated(rows, p)
        if len(grown[0]) == len(rows[0]):
            attempt += 1
        rows = grown
    return best


def run_glop(
    model: SparseModel, parameters: str, deadline: Deadline
) -> tuple[Floats, Floats] | None:
    """Return variable values and row multipliers, or None where the solver ended without any."""
    from ortools.linear_solver.python import model_builder_helper as helper

    builder: Any = helper.ModelBuilderHelper()  # its stub has a wrong type for the arrays
    builder.fill_model_from_sparse_data(
        model.low, model.high, model.cost, model.row_low, model.row_high, model.matrix
    )
    solver = helper.ModelSolverHelper("glop")
    # A basis that cycles is met by the next parameter set, not by the deadline.
    iterations = 1000 + 100 * model.matrix.shape[0]
    solver.set_solver_specific_parameters(f"{parameters} max_number_of_iterations:{iterations}")
    solver.set_time_limit_in_seconds(max(1e-3, deadline.remaining_s))
    solver.solve(builder)
    if not solver.has_solution():
        return None
    values, multipliers = np.array(solver.variable_values()), np.array(solver.dual_values())
    if not len(multipliers) or not (np.isfinite(values).all() and np.isfinite(multipliers).all()):
        return None
    return values, np.abs(multipliers)


def _better(lines: LineProblem, best: CountResult, p: Floats, shares: Floats) -> CountResult:
    """The tighter of what is known and of what this solve gives, side by side."""
    dual = repaired(p)
    lower = value_us(lines, dual)
    x = _sizes(lines, shares)
    upper = lines.latency_us(x)
    if lower <= best.lower_us:
        lower, dual = best.lower_us, best.p
    if upper >= best.upper_us:
        upper, x = best.upper_us, best.x
    return CountResult(best.k, lower, upper, x, dual)


def _sizes(lines: LineProblem, shares: Floats) -> Floats:
    """Feasible sizes from multipliers: in [m, M], with the sum B."""
    k = len(shares)
    return lines.m + spread_shares(shares, lines.free_bytes(k), np.full(k, lines.M - lines.m))


def spread_shares(shares: Floats, total: float, maximum: Floats) -> Floats:
    """Return amounts in proportion to the shares, none above its greatest, that sum to the
    total.
    """
    k, given = len(shares), float(shares.sum())
    y = shares * (total / given) if given > 0.0 else np.full(k, total / k)
    for _ in range(k):
        over = y > maximum
        if not over.any():
            break
        excess, open_ = float((y - maximum)[over].sum()), ~over & (y < maximum)
        y[over] = maximum[over]
        if not open_.any():
            break
        y[open_] += excess / int(open_.sum())
    return y


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


def single_fragment(lines: LineProblem) -> CountResult:
    """Return the message in one fragment."""
    x = np.array([lines.B])
    latency = float(lines.g.sum() + lines.B * lines.G.sum())
    return CountResult(1, latency, latency, x, np.zeros((0, lines.n)))


def equal_sizes(lines: LineProblem, k: int) -> CountResult:
    """Return equal sizes, and the bound of the stage that is slowest at that size (p = e_b)."""
    x = np.full(k, lines.B / k)
    p = np.zeros((k - 1, lines.n))
    p[:, int(np.argmax(lines.g + lines.G * (lines.B / k)))] = 1.0
    return CountResult(k, value_us(lines, p), lines.latency_us(x), x, p)


class _Ramp:
    """Sizes that grow from the least one, each such that the slowest stage has the fragment when it
    has done the one before: g, G of the stages from one end of the pipeline to it, inclusive.
    """

    def __init__(self, g: Floats, G: Floats, minimum: float) -> None:
        self._g, self._G, self._minimum = g.tolist(), G.tolist(), minimum
        self._leaves = [0.0] * len(g)
        self._next = minimum if len(g) > 1 else np.inf
        self.sizes: list[float] = []

    def extend(self, size: float, most: int) -> bool:
        """Add fragments below this size; return whether they grew to it, and are few enough."""
        while self._next < size:
            here = self._next
            if len(self.sizes) >= most or here < self._minimum:
                return False
            self._add(here)
            if not self._next > here:
                return False
        return True

    def _add(self, size: float) -> None:
        ready = 0.0
        for c, (g, G) in enumerate(zip(self._g, self._G, strict=True)):
            ready = self._leaves[c] = max(ready, self._leaves[c]) + (g + G * size)
        self.sizes.append(size)
        self._next = self._largest()

    def _largest(self) -> float:
        size, overhead, cost = np.inf, 0.0, 0.0
        for c in range(len(self._g) - 2, -1, -1):
            overhead += self._g[c]
            cost += self._G[c]
            room = self._leaves[-1] - self._leaves[c] - overhead
            size = min(size, room / cost if cost > 0.0 else -1.0 if room < 0.0 else np.inf)
        return size - min(_SPARE, 0.5 * (size - self._minimum))


def never_idle(lines: LineProblem, k: int) -> CountResult | None:
    """Return sizes with which the slowest stage is never idle, and its bound on k >= 2 fragments.

    None where the fragments are too few to grow to the size in the middle, or too large. What the
    sizes are worth is said by the two bounds (docs/theory.md sec. 14).
    """
    g, G = lines.g, lines.G
    b = int(np.argmax((k - 1) * g + G * (lines.B - lines.m)))
    before = _Ramp(g[: b + 1], G[: b + 1], lines.m)
    behind = _Ramp(g[b:][::-1], G[b:][::-1], lines.m)
    size, count = lines.B / k, -1
    while count != len(before.sizes) + len(behind.sizes):
        count = len(before.sizes) + len(behind.sizes)
        if not before.extend(size, k - 1 - len(behind.sizes)):
            return None
        if not behind.extend(size, k - 1 - len(before.sizes)):
            return None
        rest = k - len(before.sizes) - len(behind.sizes)
        size = (lines.B - sum(before.sizes) - sum(behind.sizes)) / rest
    if size > lines.M:
        return None
    x = np.concatenate([before.sizes, np.full(rest, size), behind.sizes[::-1]])
    p = np.zeros((k - 1, lines.n))
    p[:, b] = 1.0
    latency_us = lines.latency_us(x)  # where the two meet, either may be the greater by rounding
    return CountResult(k, min(value_us(lines, p), latency_us), latency_us, x, p)
