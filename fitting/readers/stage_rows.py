"""Times of stages that a tool measured one after the other, as rows of a direct trace.

Such a file has no row with a time of every stage. The k-th time of a size under a condition of one
stage stands beside the k-th of each other stage: fits take every stage by itself, so that nothing
is made of the neighbourhood. Times without a counterpart in every stage are left out and counted.
"""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

from contract.limits import MAX_STAGES
from domain.conditions import Condition
from domain.measurement import DirectTrace, Spans
from fitting.readers.text import Collector, refuse


class StageRows:
    """Times by stage and size, as they are read."""

    def __init__(self) -> None:
        self.stages: dict[str, Collector] = {}
        self._spans: Spans = ()

    def of(self, stage: str) -> Collector:
        """Return where the times of this stage go. Raises UnreadableTrace for too many stages."""
        if stage not in self.stages and len(self.stages) == MAX_STAGES:
            refuse(f"more than {MAX_STAGES} different stages in one file")
        return self.stages.setdefault(stage, Collector())

    def trace(self) -> DirectTrace | None:
        """Return the rows that all stages have a time of; None where nothing was measured.

        Raises UnreadableTrace where no size was measured of every stage.
        """
        measured = {name: _by_size(part) for name, part in self.stages.items() if part}
        if not measured:
            return None
        first, *others = measured.values()
        counts = {
            key: min(len(times), *(len(other.get(key, ())) for other in others))
            if others
            else len(times)
            for key, times in first.items()
        }
        of_size = dict[int, list[tuple[_Key, int]]]()
        for key, count in counts.items():
            of_size.setdefault(key[0], []).extend((key, row) for row in range(count))
        rows = [row for some in of_size.values() for row in some]
        if not rows:
            refuse(f"no size was measured of every one of {', '.join(measured)[:200]}")
        spans = [(at, condition) for at, ((_, condition), _) in enumerate(rows)]
        self._spans = tuple(
            one for at, one in enumerate(spans) if not at or spans[at - 1][1] != one[1]
        )
        for name, sizes in measured.items():
            for _ in range(sum(map(len, sizes.values())) - len(rows)):
                self.stages[name].leave_out("without a time of every other stage")
        return DirectTrace(
            tuple(measured),
            tuple(size for (size, _), _ in rows),
            tuple(row for some in of_size.values() for row in range(len(some))),
            tuple(tuple(sizes[key][row] for key, row in rows) for sizes in measured.values()),
        )

    def spans(self) -> Spans:
        """Return from which row of the trace on which condition holds."""
        return self._spans


_Key: TypeAlias = tuple[int, Condition]


def _by_size(part: Collector) -> dict[_Key, list[float]]:
    found: dict[_Key, list[float]] = {}
    starts = deque(part.spans())
    condition = part.condition
    for at, (size, time_us) in enumerate(zip(part.sizes, part.times_us, strict=True)):
        if starts and starts[0][0] == at:
            condition = starts.popleft()[1]
        found.setdefault((size, condition), []).append(time_us)
    return found
