"""Real sizes for a machine to whole, aligned bytes that the limits admit.

Source    docs/theory.md, "Machines".
Notation  a: alignment; k fragments.
Cost      SEARCHED_CELLS fragments times nodes at most, those of some hundred roundings first.
Exact     no: what rounding may add is at most a (sum G + (k-1) max_w sum G_w/b_w), and so grows
          with k, unlike that of a plain pipeline.
Traps     where a window of bytes binds, a fragment that is a byte greater takes a place away: some
          roundings stay within what leaves as many places as the real sizes have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from domain.machine import places_of
from domain.problem import FragmentLimits, MachineProblem
from solvers.assemble import rank_of
from solvers.contract import Deadline
from solvers.machine.costs import Costs
from solvers.rounding import OFFSETS, rounded_cuts

Floats = NDArray[np.float64]
Cut = tuple[int, ...]

SEARCHED_CELLS = 2_000_000  # that the moves from one rounding may evaluate
_GAIN = 1.0 - 1e-13  # what a move must win


def whole_cut(
    problem: MachineProblem,
    real_sizes: Floats,
    *,
    enough_us: float,
    deadline: Deadline,
    cells: int = SEARCHED_CELLS,
) -> Cut | None:
    """Return the best whole-byte cut found near these sizes, or None where the limits admit none.

    Cumulative positions are rounded with several offsets. Then units move between fragments, unless
    the best takes no more than `enough_us` (µs, without the constant delay), while that helps; the
    moves evaluate `cells` fragments times nodes at most.
    """
    costs = Costs(problem.machine)
    cuts = {cut: costs.cut_us(cut) for cut in _roundings(problem, real_sizes)}
    if not cuts:
        return None
    best = min(cuts, key=lambda cut: rank_of(cuts[cut], cut))
    best_us = cuts[best]
    each = len(best) * len(problem.machine.network)
    is_better = best_us > enough_us
    while is_better:
        is_better = False
        for moved in _moves(problem, best):
            cells -= each
            if cells < 0 or deadline.passed or best_us <= enough_us:
                return best
            moved_us = costs.cut_us(moved)
            if moved_us < best_us * _GAIN:
                best, best_us, is_better = moved, moved_us, True
                break
    return best


def _roundings(problem: MachineProblem, real_sizes: Floats) -> Iterator[Cut]:
    limits, largest = problem.limits, problem.largest_fragment_bytes
    # Where the last fragment is short, real sizes may all be less than a unit; whole ones are not.
    most = max(int(np.ceil(real_sizes.max() * (1.0 - 1e-9))), limits.alignment_bytes)
    minimum = max(problem.smallest_fragment_bytes, min(limits.alignment_bytes, largest))
    for maximum in {min(_in_places(problem, real_sizes), most), most, largest}:
        if not minimum <= maximum <= largest:
            continue
        capped = replace(
            problem,
            limits=FragmentLimits(
                limits.min_fragment_bytes, maximum, limits.alignment_bytes, limits.max_fragments
            ),
        )
        for cut in rounded_cuts(capped, real_sizes, OFFSETS):
            if cut is not None:
                yield tuple(cut.tolist())


def _in_places(problem: MachineProblem, real_sizes: Floats) -> int:
    """The greatest whole bytes of which each window holds as many as of the greatest real size."""
    windows = [one.bytes for one in problem.machine.windows if one.bytes is not None]
    maximum = float(real_sizes.max())
    places = [max(1, places_of(None, held, maximum)) for held in windows]
    caps = [held // count for held, count in zip(windows, places, strict=True)]
    return min(caps, default=problem.largest_fragment_bytes)


def _moves(problem: MachineProblem, cut: Cut) -> Iterator[Cut]:
    """Cuts with one unit moved between two fragments, neighbours first, that the limits admit."""
    unit, k = problem.limits.alignment_bytes, len(cut)
    for apart in range(1, k):
        for giver in range(k):
            for taker in (giver - apart, giver + apart):
                if not 0 <= taker < k:
                    continue
                moved = list(cut)
                moved[giver] -= unit
                moved[taker] += unit
                if moved[giver] > 0 and problem.admits(tuple(moved)):
                    yield tuple(moved)
