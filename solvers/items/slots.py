"""Windows in bytes as slots of one size: a problem of items for each range of that size.

Source    docs/theory.md, "Items", slots.
Notation  x: the greatest fragment of a cut; M: the bytes of a window; b: the slots of x that it
          holds, the greatest whole number of M / x.
Cost      O(m) each; ranges are split only while something in them may be better.
Exact     every admitted cut is in one part with its x, which has no fewer slots than the cut and
          admits it: a bound on all parts is one on all cuts. In a part whose x all give the same b
          a cut takes what it takes by itself.
Traps     x is no less than the greatest item. A cap below that holds for runs of items alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isqrt

from domain.errors import Infeasible
from domain.items import ItemProblem
from domain.machine import Window
from solvers.items.arrays import arrays_of


@dataclass(frozen=True, slots=True)
class SlotRange:
    """All cuts whose greatest fragment is of these bytes, both ends included, as a problem whose
    windows hold fragments alone, as many as of the smallest of these sizes.
    """

    whole: ItemProblem
    problem: ItemProblem
    from_bytes: int
    to_bytes: int

    def parts(self) -> Iterator[SlotRange]:
        """Yield ranges that together hold the same cuts; none where all have the same slots."""
        for window in self.whole.windows:
            fewest, most = self._slots(window)
            if window.bytes is not None and fewest < most:
                slots = max(fewest + 1, isqrt(fewest * most))
                border = window.bytes // slots  # the greatest size with so many slots
                for ends in ((border + 1, self.to_bytes), (self.from_bytes, border)):
                    found = _range_of(self.whole, *ends)
                    if found is not None:
                        yield found
                return

    @property
    def is_single(self) -> bool:
        """Whether all sizes of it give each window the same number of slots."""
        slots = map(self._slots, self.whole.windows)
        return all(fewest == most for fewest, most in slots)

    def _slots(self, window: Window) -> tuple[int, int]:
        """The fewest and the most slots of these sizes."""
        each = (_slots(self.whole, window, size) for size in (self.to_bytes, self.from_bytes))
        fewest, most = each
        return fewest, most


def all_slots(problem: ItemProblem) -> SlotRange:
    """Return every admitted cut as one range. Raises Infeasible where there is none."""
    problem.check_feasible()
    if all(window.bytes is None for window in problem.windows):
        return SlotRange(problem, problem, 1, problem.sequence.total_bytes)
    found = _range_of(problem, max(problem.sequence.item_bytes), problem.sequence.total_bytes)
    assert found is not None, "limits that clash were looked for"
    return found


def _range_of(problem: ItemProblem, from_bytes: int, to_bytes: int) -> SlotRange | None:
    """The cuts whose greatest fragment is of these bytes, None without one. `from_bytes` is no less
    than the greatest item.
    """
    cap = to_bytes if problem.most_bytes is None else min(problem.most_bytes, to_bytes)
    windows = tuple(
        replace(window, fragments=_slots(problem, window, from_bytes), bytes=None)
        for window in problem.windows
    )
    within = replace(problem, max_fragment_bytes=cap, windows=windows)
    try:
        arrays = arrays_of(within)
    except Infeasible:
        return None
    ends = arrays.ends_bytes
    largest = int((ends[1:] - ends[arrays.earliest[1:]]).max())
    if largest < from_bytes:
        return None
    return SlotRange(problem, within, from_bytes, min(to_bytes, largest))


def _slots(problem: ItemProblem, window: Window, fragment_bytes: int) -> int:
    """How many fragments of this size a window holds; as many as there are items are enough."""
    return min(window.places(fragment_bytes), len(problem.sequence))
