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

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from solvers.kernels import active
from solvers.kernels.native_dual import MAX_STAGES
from solvers.line_problem import LineProblem

if TYPE_CHECKING:
    import scipy.sparse as sp

Floats = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_TIGHT_BYTES = 1e-5  # of the greatest G: byte rows above lambda by less hold with equality
_TIGHT_ORDER = 1e-7  # the same of the order rows
_BLUNT = 1e-10  # relative
_CUT = 1e-7  # weights of cells below which they are nothing, where one is tried
_REGULAR = 1e-13  # of each diagonal entry: rows may follow from one another
_REFINEMENTS = 4


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


def restored(lines: LineProblem, p: Floats, k: int, cut: float = 0.0) -> Floats:
    """Return admissible rows for a cut into k fragments, no byte row of which is below that of p.

    Weights below the cut are left out. What is out of order is moved to b, the slowest stage: of
    the sums of stages before b forwards, of what is not yet at b and the stages behind it
    backwards. No proof: what they are worth is said by their value (docs/theory.md sec. 14).
    """
    if active.NATIVE is not None and lines.n <= MAX_STAGES:
        return active.NATIVE.dual.restored(lines.native, k, p, cut)
    b, G = int(np.argmax(lines.g + lines.G * (lines.B / k))), lines.G
    p = np.clip(np.nan_to_num(p), 0.0, None)
    total, kept = p.sum(axis=1, keepdims=True), np.where(p < cut, 0.0, p)
    p = np.where(total > 0.0, p / np.where(total > 0.0, total, 1.0), np.eye(lines.n)[0])
    whole = kept.sum(axis=1, keepdims=True)
    kept = np.where(whole > 0.0, kept / np.where(whole > 0.0, whole, 1.0), p)
    sums, without = np.cumsum(p, axis=1)[:, :-1], np.cumsum(kept, axis=1)[:, :-1]
    before = _followed(sums[:, :b], without[:, :b], G[1 : b + 1], G[:b])
    behind = _followed(1.0 - sums[::-1, b:], 1.0 - without[::-1, b:], G[b:-1], G[b + 1 :])
    running = np.concatenate([before, 1.0 - behind[::-1], np.ones((len(p), 1))], axis=1)
    return repaired(np.diff(running, axis=1, prepend=0.0))


def _followed(sums: Floats, without: Floats, cost: Floats, ahead: Floats) -> Floats:
    """Rows that fall, each at most those given and by one factor less, so that what a byte row has
    of a row and the one before it, ahead.before - cost.here, is not less than in `sums`.
    """
    ones = np.ones((1, sums.shape[1]))
    had = np.concatenate([ones, sums[:-1]]) @ ahead - sums @ cost
    wanted, now = np.minimum(sums, without), ones[0]
    out = np.empty(sums.shape)
    for t, lacking in enumerate(had.tolist()):
        limit = float(now @ ahead) - lacking
        now = np.minimum(wanted[t], now)
        amount = float(now @ cost)
        if amount > limit:
            now = now * (limit / amount if limit > 0.0 else 0.0)
        out[t] = now
    return out


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


def capped_value_us(lines: LineProblem, p: Floats, known_us: float) -> float:
    """Return the same bound, not above a known latency, for cuts that could be better than that.

    These have no fragment above `largest_below`, so the knapsack is filled with less of the
    lightest ones: T*(k) >= min(known, value with that greatest size) (docs/theory.md sec. 14).
    """
    maximum = largest_below(lines, len(p) + 1, known_us)
    if maximum >= min(lines.M, lines.B):
        return value_us(lines, p)
    narrowed = replace(lines, M=max(maximum, lines.B / (len(p) + 1), lines.m))
    return max(value_us(lines, p), min(known_us, value_us(narrowed, p)))


def largest_below(lines: LineProblem, k: int, known_us: float) -> float:
    """Return the size in bytes above which no fragment of k is in a cut of this latency or less.

    The path that crosses the stages a..c with a fragment of x bytes meets the others in a or c:
    T >= sum_{a..c} (g + G x) + (k-1) min(g_a, g_c) + min(G_a, G_c) (B - x), and the ends' stages
    outside a..c at the least size.
    """
    g, G = lines.g, lines.G
    smallest = g + G * lines.m
    maximum, limit = float(lines.M), known_us * (1.0 + 1e-9)
    for a in range(lines.n):
        rest = np.minimum(G[a], G[a:])
        slope = np.cumsum(G[a:]) - rest
        outside = float(smallest.sum()) - np.cumsum(smallest[a:])
        paths = outside + np.cumsum(g[a:]) + (k - 1) * np.minimum(g[a], g[a:]) + rest * lines.B
        known = slope > 1e-12 * float(G.sum())
        if known.any():
            maximum = min(maximum, float(((limit - paths)[known] / slope[known]).min()))
    return max(maximum, 0.0)


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


