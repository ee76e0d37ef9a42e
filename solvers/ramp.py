"""Two stages: sizes that grow or shrink so that the second stage never waits.

Source    Wang98 sec. 4.1; theory.md sec. 3.
Notation  g, G: (2,) µs and µs/byte; k fragments; y: sizes from the large end of the ramp backwards
          or forwards, whichever contracts; y_{i+1} = a y_i + b with 0 <= a <= 1.
Cost      O(k_max) vectorised over every k at once.
Exact     at the best k, where no limit but the whole byte binds (it equals the linear program).
Traps     G_1 > G_0 makes the forward recurrence grow and amplify rounding, so the reversed pipeline
          is used and the cut turned round; a near 1 is summed term by term, without (1 - a) in a
          denominator; a^k cannot overflow because a <= 1; both G = 0 leaves no ramp at all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from domain.errors import StrategyDeclined
from domain.problem import Problem
from domain.solution import Notice, Strategy
from solvers.contract import Candidate, Deadline, SolveOptions, StrategySpec
from solvers.line_problem import LineProblem
from solvers.rounded_best import best_rounded

Floats = NDArray[np.float64]

TRIED_COUNTS = 8  # the best counts in real sizes that are rounded to whole bytes


def run(problem: Problem, options: SolveOptions, deadline: Deadline) -> Candidate:
    """The best ramp over every admitted k. Raises StrategyDeclined where there is none."""
    lines = _lines(problem)
    ratio, step, backwards = _contracting(lines)
    k = np.arange(1, lines.k_greatest + 1)
    powers = ratio ** (k - 1.0)
    shift = np.concatenate([[0.0], step * np.cumsum(powers)[:-1]])  # y_i = powers y_0 + shift
    start = (lines.B - np.cumsum(shift)) / np.cumsum(powers)
    end = powers * start + shift
    fits = (np.minimum(start, end) >= lines.m) & (np.maximum(start, end) <= lines.M)
    fits &= k >= lines.k_least
    if not fits.any():
        raise StrategyDeclined(
            "no ramp satisfies the limits: its sizes leave the least or the greatest size",
            field="strategy",
        )
    # The slow end of the ramp touches only its own stage: T = t_other(y_0 or y_last) + sum t_slow.
    lead = end if backwards else start
    latency = lines.g[0] + lines.G[0] * lead + k * lines.g[1] + lines.B * lines.G[1]
    order = np.argsort(np.where(fits, latency, np.inf), kind="stable")[:TRIED_COUNTS]
    cuts = [
        _sizes(powers[: index + 1] * start[index] + shift[: index + 1], backwards=backwards)
        for index in order
        if fits[index]
    ]
    return best_rounded(problem, cuts, deadline, notices=_notices(problem))


def _lines(problem: Problem) -> LineProblem:
    if len(problem.pipeline) != 2:
        raise StrategyDeclined("ramp needs exactly two stages", field="strategy")
    lines = LineProblem.of(problem)
    if lines is None:
        raise StrategyDeclined("ramp needs stages of one line each", field="strategy")
    if not lines.G.any():
        raise StrategyDeclined(
            "ramp needs a per-byte cost in one of its stages; without any, one fragment is best",
            field="strategy",
        )
    return lines


def _contracting(lines: LineProblem) -> tuple[float, float, bool]:
    """(a, b, backwards): the recurrence in the direction in which a <= 1.

    Forwards G_0 x_{i+1} + g_0 = G_1 x_i + g_1: a fragment is through stage 0 when the one before
    it is through stage 1 (Wang98 sec. 4.1).
    """
    (g0, g1), (G0, G1) = lines.g, lines.G
    if G1 <= G0:
        return float(G1 / G0), float((g1 - g0) / G0), False
    return float(G0 / G1), float((g0 - g1) / G1), True


def _sizes(y: Floats, *, backwards: bool) -> Floats:
    return y[::-1] if backwards else y


def _notices(problem: Problem) -> tuple[Notice, ...]:
    limits = problem.limits
    if limits.min_fragment_bytes == 1 and limits.max_fragment_bytes is None:
        return ()
    return (
        Notice(
            "not_proven_optimal",
            "a least or greatest fragment size is set: counts whose ramp leaves it were skipped, "
            "and the ramp is a heuristic",
        ),
    )


SPEC = StrategySpec(
    name=Strategy.RAMP,
    run=run,
    needs="exactly two stages of one line each, not both free of per-byte cost",
    optimal_when="always for two stages, at the best count, where no least or greatest size binds",
)
