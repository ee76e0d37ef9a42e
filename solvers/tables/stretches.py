"""The walk over a range of message sizes that cuts and repeated sizes share, on stages with ranges.

A stretch is tried from the size that was reached to the next one ahead, and halved where it cannot
be proven. What ends one stretch begins the next; where that does not suit, an entry stands for one
message size alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from domain.errors import TimeLimitReached
from domain.plan_table import MAX_STRETCH_BYTES
from solvers.contract import Deadline
from solvers.ranges.regions import Regions
from solvers.tables.points import between

FIRST_RATIO = 2.0  # of the message sizes that are tried first

End = TypeVar("End")
TableEntry = TypeVar("TableEntry")


@dataclass(frozen=True, slots=True)
class Stretch(Generic[End]):
    """What a table has at both ends of a stretch, and the gap that is proven between them."""

    first: End
    last: End
    relative_gap: float


class StretchCompiler(ABC, Generic[End, TableEntry]):
    """Compiles the entries of one table, from the least message size upwards."""

    def __init__(self, regions: Regions, *, min_message_bytes: int, max_message_bytes: int) -> None:
        self._regions = regions
        self._minimum, self._maximum = min_message_bytes, max_message_bytes
        self._entries: list[TableEntry] = []
        self._points = 0

    def run(self, deadline: Deadline, reached: Callable[[int], None]) -> list[TableEntry]:
        """Return the entries, ascending; `reached` is called with the message that it is at.

        Raises Infeasible and TimeLimitReached.
        """
        ahead = self._first_sizes()[::-1]
        here, pending = ahead.pop(), None
        while ahead:
            reached(here)
            if deadline.passed:
                raise TimeLimitReached("the plan table was not compiled within its time limit")
            last = ahead[-1]
            if last - here > MAX_STRETCH_BYTES:
                ahead.append(here + MAX_STRETCH_BYTES)
                continue
            if last - here == 1:
                self._close(here, pending)
                here, pending = ahead.pop(), None
                continue
            found = self._tried(here, last, pending)
            if found is None:
                ahead.append(between(here, last))
                self._points += 1
            elif pending is not None and not self._is_same(found.first, pending):
                self._close(here, pending)
                here, pending = here + 1, None
            else:
                self._add(here, found.first, found.relative_gap)
                here, pending = ahead.pop(), found.last
        self._close(here, pending)
        return self._entries

    @abstractmethod
    def _tried(self, first: int, last: int, pending: End | None) -> Stretch[End] | None:
        """What is proven between these sizes; None where the stretch must be halved."""

    @abstractmethod
    def _is_same(self, end: End, pending: End) -> bool:
        """Whether a stretch may begin with what the one before it ended with."""

    @abstractmethod
    def _add(self, message: int, end: End, relative_gap: float) -> None:
        """An entry that begins a stretch."""

    @abstractmethod
    def _close(self, message: int, pending: End | None) -> None:
        """An entry that stands for its own message size alone."""

    def _first_sizes(self) -> list[int]:
        sizes = [self._minimum]
        while sizes[-1] < self._maximum:
            sizes.append(min(self._maximum, max(sizes[-1] + 1, int(sizes[-1] * FIRST_RATIO))))
        ends = self._regions.high[:-1]
        inner = {int(end) + more for end in ends for more in (0, 1)}
        inner = {size for size in inner if self._minimum < size < self._maximum}
        return sorted({*sizes, *inner})
