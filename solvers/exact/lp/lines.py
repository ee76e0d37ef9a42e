"""The optimum for k fragments where every stage is one line: the reduced dual solved by GLOP.

Source    results sec. 1; the model is in reduced_dual.py.
Notation  k fragments, n stages; p: (k-1, n); x: (k,) real sizes, bytes.
Cost      one simplex solve of 2k-1 rows for most pipelines; a few more where fragments wait in
          front of a stage at the optimum (order rows are added until none is violated).
Exact     what is returned is certified on both sides and not taken from the solver: `upper_us` is
          the latency of the sizes, `lower_us` the value of the repaired dual.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.contract import Deadline
from solvers.exact.dual import repaired, value_us
from solvers.exact.lp.glop import PARAMETER_SETS, run_glop
from solvers.exact.lp.reduced_dual import NO_ROWS, reduced_dual, with_violated
from solvers.line_problem import LineProblem

Floats = NDArray[np.float64]

CLOSE = 1e-9  # relative distance of the two bounds at which a solve is finished


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
