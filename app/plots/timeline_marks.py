"""What of a stage is drawn: a mark for each block that can be seen, one for many that cannot.

A block narrower than `least` is merged with its neighbours into a run, as long as no pause between
them could be seen and the run stays short: what is in it is then told by shares of its time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import sub

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


def marks_of(
    stage: StageCourse,
    *,
    least_us: float,
    longest_us: float,
    shown: tuple[int, int] | None = None,
) -> Iterator[Mark]:
    """The marks of a stage in order of time, of the fragments from `shown[0]` to before `shown[1]`.

    Blocks shorter than `least_us` are merged across pauses shorter than it, into runs that are not
    longer than `longest_us`. O(k), of which all but the marks themselves is done by built-ins.
    """
    starts, exits = stage.start_us, stage.exit_us
    first, beyond = shown or (0, len(exits))
    for end in _stretches(starts[first:beyond], exits[first:beyond], least_us, first):
        while first < end:
            cut = bisect_right(exits, starts[first] + longest_us, first + 1, end)
            until_us = starts[cut] if cut < end else exits[cut - 1]
            yield _mark(stage, first, cut, until_us)
            first = cut


def _stretches(
    starts: Sequence[float], exits: Sequence[float], least_us: float, first: int
) -> list[int]:
    """Where stretches end, exclusive: a block that can be seen, or narrow ones without a pause
    between them that could. The first fragment is number `first`.
    """
    times = enumerate(zip(starts, exits, strict=True), first)
    wide = [i for i, (start_us, exit_us) in times if not exit_us - start_us < least_us]
    pauses = enumerate(zip(starts[1:], exits, strict=False), first + 1)
    after = [i for i, (start_us, exit_us) in pauses if not start_us - exit_us < least_us]
    return sorted({first + len(exits), *after, *wide, *(i + 1 for i in wide)} - {first})


def _mark(stage: StageCourse, first: int, end: int, until_us: float) -> Mark:
    begun_us, ended_us = stage.start_us[first], stage.exit_us[end - 1]
    sizes = stage.fragment_bytes[first:end]
    busy_us = ended_us - begun_us
    if end > first + 1:
        starts, exits = stage.start_us[first:end], stage.exit_us[first:end]
        busy_us = sum(map(sub, exits, starts))
    return Mark(first, end - 1, begun_us, ended_us, busy_us, _overhead_us(stage, sizes), until_us)


def _overhead_us(stage: StageCourse, sizes: Sequence[int]) -> float:
    """The fixed part of the times of these fragments, µs."""
    ranges = stage.stage.ranges
    if len(ranges) == 1:
        return ranges[0].overhead_us * len(sizes)
    counted = Counter(sizes)
    return sum(stage.stage.range_at(size).overhead_us * n for size, n in counted.items())
