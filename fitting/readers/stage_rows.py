"""Times of stages that a tool measured one after the other, as rows of a direct trace.

Such a file has no row with a time of every stage. The k-th time of a size of one stage stands
beside the k-th of each other stage: fits take every stage by itself, so that nothing is made of the
neighbourhood. Times without a counterpart in every stage are left out and counted.
"""

from __future__ import annotations

from contract.limits import MAX_STAGES
from domain.measurement import DirectTrace
from fitting.readers.text import Collector, refuse


class StageRows:
    """Times by stage and size, as they are read."""

    def __init__(self) -> None:
        self.stages: dict[str, Collector] = {}

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
            size: min(len(times), *(len(other.get(size, ())) for other in others))
            if others
            else len(times)
            for size, times in first.items()
        }
        rows = [(size, row) for size, count in counts.items() for row in range(count)]
        if not rows:
            refuse(f"no size was measured of every one of {', '.join(measured)[:200]}")
        for name, sizes in measured.items():
            for _ in range(sum(map(len, sizes.values())) - len(rows)):
                self.stages[name].leave_out("without a time of every other stage")
        return DirectTrace(
            tuple(measured),
            tuple(size for size, _ in rows),
            tuple(row for _, row in rows),
            tuple(tuple(sizes[size][row] for size, row in rows) for sizes in measured.values()),
        )


def _by_size(part: Collector) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {}
    for size, time_us in zip(part.sizes, part.times_us, strict=True):
        found.setdefault(size, []).append(time_us)
    return found
