"""From the sizes of a relaxation to cuts near them that pay little more than it says.

Source    own derivation; docs/theory.md sec. 7.
Notation  x: (k,) relaxed sizes, bytes; phi_j: minorants; g: group of a node's fragments.
Cost      O(k n).
Exact     no: the cut is near, and is evaluated by whoever asks.
Traps     between two ends of ranges a minorant may lie far below the cost: sizes of the relaxed
          optimum that lie there are rounded to the ends, so that their mean stays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from domain.problem import Problem
from solvers.exact.convex_problem import ConvexProblem
from solvers.kernels import stage_times_us
from solvers.ranges.nodes import Relaxed
from solvers.rounding import nearest_cut

Floats = NDArray[np.float64]

_ABOVE = 1.0 + 1e-9  # how far a cost must lie above its minorant for a size to be moved to an end


def on_vertices(problem: Problem, convex: ConvexProblem, x: Floats) -> tuple[int, ...] | None:
    """Return a whole-byte cut near relaxed sizes x that pays little more than the minorants say.

    Where some stage costs more than its minorant, the size goes to an end of the minorant's piece
    there, and the bytes that this moves are carried on to the next fragments.
    """
    above = stage_times_us(problem.pipeline, x) - convex.times_us(x) * _ABOVE
    worst, carry, out = np.argmax(above, axis=1), 0.0, x.copy()
    for i in range(len(x)):
        if above[i, worst[i]] <= 0.0:
            continue
        out[i] = _end_near(problem, convex, int(worst[i]), float(x[i]), x[i] + carry)
        carry += float(x[i] - out[i])
    kept = above.max(axis=1) <= 0.0
    if kept.any():
        out[kept] = np.maximum(convex.m, out[kept] + carry / int(kept.sum()))
    whole = nearest_cut(problem, out * (convex.B / out.sum()) if not kept.any() else out)
    return None if whole is None else tuple(int(size) for size in whole)


def _end_near(
    problem: Problem, convex: ConvexProblem, stage: int, size: float, wanted: float
) -> float:
    """The end of the minorant's piece around this size that is nearer to the size wanted."""
    at = convex.hulls[stage][:, 0]
    right = min(len(at) - 1, max(1, int(np.searchsorted(at, size))))
    ends = []
    for vertex in (right - 1, right):
        true_us = problem.pipeline.stages[stage].time_us(float(at[vertex]))
        # A vertex that is the limit from the range behind it is reached one byte further on.
        beyond = true_us > convex.hulls[stage][vertex, 1] * _ABOVE
        ends.append(min(convex.M, float(at[vertex]) + beyond))
    return float(min(ends, key=lambda end: abs(end - wanted)))


def in_whole_numbers(found: Relaxed, at: Floats, message_bytes: int) -> list[Floats]:
    """Return sizes with whole numbers of fragments in each group of a node, scaled to the message.

    Those of a group one size (of `at`, bytes) after the other, and all of its sizes spread evenly.
    """
    cuts = []
    for is_spread in (False, True):
        parts = [found.x[:1]]
        for g, number in enumerate(found.in_groups):
            whole = np.rint(number).astype(np.int64)
            sizes = np.repeat(at, whole)
            if is_spread:
                places = [(np.arange(count) + 0.5) / count for count in whole if count]
                sizes = sizes[np.argsort(np.concatenate([[], *places]), kind="stable")]
            parts += [sizes, found.x[g + 1 : g + 2]]
        x = np.concatenate(parts)
        cuts.append(x * (message_bytes / x.sum()))
    return cuts