def sharper(lines: LineProblem, p: Floats, proven_us: float) -> Floats:
    """Return p, or what proves more by itself, where p proves less than was proven of its count.

    A cap may have proven the rest; what follows for other counts knows of none.
    """
    best, worth_us = p, value_us(lines, p)
    for moved in (levelled, _cut_off):
        if worth_us >= proven_us * (1.0 - _BLUNT):
            break
        rows = repaired(moved(lines, p))
        value = value_us(lines, rows)
        if value > worth_us:
            best, worth_us = rows, value
    return best


def levelled(lines: LineProblem, p: Floats) -> Floats:
    """Return rows mixed with their neighbours, so that the first and the last byte row are no lower
    than the others: by steps of which no row loses more than another (docs/theory.md sec. 14).
    """
    w, Q, steps = weights(lines, p), np.cumsum(lines.G), np.diff(p, axis=0)
    lacking = float(w[1:-1].min(initial=np.inf)) - w[[0, -1]]
    moved: Floats = p.copy()
    for lacks, costs, gain, end in (
        (lacking[0], steps[::-1] @ (Q - lines.G), steps[:1] @ Q, slice(None, None, -1)),
        (lacking[1], steps @ Q, steps[-1:] @ (Q - lines.G), slice(None)),
    ):
        if 0.0 < lacks < gain.sum():
            shares = np.cumsum(1.0 / np.maximum(costs, _REGULAR * Q[-1]))
            shares *= lacks / float(gain[0]) / shares[-1]
            moved[end][1:] -= shares[:, None] * np.diff(p[end], axis=0)
    return moved


def _cut_off(lines: LineProblem, p: Floats) -> Floats:
    return projected(lines, p, _CUT)


# ---- the projection on the tight rows -----------------------------------------------------------


def projected(lines: LineProblem, p: Floats, cut: float) -> Floats:
    """Return rows near p that meet, to the last digits, the rows of the dual that are tight.

    Least sum (dp/p)^2 such that the rows sum to 1, the byte rows that are near lambda are lambda,
    the order rows near 0 are 0, and weights below `cut` are 0. Residuals are of extended precision
    and are removed by a few substitutions with one banded factorisation; lambda is a border of it.
    No proof: what p is worth is said by `value_us` of its repair. p itself where there is none.
    """
    if active.NATIVE is not None and lines.n <= MAX_STAGES:
        return active.NATIVE.dual.projected(lines.native, p, cut)
    return _projected(lines, p, cut)


def _projected(lines: LineProblem, p: Floats, cut: float) -> Floats:
    """The same in NumPy."""
    from scipy.linalg import LinAlgError, cho_solve_banded, cholesky_banded

    near = p.astype(np.longdouble)
    near = np.where(np.isfinite(near) & (near >= cut), near, 0.0)
    totals = near.sum(axis=1, keepdims=True)
    if not (totals > 0.0).all() or not lines.G.any():
        return p
    rows = _Tight.of(lines, near / totals)
    near, price = near / totals, rows.price
    weight = np.asarray(near, dtype=np.float64).ravel() ** 2
    try:
        factor = cholesky_banded(rows.normal(weight))
    except (LinAlgError, ValueError):
        return p
    border = cho_solve_banded((factor, False), rows.border)
    for _ in range(_REFINEMENTS):
        residual = cho_solve_banded((factor, False), rows.residual(near, price))
        step = -float(rows.border @ residual) / float(rows.border @ border)
        change = weight * (rows.matrix.T @ (residual + step * border))
        near, price = near + change.reshape(near.shape), price + step
    moved: Floats = np.asarray(near, dtype=np.float64)
    return moved if np.isfinite(moved).all() else p


