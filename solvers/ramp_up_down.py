"""Three stages, the middle one slow: sizes grow up to a crest and shrink behind it.

Source    Wang98 sec. 4.2; theory.md sec. 3.
Notation  g, G: (3,) µs and µs/byte; c: size of the crest; L_0 = c, L_1, ...: sizes before
          it, going backwards; R_0 = c, R_1, ...: sizes behind it; k1, k2: how many of each, the
          crest in both, so that k1 + k2 = k + 1 (Wang98 prints k, counting the crest twice).
Cost      O(K^2) vectorised, K the greatest count that could still win.
Exact     at the best k where the middle stage is slowest at every size and no limit binds: then the
          middle stage never waits and the search over all k1 + k2 = k + 1 is complete.
Traps     both recurrences are run away from the crest, where they contract; elsewhere the sizes may
          grow, which the limits on both ends catch, and the cut is a heuristic.

G_0 L_i + g_0 = G_1 L_{i+1} + g_1: a fragment is through stage 0 when the one before it is through
stage 1. G_1 R_{i+1} + g_1 = G_2 R_i + g_2: it is through stage 1 when that one is through stage 2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from domain.errors import StrategyDeclined
from domain.problem import Problem
from domain.solution import Notice, Strategy
from solvers.contract import Candidate, Deadline, SolveOptions, StrategySpec
from solvers.fixed import best_count, equal_latency_us
from solvers.line_problem import LineProblem
from solvers.rounded_best import best_rounded

Floats = NDArray[np.float64]

TRIED_CUTS = 8  # the best (k1, k2) in real sizes that are rounded to whole bytes
GREATEST_COUNT = 500  # of the search over (k1, k2); a notice says so where it cuts the search


def run(problem: Problem, options: SolveOptions, deadline: Deadline) -> Candidate:
    """The best ramp up and down. Raises StrategyDeclined where it cannot run or nothing fits."""
    lines = _lines(problem)
    limit = _greatest_count(problem, lines)
    up = _Ramp(lines, 0, limit)
    down = _Ramp(lines, 2, limit)
    with np.errstate(over="ignore", invalid="ignore"):  # a ramp that grows beyond all numbers
        crest = (lines.B - up.shifts[:, None] - down.shifts[None, :]) / (
            up.sums[:, None] + down.sums[None, :] - 1.0
        )
    first, last = up.end(crest, axis=0), down.end(crest, axis=1)
    smallest = np.minimum(np.minimum(first, last), crest)
    largest = np.maximum(np.maximum(first, last), crest)
    k = np.arange(1, limit + 1)[:, None] + np.arange(limit)[None, :]
    fits = (smallest >= lines.m) & (largest <= lines.M) & (k >= lines.k_least) & (k <= limit)
    if not fits.any():
        raise StrategyDeclined(
            "no ramp up and down satisfies the limits: its sizes leave the least or greatest size",
            field="strategy",
        )
    # While the middle stage never waits: it is busy from the first exit of stage 0 to its own last.
    first, last = np.where(fits, first, 0.0), np.where(fits, last, 0.0)
    latency = k * lines.g[1] + lines.G[0] * first + lines.G[2] * last
    order = np.argsort(np.where(fits, latency, np.inf), axis=None, kind="stable")[:TRIED_CUTS]
    chosen = [divmod(int(index), limit) for index in order]
    cuts = [
        np.concatenate([up.sizes(crest[i, j], i + 1)[::-1], down.sizes(crest[i, j], j + 1)[1:]])
        for i, j in chosen
        if fits[i, j]
    ]
    return best_rounded(problem, cuts, deadline, notices=_notices(problem, lines, limit))


class _Ramp:
    """y_i = powers_i c + offsets_i for i = 0.., away from the crest; running sums of both."""

    def __init__(self, lines: LineProblem, outer: int, length: int) -> None:
        ratio = float(lines.G[outer] / lines.G[1])
        step = float((lines.g[outer] - lines.g[1]) / lines.G[1])
        with np.errstate(over="ignore", invalid="ignore"):
            self._powers = ratio ** np.arange(float(length))
            self._offsets = np.concatenate([[0.0], step * np.cumsum(self._powers)[:-1]])
            self.sums = np.cumsum(self._powers)
            self.shifts = np.cumsum(self._offsets)

    def end(self, crest: Floats, *, axis: int) -> Floats:
        """The outermost size for each crest; `axis` is that of this ramp's length."""
        shape = (-1, 1) if axis == 0 else (1, -1)
        with np.errstate(over="ignore", invalid="ignore"):
            sizes: Floats = self._powers.reshape(shape) * crest + self._offsets.reshape(shape)
        return sizes

    def sizes(self, crest: float, count: int) -> Floats:
        """The first `count` sizes from the crest outwards."""
        out: Floats = self._powers[:count] * crest + self._offsets[:count]
        return out


def _lines(problem: Problem) -> LineProblem:
    if len(problem.pipeline) != 3:
        raise StrategyDeclined("ramp_up_down needs exactly three stages", field="strategy")
    lines = LineProblem.of(problem)
    if lines is None:
        raise StrategyDeclined("ramp_up_down needs stages of one line each", field="strategy")
    if lines.G[1] <= 0.0:
        raise StrategyDeclined(
            "ramp_up_down needs a per-byte cost in the middle stage", field="strategy"
        )
    return lines


def _greatest_count(problem: Problem, lines: LineProblem) -> int:
    """No larger k can win: it costs the middle stage k g_1 + B G_1, and equal sizes cost less."""
    reached = float(equal_latency_us(problem, np.array([best_count(problem)]))[0])
    limit = min(lines.k_greatest, GREATEST_COUNT)
    if lines.g[1] > 0.0:
        spare = reached - lines.B * lines.G[1] - lines.g[0] - lines.g[2]
        limit = min(limit, int(min(spare / lines.g[1], 1e9)) + 1)
    return max(1, limit, min(lines.k_least, lines.k_greatest))


def _notices(problem: Problem, lines: LineProblem, limit: int) -> tuple[Notice, ...]:
    limits = problem.limits
    slowest = (lines.g[1] >= lines.g).all() and (lines.G[1] >= lines.G).all()
    free = limits.min_fragment_bytes == 1 and limits.max_fragment_bytes is None
    whole = limit < GREATEST_COUNT or lines.k_greatest <= GREATEST_COUNT
    if slowest and free and whole:
        return ()
    return (
        Notice(
            "not_proven_optimal",
            "the ramp is a heuristic here: it is exact where the middle stage is slowest at every "
            f"size, no least or greatest size binds, and {GREATEST_COUNT} fragments are enough",
        ),
    )


SPEC = StrategySpec(
    name=Strategy.RAMP_UP_DOWN,
    run=run,
    needs="exactly three stages of one line each, the middle one with a per-byte cost",
    optimal_when="the middle stage is slowest at every size and no least or greatest size binds",
)
