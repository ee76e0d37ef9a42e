"""Hierarchies of stages: which stages share a cut, and the papers' way to time nested cuts.

A slow stage splits the pipeline into a compound stage before it and one behind it, each with a cut
of its own within every block of the slow stage (Wang98 sec. 4.3: hierarchical fragmentation). The
convention of Wang98 sec. 5.5 takes a compound stage as free again only when its last internal stage
is; `domain.nested` gives the true latency, with internal stages free as soon as they are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from domain.errors import InvalidInput
from domain.nested import NestedSchedule
from domain.pipeline import Pipeline
from domain.schedule import latency_us


@dataclass(frozen=True, slots=True)
class Grouping:
    """Consecutive stages `first`..`last` (indices, inclusive) that form one compound stage.

    Without `slow` all of them share one cut. With `slow` that stage handles the group's blocks
    whole, and `before` and `behind` are the compound stages on its two sides, None where there is
    no stage left. Raises InvalidInput where the parts do not fit together.
    """

    first: int
    last: int
    slow: int | None = None
    before: Grouping | None = None
    behind: Grouping | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.first <= self.last:
            raise InvalidInput("expected 0 <= first <= last", field="grouping")
        if self.slow is None:
            if self.before is not None or self.behind is not None:
                raise InvalidInput("expected parts only around a slow stage", field="grouping")
            return
        if not self.first <= self.slow <= self.last:
            raise InvalidInput("expected the slow stage to be in its group", field="grouping")
        if _span(self.before) != _range(self.first, self.slow - 1) or _span(self.behind) != _range(
            self.slow + 1, self.last
        ):
            raise InvalidInput("expected parts that cover the stages around", field="grouping")

    def __len__(self) -> int:
        """How many stages the group has."""
        return self.last - self.first + 1

    def parts(self) -> tuple[Grouping, ...]:
        """Return the compound stages inside, in the order of the pipeline."""
        return tuple(part for part in (self.before, self.behind) if part is not None)

    def cuts(self) -> Iterator[tuple[int, ...]]:
        """Yield the sets of stages that share a cut, coarser before finer."""
        yield (self.slow,) if self.slow is not None else tuple(range(self.first, self.last + 1))
        for part in self.parts():
            yield from part.cuts()


def convention_latency_us(
    pipeline: Pipeline, grouping: Grouping, schedule: NestedSchedule
) -> float:
    """Return the latency by the convention of Wang98 sec. 5.5, the constant delay included.

    With c the time of a compound stage for one block: a += c(before); d = max(d, a) + slow;
    e = max(e, d) + c(behind). A flat group's c is the latency of the block's pieces in an empty
    group. Raises InvalidInput where the grouping does not cover the pipeline, where stages that
    should share a cut do not, or where a block is not a whole number of finer blocks.
    """
    if (grouping.first, grouping.last) != (0, len(pipeline) - 1):
        raise InvalidInput("expected a grouping that covers the pipeline", field="grouping")
    cuts = schedule.stage_bytes
    if len(cuts) != len(pipeline):
        raise InvalidInput(f"expected {len(pipeline)} cuts, one per stage", field="levels")
    for shared in grouping.cuts():
        if any(cuts[j] != cuts[shared[0]] for j in shared):
            raise InvalidInput("expected one cut for the stages of a flat group", field="levels")
    timed = _Timed(pipeline, schedule)
    return timed.block_us(grouping, 0, schedule.message_bytes) + pipeline.delay_us


class _Timed:
    """The convention on one schedule: times of blocks, found by their first and last byte."""

    def __init__(self, pipeline: Pipeline, schedule: NestedSchedule) -> None:
        self._stages = pipeline.stages
        self._cuts = schedule.stage_bytes
        self._ends = [list(accumulate(cut)) for cut in schedule.stage_bytes]
        self._known_us: dict[tuple[int, tuple[int, ...]], float] = {}

    def block_us(self, group: Grouping, start: int, end: int) -> float:
        """Time of the bytes from start to end in this group, which is empty before them."""
        stage = group.first if group.slow is None else group.slow
        pieces = self._pieces(stage, start, end)
        if group.slow is None:
            return self._flat_us(group, pieces)
        before_us = slow_us = behind_us = 0.0
        for size in pieces:
            until = start + size
            if group.before is not None:
                before_us += self.block_us(group.before, start, until)
            slow_us = max(slow_us, before_us) + self._stages[stage].time_us(size)
            behind_us = max(behind_us, slow_us)
            if group.behind is not None:
                behind_us += self.block_us(group.behind, start, until)
            start = until
        return behind_us

    def _flat_us(self, group: Grouping, pieces: tuple[int, ...]) -> float:
        # Blocks of one size have the same pieces, and most blocks do.
        key = (group.first, pieces)
        if key not in self._known_us:
            stages = Pipeline(self._stages[group.first : group.last + 1])
            self._known_us[key] = latency_us(stages, pieces)
        return self._known_us[key]

    def _pieces(self, stage: int, start: int, end: int) -> tuple[int, ...]:
        ends = self._ends[stage]
        first = bisect_left(ends, start) + 1 if start else 0
        last = bisect_left(ends, end)
        if (start and ends[first - 1] != start) or ends[last] != end:
            raise InvalidInput("expected blocks of whole finer blocks", field="levels")
        return self._cuts[stage][first : last + 1]


def _range(first: int, last: int) -> tuple[int, int] | None:
    return (first, last) if first <= last else None


def _span(group: Grouping | None) -> tuple[int, int] | None:
    return None if group is None else (group.first, group.last)
