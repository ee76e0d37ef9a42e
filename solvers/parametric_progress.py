"""How much of a table's compilation is done, by the messages that its two parts have come to.

Short messages have few cuts worth a thought and take next to no time; the number of entries, and so
the time, is about that of the octaves times the fragments' order of magnitude. A part is therefore
weighed by the square of its octaves. Cuts and repeated sizes take about as long as each other: of
the published pipelines the cuts take 31 to 63 % of the time, of one with several ranges 71 %.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log2

_OF_CUTS = 0.5
_OF_A_PASS = 0.02  # of those to looser tolerances
_MOST = 0.99  # before the end


class CompileProgress:
    """Tells a share that never falls, and is 1 at the end alone."""

    def __init__(
        self, least_bytes: int, greatest_bytes: int, tell: Callable[[float], None]
    ) -> None:
        self._least, self._greatest = least_bytes, greatest_bytes
        self._tell, self._told = tell, 0.0
        self._first: float | None = None  # what was told when the first passes were done

    def cuts_at(self, message_bytes: int) -> None:
        """The cuts have come to this message."""
        self._grow(_OF_CUTS * self._part(message_bytes))

    def repeats_at(self, message_bytes: int) -> None:
        """So have the repeated sizes; all cuts are there."""
        self._grow(_OF_CUTS + (1.0 - _OF_CUTS) * self._part(message_bytes))

    def again(self, message_bytes: int, before: float) -> None:
        """A pass to a looser tolerance has come to this message; `before` is the share before it.

        How many passes there are shows at the end.
        """
        if self._first is None:
            self._first = self._told
        share = before + _OF_A_PASS * self._part(message_bytes)
        self._grow(self._first + (_MOST - self._first) * min(1.0, share))

    def end(self) -> None:
        """Everything is there."""
        self._tell(1.0)

    def _grow(self, share: float) -> None:
        """A later pass begins with the least message again: nothing is told until it is further."""
        self._told = max(self._told, share)
        self._tell(self._told)

    def _part(self, message_bytes: int) -> float:
        """Of one part; below 1 while the message is below the greatest."""
        least, greatest = _weight(self._least), _weight(self._greatest)
        return (_weight(message_bytes) - least) / (greatest - least)


def _weight(message_bytes: int) -> float:
    return log2(message_bytes) ** 2
