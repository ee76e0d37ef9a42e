"""Lower bounds from the reduced dual: repair, value, and the neighbours in k.

Source    results sec. 1 (reduced dual, safe bound) and sec. 2 (stretch and squeeze).
Notation  n stages, k fragments; p: (k-1, n), row i the distribution of the stage in which a path
          steps from fragment i to fragment i+1; Q = running sum of G, Q- = Q - G; w: (k,) µs/byte,
          the path weight of each fragment's bytes; lambda: the marginal weight, dT*/dB.
Cost      O(k n).
Exact     any p, repaired, is a feasible dual: its value is a lower bound whatever the solver did.
Traps     the order between the rows of p (running sums never rise along i) must hold exactly, or
          the mixture of lattice paths does not exist and the value is no bound.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from solvers.kernels import active
from solvers.kernels.native_dual import MAX_STAGES
from solvers.line_problem import LineProblem

Floats = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)


def repaired(p: Floats) -> Floats:
    """Return the nearest admissible rows: clipped, normalised, in order (results sec. 1).

    Here and below, C and NumPy give the same but for rounding.
    """
    if active.NATIVE is not None and p.shape[1] <= MAX_STAGES:
        return active.NATIVE.dual.repaired(p)
    p = np.clip(np.nan_to_num(p), 0.0, None)
    total = p.sum(axis=1, keepdims=True)
    p = np.where(total > 0.0, p / np.where(total > 0.0, total, 1.0), 1.0 / p.shape[1])
    running = np.minimum.accumulate(np.minimum(np.cumsum(p, axis=1), 1.0), axis=0)
    running[:, -1] = 1.0
    return np.diff(running, axis=1, prepend=0.0)


def weights(lines: LineProblem, p: Floats) -> Floats:
    """Return w (k,): Q.p_{i+1} - Q-.p_i for each fragment i, with p_0 = e_0 and p_k = e_{n-1}."""
    Q = np.cumsum(lines.G)
    lead = np.append(p @ Q, Q[-1])
    trail = np.append(0.0, p @ (Q - lines.G))
    w: Floats = lead - trail
    return w


def value_us(lines: LineProblem, p: Floats) -> float:
    """Return the proven lower bound on T*(k), k = len(p) + 1, for repaired p; floating-point error
    deducted.

    The mixture of paths gives T >= const + w.x for every cut x, so the bound is the least value of
    w.x over sizes in [m, M] that sum to B: a fractional knapsack.
    """
    if active.NATIVE is not None:
        return active.NATIVE.dual.value_us(lines.native, p)
    k = len(p) + 1
    w = weights(lines, p)
    overheads = float(lines.g.sum() + (p @ lines.g).sum())
    minimum = lines.m * float(w.sum())
    rest = _knapsack(np.sort(w), lines.free_bytes(k), lines.M - lines.m)
    # Each of the O(k n) products is exact to 2 eps and NumPy sums pairwise, so this is generous.
    error = 32.0 * _EPS * (overheads + lines.B * float(lines.G.sum()))
    return overheads + minimum + rest - error


def _knapsack(ascending: Floats, amount: float, capacity: float) -> float:
    if amount <= capacity:
        return float(ascending[0]) * amount
    filled = np.minimum(capacity * np.arange(1, len(ascending) + 1), amount)
    return float(np.diff(filled, prepend=0.0) @ ascending)


def drift(n: int, k: int) -> Floats:
    """Return the rows (k-1, n) that move evenly from the first stage to the last.

    With G_0 = G_{n-1} every fragment's weight is then G_0 + (sum of the other G) / k
    (docs/theory.md sec. 14): the optimum where these two stages are the slowest.
    """
    rows = np.zeros((k - 1, n))
    rows[:, -1] = np.arange(1, k) / k
    rows[:, 0] += 1.0 - rows[:, -1]
    return rows


def marginal_us(lines: LineProblem, p: Floats) -> float:
    """Return lambda: the weight of the fragment that takes the last byte of the knapsack."""
    ascending = np.sort(weights(lines, p))
    spread = lines.M - lines.m
    free = lines.free_bytes(len(p) + 1)
    if spread <= 0.0 or free <= spread:
        return float(ascending[0])
    return float(ascending[min(len(ascending) - 1, int(np.ceil(free / spread)) - 1)])


def bound_above(lines: LineProblem, p: Floats) -> float:
    """Return the proven lower bound on T*(k+1) from a dual for k >= 2 (results sec. 2, stretch)."""
    if active.NATIVE is not None:
        return active.NATIVE.dual.bound_above(lines.native, p)
    step, price = p @ lines.G, marginal_us(lines, p)
    alpha = step_weights(price - step)
    candidates = [stretched(p, alpha)] if alpha is not None else []
    if alpha is None:
        slow = np.flatnonzero(step >= price)
        best = slow[int(np.argmax((p @ lines.g)[slow]))]
        candidates = [np.insert(p, best, p[best], axis=0)]
    return max(value_us(lines, repaired(q)) for q in candidates)


def bound_below(lines: LineProblem, p: Floats) -> float:
    """Return the proven lower bound on T*(k-1) from a dual for k >= 3 (results sec. 2, squeeze)."""
    if active.NATIVE is not None:
        return active.NATIVE.dual.bound_below(lines.native, p)
    step, price = p @ lines.G, marginal_us(lines, p)
    alpha = step_weights(price - step)
    if alpha is not None:
        b = np.cumsum(alpha)[:-1, None]
        mixed = b * p[1:] + (1.0 - b) * p[:-1]
        return value_us(lines, repaired(mixed))
    slow = np.flatnonzero(step >= price)
    best = slow[int(np.argmin((p @ lines.g)[slow]))]
    return value_us(lines, np.delete(p, best, axis=0))


def step_weights(slack: Floats) -> Floats | None:
    """Return alpha_i proportional to 1 / (lambda - G.p_i), or None in case (ii) of the theorem."""
    if (slack <= 0.0).any():
        return None
    inverse = slack.min() / slack
    alpha: Floats = inverse / inverse.sum()
    return alpha


def stretched(p: Floats, alpha: Floats) -> Floats:
    """Return q_i = a_i p_{i-1} + (1 - a_i) p_i for i = 1..k, a_i the sum of alpha before i."""
    a = np.append(0.0, np.cumsum(alpha))[:, None]
    a[-1] = 1.0
    before = np.vstack([p[:1], p])
    after = np.vstack([p, p[-1:]])
    out: Floats = a * before + (1.0 - a) * after
    return out
