"""What of a stage is drawn: a mark for each block that can be seen, one for many that cannot.

A block narrower than `least` is merged with its neighbours into a run, as long as no pause between
them could be seen and the run stays short: what is in it is then told by shares of its time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from domain.course import StageCourse


@dataclass(frozen=True, slots=True)
class Mark:
    """Fragments `first` to `last` of a stage, from start to exit; of a block they are equal.

    A run that is cut off because it is long lasts `until_us`, where the next one starts; otherwise
    that is its exit. `busy_us` is what all of them occupy the stage, `overhead_us` of it overhead.
    """

    first: int
    last: int
    start_us: float
    exit_us: float
    busy_us: float
    overhead_us: float
    until_us: float

    @property
    def is_run(self) -> bool:
        """Whether several are merged."""
        return self.last > self.first

    @property
    def blocks(self) -> int:
        """How many there are."""
        return self.last - self.first + 1

    @property
    def shares(self) -> tuple[float, float]:
        """Of the time from its start until its end: overhead, and all that the stage is busy."""
        whole_us = self.until_us - self.start_us
        if whole_us <= 0.0:
            return 0.0, 1.0
        busy = min(1.0, self.busy_us / whole_us)
        return min(busy, self.overhead_us / whole_us), busy


def marks_of(stage: StageCourse, *, least_us: float, longest_us: float) -> Iterator[Mark]:
    """The marks of a stage in order of time.

    Blocks shorter than `least_us` are merged across pauses shorter than it, into runs that are not
    longer than `longest_us`. O(k).
    """
    overhead_us = {size: overhead_of(stage, size) for size in set(stage.fragment_bytes)}
    first, begun_us, ended_us, busy_us, over_us = -1, 0.0, 0.0, 0.0, 0.0
    rows = zip(stage.fragment_bytes, stage.start_us, stage.exit_us, strict=True)
    for i, (size, start_us, exit_us) in enumerate(rows):
        taken_us, fixed_us = exit_us - start_us, overhead_us[size]
        is_narrow = taken_us < least_us
        if first >= 0:
            goes_on = is_narrow and start_us - ended_us < least_us
            if goes_on and exit_us - begun_us <= longest_us:
                ended_us, busy_us, over_us = exit_us, busy_us + taken_us, over_us + fixed_us
                continue
            until_us = start_us if goes_on else ended_us
            yield Mark(first, i - 1, begun_us, ended_us, busy_us, over_us, until_us)
            first = -1
        if is_narrow:
            first, begun_us, ended_us, busy_us, over_us = i, start_us, exit_us, taken_us, fixed_us
        else:
            yield Mark(i, i, start_us, exit_us, taken_us, fixed_us, exit_us)
    if first >= 0:
        last = len(stage.exit_us) - 1
        yield Mark(first, last, begun_us, ended_us, busy_us, over_us, ended_us)


def overhead_of(stage: StageCourse, size: int) -> float:
    """The fixed part of the time of a fragment of this size, µs."""
    return stage.stage.range_at(size).overhead_us
