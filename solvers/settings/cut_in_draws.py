"""The cut of least worst regret over draws of the costs.

Source    docs/theory.md, "A cut for uncertain costs".
Notation  d draws; k fragments; n stages; x: (k,) real sizes, bytes; g, G: (d, n), µs and µs/byte.
Cost      at most _MOST_SOLVES linear programs over the paths seen so far.
Exact     `lower_bound` is proven for any k real sizes; `worst_regret` is that of these ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from solvers.contract import Deadline
from solvers.exact.lp.glop import PARAMETER_SETS, SparseModel, run_glop, sparse_matrix
from solvers.exact.structured import solve_count
from solvers.line_problem import LineProblem

Floats = NDArray[np.float64]

_MOST_SOLVES = 100
_WORST_DRAWS = 12  # whose longest paths are added in each step
_FIRST_RADIUS = 0.3  # of the mean size: how far a size may move in the first step
_TAKEN = 0.1  # of the decrease that a step promises: with less it is not taken
_WIDENED = 0.5  # with more the next may be twice as far


@dataclass(frozen=True, slots=True, eq=False)
class LinesInDraws:
    """Stages that are lines, in d draws: g, G (d, n) in µs and µs/byte, and what is to be reached.

    `best_us` (d,) is what regret is measured from, > 0; `delay_us` the delay in all draws. `B` is
    the message, `m` and `M` the least and the greatest size, bytes.
    """

    g: Floats
    G: Floats
    best_us: Floats
    delay_us: float
    B: float
    m: float
    M: float

    @classmethod
    def of(
        cls,
        lines: LineProblem,
        overhead_us: Floats,
        ns_per_byte: Floats,
        best_us: Floats,
        delay_us: float,
    ) -> LinesInDraws:
        """Return the same problem with the costs of each draw, (d, n)."""
        limits = (lines.B, lines.m, lines.M)
        return cls(overhead_us, ns_per_byte / 1000.0, best_us, delay_us, *limits)

    def regrets(self, x: Floats) -> Floats:
        """Return T/T* - 1 of sizes x (k,) in each draw, (d,)."""
        return self.paths(x)[0]

    def paths(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the regrets (d,), and of each draw's longest path the constant (d,) and the
        weight of each fragment's bytes (d, k), both as shares of T*.
        """
        d, n = self.g.shape
        k = len(x)
        left = np.zeros((n, d))  # when each stage is free
        from_before = np.zeros((k, n, d), dtype=bool)  # from the stage before, not the fragment
        for i in range(k):
            ahead = np.full(d, -np.inf) if i else np.zeros(d)
            for j in range(n):
                begins = np.maximum(ahead, left[j]) if i or j else ahead
                from_before[i, j] = ahead >= left[j] if i else j > 0
                ahead = left[j] = begins + self.g[:, j] + self.G[:, j] * x[i]
        constant = np.full(d, self.delay_us)
        weight = np.zeros((d, k))
        draws, at, stage = np.arange(d), np.full(d, k - 1), np.full(d, n - 1)
        for _ in range(k + n - 1):
            constant += self.g[draws, stage]
            weight[draws, at] += self.G[draws, stage]
            is_from_before = from_before[at, stage, draws]
            at, stage = at - ~is_from_before, stage - is_from_before
        scale = self.best_us
        return (left[-1] + self.delay_us) / scale - 1.0, constant / scale, weight / scale[:, None]


def best_cuts_us(
    lines: LineProblem, overhead_us: Floats, ns_per_byte: Floats, count: int
) -> Floats:
    """Return the latency in µs, without delay, of the best `count` real sizes in each draw, (d,).

    The costs are (d, n). Each is attained, and above its bound by 1e-9 of itself at most where the
    solve succeeds.
    """
    never = Deadline(float("inf"))
    drawn = zip(overhead_us, ns_per_byte / 1000.0, strict=True)
    found = (solve_count(replace(lines, g=g, G=G), count, never) for g, G in drawn)
    return np.array([one.upper_us for one in found])


@dataclass(frozen=True, slots=True, eq=False)
class CutInDraws:
    """Real sizes x (k,), their worst regret, and a proven lower bound on that of any k sizes."""

    x: Floats
    worst_regret: float
    lower_bound: float


