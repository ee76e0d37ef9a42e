"""Three stages, the middle one slow: sizes grow up to a peak and shrink behind it.

Source    Wang98 sec. 4.2; theory.md sec. 3.
Notation  g, G: (3,) µs and µs/byte; c: size of the peak; L_0 = c, L_1, ...: sizes before
          it, going backwards; R_0 = c, R_1, ...: sizes behind it; k1, k2: how many of each, the
          peak in both, so that k1 + k2 = k + 1 (Wang98 prints k, counting the peak twice).
Cost      O(K1 K2) vectorised, K1 and K2 the longest ramps that the limits leave; where these are
          long a search over k by convexity, O(k) an evaluation (peaks.py).
Exact     over all k where the middle stage is slowest at every size, unless a least or greatest
          size binds: then it never waits, and the search over all k1 + k2 = k + 1 is complete.
Traps     both recurrences are run away from the peak, where they contract; elsewhere the sizes may
          grow, which the limits catch, and the cut is a heuristic.

G_0 L_i + g_0 = G_1 L_{i+1} + g_1: a fragment is through stage 0 when the one before it is through
stage 1. G_1 R_{i+1} + g_1 = G_2 R_i + g_2: it is through stage 1 when that one is through stage 2.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from domain.errors import StrategyDeclined
from domain.problem import Problem
from domain.solution import Notice, Strategy
from solvers.contract import Candidate, Deadline, SolveOptions, StrategySpec
from solvers.heuristics.peaks import search_peaks
from solvers.heuristics.ramp import best_rounded
from solvers.line_problem import LineProblem

Floats = NDArray[np.float64]

_FREE = 1e-6  # bytes: a least size so small that it binds no better cut


def run(problem: Problem, options: SolveOptions, deadline: Deadline) -> Candidate:
    """Return the best ramp up and down. Raises StrategyDeclined where it cannot run or nothing
    fits.
    """
    lines = _lines(problem)
    slowest = bool((lines.g[1] >= lines.g).all() and (lines.G[1] >= lines.G).all())
    cuts = _proven_cuts(lines, deadline) if slowest else []
    proven, cut_off = bool(cuts), False
    if not proven:
        peaks = search_peaks(lines, deadline)
        cuts, cut_off = [peaks.sizes(peak) for peak in peaks.found], peaks.cut_off
    if not cuts:
        raise StrategyDeclined(
            "no ramp up and down satisfies the limits: for every count its sizes leave "
            "min_fragment_bytes or max_fragment_bytes",
            field="strategy",
        )
    notices = () if proven else (_LIMITS_BIND if slowest else _NOT_SLOWEST,)
    candidate = best_rounded(problem, cuts, deadline, notices=notices)
    return replace(candidate, cut_off=cut_off or candidate.cut_off)


def _proven_cuts(lines: LineProblem, deadline: Deadline) -> list[Floats]:
    """The best cuts without limits on sizes, where the limits admit the best of them; else none."""
    free = replace(lines, m=min(lines.m, _FREE), M=lines.B, k_min=1)
    peaks = search_peaks(free, deadline)
    cuts = [peaks.sizes(peak) for peak in peaks.found]
    kept = [_within(lines, sizes) for sizes in cuts]
    if peaks.cut_off or not kept or not kept[0]:
        return []
    return [sizes for sizes, keeps in zip(cuts, kept, strict=True) if keeps]


def _within(lines: LineProblem, sizes: Floats) -> bool:
    inside = lines.m <= sizes.min() and sizes.max() <= lines.M
    return bool(inside and len(sizes) >= lines.k_min)


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


_LIMITS_BIND = Notice(
    "not_proven_optimal",
    "the ramp is a heuristic here: the best sizes would leave the least or the greatest fragment "
    "size, and with a count that was skipped a cut that is no ramp may be better",
)
_NOT_SLOWEST = Notice(
    "not_proven_optimal",
    "the ramp is a heuristic here: it is exact where the middle stage has the greatest overhead "
    "and the greatest per-byte cost",
)

SPEC = StrategySpec(
    name=Strategy.RAMP_UP_DOWN,
    run=run,
    needs="exactly three stages of one line each, the middle one with a per-byte cost",
    optimal_when="the middle stage is slowest at every size and no least or greatest size binds",
)