@dataclass(frozen=True, slots=True)
class _Tight:
    """The tight rows of the dual: a sparse matrix over all weights, sorted along the steps.

    `order` sorts [sums (k-1), byte rows, order rows]; `border` is 1 at byte rows, lambda's column.
    """

    Q: NDArray[np.longdouble]
    before: NDArray[np.longdouble]  # Q-
    bytes_at: NDArray[np.int64]
    steps: NDArray[np.int64]
    stages: NDArray[np.int64]
    order: NDArray[np.int64]
    matrix: sp.csr_matrix
    border: Floats
    price: float

    @classmethod
    def of(cls, lines: LineProblem, p: NDArray[np.longdouble]) -> _Tight:
        """Find what is tight at p, G in units of its greatest."""
        import scipy.sparse as sp

        steps, n = p.shape
        G = lines.G.astype(np.longdouble) / lines.G.max()
        Q = np.cumsum(G)
        w = _byte_rows(p, Q, Q - G)
        price = float(np.median(w))
        bytes_at = np.flatnonzero(w - price <= _TIGHT_BYTES)
        running = np.cumsum(p, axis=1)
        tight = np.abs(running[:-1, :-1] - running[1:, :-1]) < _TIGHT_ORDER
        empty = (p[:-1, :-1] == 0.0) & (p[1:, :-1] == 0.0)
        follows = np.pad(tight[:, :-1], ((0, 0), (1, 0)), constant_values=True) & empty
        at, stages = np.nonzero(tight & ~follows)
        parts = [_sums(steps, n), _bytes(bytes_at, Q, G, steps), _orders(at, stages, steps, n)]
        place = np.concatenate([2 * np.arange(steps), 2 * bytes_at - 1, 2 * at + 1])
        order = np.argsort(place, kind="stable")
        border = np.concatenate([np.zeros(steps), np.ones(len(bytes_at)), np.zeros(len(at))])
        matrix = sp.csr_matrix(sp.vstack(parts, format="csr")[order])
        return cls(Q, Q - G, bytes_at, at, stages, order, matrix, border[order], price)

    def normal(self, weight: Floats) -> Floats:
        """Upper banded storage of A diag(weight) A', a little added to its diagonal."""
        import scipy.sparse as sp

        product = sp.triu(self.matrix @ sp.diags(weight) @ self.matrix.T).tocoo()
        width = int((product.col - product.row).max(initial=0))
        bands = np.zeros((width + 1, self.matrix.shape[0]))
        bands[width - (product.col - product.row), product.col] = product.data
        bands[width] = np.maximum(bands[width] * (1.0 + _REGULAR), bands[width] + 1e-18)
        return bands

    def residual(self, p: NDArray[np.longdouble], price: float) -> Floats:
        """What the rows lack, of extended precision until the last."""
        running = np.cumsum(p, axis=1)
        lacking = np.concatenate(
            [
                1.0 - running[:, -1],
                price - _byte_rows(p, self.Q, self.before)[self.bytes_at],
                running[self.steps + 1, self.stages] - running[self.steps, self.stages],
            ]
        )
        return np.asarray(lacking[self.order], dtype=np.float64)


def _byte_rows(
    p: NDArray[np.longdouble], Q: NDArray[np.longdouble], before: NDArray[np.longdouble]
) -> NDArray[np.longdouble]:
    zero = np.zeros(1, dtype=np.longdouble)
    rows: NDArray[np.longdouble] = np.append(p @ Q, Q[-1]) - np.concatenate([zero, p @ before])
    return rows


def _sums(steps: int, n: int) -> sp.csr_matrix:
    import scipy.sparse as sp

    at = np.arange(steps * n)
    return sp.csr_matrix((np.ones(steps * n), (at // n, at)), shape=(steps, steps * n))


def _bytes(
    at: NDArray[np.int64], Q: NDArray[np.longdouble], G: NDArray[np.longdouble], steps: int
) -> sp.csr_matrix:
    """Q of step i and -Q- of step i-1 in the row of fragment i."""
    import scipy.sparse as sp

    n, row = len(Q), np.arange(len(at))
    shape = (len(at), steps * n)
    found = sp.csr_matrix(shape)
    for inside, step, values in ((at < steps, at, Q), (at > 0, at - 1, G - Q)):
        columns = step[inside][:, None] * n + np.arange(n)
        data = np.tile(np.asarray(values, dtype=np.float64), len(columns))
        rows = np.repeat(row[inside], n)
        found = found + sp.csr_matrix((data, (rows, columns.ravel())), shape=shape)
    return sp.csr_matrix(found)


def _orders(at: NDArray[np.int64], stages: NDArray[np.int64], steps: int, n: int) -> sp.csr_matrix:
    """1 at the stages up to d of step t, -1 at those of step t+1."""
    import scipy.sparse as sp

    shape = (len(at), steps * n)
    row, stage = np.nonzero(np.arange(n) <= stages[:, None])
    ones = np.ones(len(row))
    here = sp.csr_matrix((ones, (row, at[row] * n + stage)), shape=shape)
    return sp.csr_matrix(
        here - sp.csr_matrix((ones, (row, (at[row] + 1) * n + stage)), shape=shape)
    )