def min_worst_regret(
    lines: LinesInDraws, start: Floats, deadline: Deadline, *, close: float = 1e-4
) -> CutInDraws:
    """Return the cut into len(start) fragments whose worst regret over the draws is least.

    A linear program over the longest paths seen so far, within a trust region about the best sizes
    so far, which it is kept within as long as its promises fail. Ends where the bound is `close`
    (absolute), at the deadline or after a hundred programs; the distance left is that of the two.
    """
    k = len(start)
    best, (regret, constant, weight) = start, lines.paths(start)
    worst = float(regret.max())
    rows = _Rows(weight[:0], constant[:0]).grown(regret, constant, weight)
    bound, radius = -1.0, _FIRST_RADIUS * lines.B / k
    for _ in range(_MOST_SOLVES):
        if worst - bound <= close or deadline.passed:
            break
        step = rows.solve(lines, best, radius, deadline)
        if step is None:
            break
        x, promised, shares = step
        bound = max(bound, rows.bound(lines, shares))
        regret, constant, weight = lines.paths(x)
        rows = rows.grown(regret, constant, weight)
        gained, expected = worst - float(regret.max()), worst - promised
        radius *= (
            2.0 if gained > _WIDENED * expected else 1.0 if gained > _TAKEN * expected else 0.5
        )
        if gained > 0.0:
            best, worst = x, worst - gained
        if expected <= close / 10.0:  # nothing near is better, so nothing is: widen for the bound
            radius = lines.B
    return CutInDraws(best, worst, min(bound, worst))


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Paths seen: regret >= constant + weight . x - 1 for all x, each of one draw."""

    weight: Floats
    constant: Floats

    def grown(self, regret: Floats, constant: Floats, weight: Floats) -> _Rows:
        """The same with the longest paths of the draws of most regret."""
        worst = np.argsort(-regret, kind="stable")[:_WORST_DRAWS]
        return _Rows(
            np.vstack([self.weight, weight[worst]]), np.append(self.constant, constant[worst])
        )

    def solve(
        self, lines: LinesInDraws, centre: Floats, radius: float, deadline: Deadline
    ) -> tuple[Floats, float, Floats] | None:
        """The best sizes near the centre, their regret by these paths, and the paths' multipliers.

        Sizes are in units of the mean one. None where the solver fails.
        """
        k, count = len(centre), len(self.constant)
        unit = lines.B / k
        low = np.maximum(centre - radius, lines.m) / unit
        high = np.minimum(centre + radius, lines.M) / unit
        rows, columns = np.indices((count, k))
        matrix = sparse_matrix(
            np.concatenate([(self.weight * unit).ravel(), np.full(count, -1.0), np.ones(k)]),
            np.concatenate([rows.ravel(), np.arange(count), np.full(k, count)]),
            np.concatenate([columns.ravel(), np.full(count, k), np.arange(k)]),
            shape=(count + 1, k + 1),
        )
        model = SparseModel(
            cost=np.append(np.zeros(k), 1.0),
            low=np.append(low, -np.inf),
            high=np.append(high, np.inf),
            row_low=np.append(np.full(count, -np.inf), float(k)),
            row_high=np.append(1.0 - self.constant, float(k)),
            matrix=matrix,
        )
        found = run_glop(model, PARAMETER_SETS[0], deadline)
        if found is None:
            return None
        values, multipliers = found
        x = np.clip(values[:k] * unit, lines.m, lines.M)
        free = x - lines.m if x.sum() > lines.B else lines.M - x
        x = x + (lines.B - x.sum()) * free / (free.sum() or 1.0)
        return x, float(values[k]), multipliers[:count]

    def bound(self, lines: LinesInDraws, multipliers: Floats) -> float:
        """The worst regret that no sizes are below: the paths weighted by any shares, and of that
        sum the least over sizes in [m, M], a fractional knapsack.
        """
        total = float(multipliers.sum())
        if not total > 0.0:
            return -1.0
        shares = multipliers / total
        w = np.sort(shares @ self.weight)
        k = len(w)
        filled = np.clip(
            lines.B - k * lines.m - (lines.M - lines.m) * np.arange(k), 0.0, lines.M - lines.m
        )
        value = float(shares @ self.constant) + lines.m * float(w.sum()) + float(filled @ w)
        return value * (1.0 - 1e-12) - 1.0  # what the sums may be wrong by
