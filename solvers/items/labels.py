"""Cuts of items through several stages: labels, exact while none is dropped, else bounded.

Source    docs/theory.md, "Items", labels.
Notation  a label: the times at which the stages have done the first items of some cut.
Cost      labels times the ends that they are extended to; lists are as long as the width at most.
Exact     where no label was dropped and time was enough. Else no cut takes less than the smallest
          bound of all that were dropped or not looked at.
Traps     cuts that reach the target are not looked for: it is what is known already.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from domain.items import ItemCut, ItemProblem
from solvers.contract import Deadline
from solvers.items.arrays import arrays_of, item_kernels
from solvers.kernels.items import LabelBounds, LabelsFound, PlainItems

_WORK = 1_000_000  # between two looks at the clock; in C some milliseconds
_PLAIN_WORK = 20_000


class Running(Protocol):
    """A search that goes on piece by piece."""

    def advance(self, work: int) -> bool:
        """Go on for about this much work; return whether it has ended."""

    def best(self) -> LabelsFound:
        """Return the best cut that was met, and what is proven by now."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """What a search has found: a cut below the target, None without one; in µs, without the delay,
    what no admitted cut is below; how much work that was, and whether the deadline ended it.
    """

    cut: ItemCut | None
    bound_us: float
    work: int
    cut_off: bool


def search(
    problem: ItemProblem, bounds: LabelBounds, *, width: int, target_us: float, deadline: Deadline
) -> Labelled:
    """Look for a cut below the target, µs without the delay, with so many labels an item at most.
    Raises Infeasible.
    """
    kernels = item_kernels()
    arrays = arrays_of(problem)
    running: Running = kernels.labels(arrays, bounds, width=width, target_us=target_us)
    work = _PLAIN_WORK if isinstance(kernels, PlainItems) else _WORK
    has_ended = running.advance(work)
    while not has_ended and not deadline.passed:
        has_ended = running.advance(work)
    found = running.best()
    bound_us = min(found.bound_us, found.latency_us, target_us)
    return Labelled(found.ends or None, bound_us, found.work, not has_ended)
