"""A cut of items made better by moving its ends, one after the other.

Source    the descent of every local search; what it is worth is said by the evaluator.
Notation  an end: the number of items up to the end of a fragment.
Cost      a latency for each move that is tried, at most `_MOST` of them.
Exact     no: no single end can be moved by these steps, or left out, with a gain.
Traps     moves that the limits forbid are not tried.
"""

from __future__ import annotations

from collections.abc import Iterator

from domain.items import ItemCut, ItemProblem
from solvers.contract import Deadline
from solvers.items.arrays import arrays_of, item_kernels

_STEPS = (1, -1, 2, -2, 5, -5)
_MOST = 4000  # latencies, some tenths of a second
_GAIN = 1e-12  # relative


def improved(problem: ItemProblem, cut: ItemCut, deadline: Deadline) -> ItemCut:
    """Return this cut, or a better one that single moves of ends lead to."""
    arrays, kernels = arrays_of(problem), item_kernels()
    best_us, tried, is_better = kernels.latency_us(arrays, cut), 0, True
    while is_better and tried < _MOST and not deadline.passed:
        is_better, place = False, 0
        while place < len(cut) - 1 and tried < _MOST and not deadline.passed:
            for other in _moves(problem, cut, place):
                tried += 1
                latency_us = kernels.latency_us(arrays, other, best_us)
                if latency_us < best_us * (1.0 - _GAIN):
                    cut, best_us, is_better = other, latency_us, True
                    break
            else:
                place += 1
    return cut


def _moves(problem: ItemProblem, cut: ItemCut, place: int) -> Iterator[ItemCut]:
    """This end left out, and elsewhere between its neighbours."""
    before, behind = cut[place - 1] if place else 0, cut[place + 1]
    if behind <= problem.longest_from(before):
        yield cut[:place] + cut[place + 1 :]
    for step in _STEPS:
        end = cut[place] + step
        is_inside = before < end < behind and end <= problem.longest_from(before)
        if is_inside and behind <= problem.longest_from(end):
            yield (*cut[:place], end, *cut[place + 1 :])
