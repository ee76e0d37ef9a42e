"""The course of a message: when every stage handles each of its fragments, stage by stage.

The same recurrence as `domain.schedule.simulate` and `domain.nested.simulate_nested`, for cuts that
all stages share and for cuts that differ, kept so compactly that 64 stages times 100 000 fragments
can be drawn. A test holds its times to be theirs, to the last bit.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, repeat
from operator import sub

from domain.errors import InvalidInput
from domain.nested import NestedSchedule, ready_us, simulate_nested
from domain.pipeline import FitRange, Pipeline, Stage
from domain.schedule import Schedule


@dataclass(frozen=True, slots=True)
class StageTimeline:
    """One stage: its cut, and for each fragment (k,) of it, start and exit in µs.

    `awaits[i]` is the fragment of the stage before that carries the last byte of fragment i.
    `sizes` has each size of the cut once, ascending. `busy_us` is how long the stage is occupied:
    from starts to exits, `priced_us` the same as the sum of its times. `idle_us` is how long it
    waits between its first fragment and its last.

    Of a stage of several `lanes` it is one `lane`, counted from 0, with every so many of all the
    `fragments`; None: it has all of them.
    """

    stage: Stage
    fragment_bytes: tuple[int, ...]
    start_us: Sequence[float]
    exit_us: Sequence[float]
    awaits: Sequence[int]
    sizes: tuple[int, ...]
    busy_us: float
    priced_us: float
    idle_us: float
    lane: int = 0
    lanes: int = 1
    fragments: int | None = None

    @property
    def name(self) -> str:
        """What the row is called: the stage, and which of its lanes."""
        return self.stage.name if self.lanes == 1 else f"{self.stage.name}, lane {self.lane + 1}"

    @property
    def total(self) -> int:
        """How many fragments the stage handles on all its lanes."""
        return len(self.fragment_bytes) if self.fragments is None else self.fragments

    def number(self, place: int) -> int:
        """Return which fragment of the message is in this place, counted from 1."""
        return self.lane + self.lanes * place + 1

    @property
    def used_ranges(self) -> tuple[FitRange, ...]:
        """The fit ranges of the stage that the cut uses. O(ranges log k)."""
        used, begun = [], 0
        for part in self.stage.ranges:
            end = part.up_to_bytes
            beyond = len(self.sizes) if end is None else bisect_right(self.sizes, end)
            if beyond > begun:
                used.append(part)
            begun = beyond
        return tuple(used)


@dataclass(frozen=True, slots=True)
class CriticalPathPart:
    """A stretch of the critical path in one stage: fragments `first` to `last` without a pause.

    It ends at `exit_us`, when what the next stage waits for is there: the last byte of `last`, or
    of a stage that hands bytes on as they move one inside of it.
    """

    stage: int
    first: int
    last: int
    start_us: float
    exit_us: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """All stages in order. Times leave out the constant delay; `latency_us` contains it."""

    stages: tuple[StageTimeline, ...]
    delay_us: float

    @property
    def message_bytes(self) -> int:
        """The size of the message."""
        return sum(self.stages[0].fragment_bytes)

    @property
    def number_of_stages(self) -> int:
        """How many stages there are."""
        return len(self.stages)

    @property
    def by_stage(self) -> tuple[StageTimeline, ...]:
        """A row for each stage."""
        return self.stages

    @property
    def cuts(self) -> tuple[tuple[int, ...], ...]:
        """The cut of each stage."""
        return tuple(one.fragment_bytes for one in self.stages)

    @property
    def is_shared(self) -> bool:
        """Whether all stages have one cut."""
        first = self.stages[0].fragment_bytes
        return all(one.fragment_bytes == first for one in self.stages)

    @property
    def exit_us(self) -> float:
        """When the last fragment leaves the last stage."""
        return self.stages[-1].exit_us[-1]

    @property
    def latency_us(self) -> float:
        """Time of the whole message, the delay included."""
        return self.exit_us + self.delay_us

    @property
    def busiest_stage(self) -> int:
        """Index of the stage occupied longest; the first one of equals.

        Measured by the stages' times for the cut, as in `domain.schedule.busiest_stage`.
        """
        busy = [one.priced_us for one in self.stages]
        return busy.index(max(busy))

    def critical_path(self) -> tuple[tuple[int, int], ...]:
        """Return (fragment, stage) pairs of a chain without a pause from 0 to the last exit.

        Each starts at the very time at which the one before it ends. Of two that end then, the
        one in the same stage is taken: it shows the queue.
        """
        return tuple(
            (fragment, part.stage)
            for part in self.critical_parts()
            for fragment in range(part.first, part.last + 1)
        )

    def critical_parts(self) -> tuple[CriticalPathPart, ...]:
        """Return the critical path stage by stage. O(its length)."""
        return tuple(reversed(list(self._path_backwards())))

    def _path_backwards(self) -> Iterator[CriticalPathPart]:
        last = len(self.stages[-1].exit_us) - 1
        until_us = self.exit_us
        for j in range(len(self.stages) - 1, -1, -1):
            here = self.stages[j]
            first = last
            while first and not (j and here.start_us[first] > here.exit_us[first - 1]):
                first -= 1
            yield CriticalPathPart(j, first, last, here.start_us[first], until_us)
            last, until_us = here.awaits[first], here.start_us[first]


def timeline_of(pipeline: Pipeline, fragment_bytes: tuple[int, ...]) -> Timeline:
    """Return the timeline of one cut that all stages share. O(k n). Raises InvalidInput."""
    schedule = Schedule(fragment_bytes)
    return _timeline(pipeline, (schedule.fragment_bytes,) * len(pipeline))


def nested_timeline_of(pipeline: Pipeline, schedule: NestedSchedule) -> Timeline:
    """Return the timeline of a cut for each stage. O(total fragments). Raises InvalidInput."""
    if len(schedule.stage_bytes) != len(pipeline):
        raise InvalidInput(
            f"expected {len(pipeline)} cuts, one per stage, got {len(schedule.stage_bytes)}",
            field="levels",
        )
    if schedule.flows:
        return _timeline_of_flows(pipeline, schedule)
    return _timeline(pipeline, schedule.stage_bytes)


def _timeline_of_flows(pipeline: Pipeline, schedule: NestedSchedule) -> Timeline:
    """As `_timeline`, from the evaluator's times; a flow awaits what holds the first byte."""
    times = simulate_nested(pipeline, schedule)
    stages: list[StageTimeline] = []
    for j, (stage, cut) in enumerate(zip(pipeline.stages, schedule.stage_bytes, strict=True)):
        starts, exits = times.start_us[j], times.exit_us[j]
        awaits: Sequence[int] = range(len(cut))
        if stages and j not in schedule.flows:
            awaits = _awaited(stages[-1].fragment_bytes, cut)
        busy_us = sum(map(sub, exits, starts))
        stages.append(
            StageTimeline(
                stage,
                cut,
                array("d", starts),
                array("d", exits),
                awaits,
                tuple(sorted(set(cut))),
                busy_us=busy_us,
                priced_us=busy_us,
                idle_us=sum(starts[1:]) - sum(exits[:-1]),
            )
        )
    return Timeline(tuple(stages), pipeline.delay_us)


def _timeline(pipeline: Pipeline, cuts: Sequence[tuple[int, ...]]) -> Timeline:
    stages: list[StageTimeline] = []
    sizes: tuple[int, ...] = ()
    for stage, cut in zip(pipeline.stages, cuts, strict=True):
        before = stages[-1] if stages else None
        if before is None or cut is not before.fragment_bytes:
            sizes = tuple(sorted(set(cut)))
        stages.append(_stage_timeline(stage, cut, sizes, before))
    return Timeline(tuple(stages), pipeline.delay_us)


def _stage_timeline(
    stage: Stage, cut: tuple[int, ...], sizes: tuple[int, ...], before: StageTimeline | None
) -> StageTimeline:
    awaits = _awaited(before.fragment_bytes, cut) if before is not None else range(len(cut))
    times_us = list(_times(stage, cut, sizes))
    if before is None:
        exits, idle_us = array("d", accumulate(times_us)), 0.0
        starts = array("d", [0.0])
        starts.extend(exits[:-1])
    else:
        ready: Iterable[float] = before.exit_us
        if before.stage.handoff_bytes is not None:
            sizes_before = before.fragment_bytes
            ready = ready_us(before.stage, sizes_before, before.start_us, before.exit_us, cut)
        elif not isinstance(awaits, range):
            ready = map(before.exit_us.__getitem__, awaits)
        starts, exits, idle_us = _queued(ready, times_us)
    busy_us, priced_us = sum(map(sub, exits, starts)), sum(times_us)
    return StageTimeline(
        stage,
        cut,
        starts,
        exits,
        awaits,
        sizes,
        busy_us=busy_us,
        priced_us=priced_us,
        idle_us=idle_us,
    )


def _queued(
    ready_us: Iterable[float], times_us: Iterable[float]
) -> tuple[array[float], array[float], float]:
    """Starts and exits of fragments that come when they are ready, and the pauses among them.

    One loop over plain names: it runs once for each fragment of each stage.
    """
    starts, exits = array("d"), array("d")
    started, ended = starts.append, exits.append
    free_us, idle_us = -1.0, 0.0
    for ready, time in zip(ready_us, times_us, strict=True):
        if ready > free_us:
            if free_us >= 0.0:
                idle_us += ready - free_us
            free_us = ready
        started(free_us)
        free_us += time
        ended(free_us)
    return starts, exits, idle_us


def _times(stage: Stage, cut: Sequence[int], sizes: Sequence[int]) -> Iterable[float]:
    """The time of each fragment in µs; each size that occurs is priced once."""
    if len(sizes) == 1:
        return repeat(stage.time_us(sizes[0]), len(cut))
    return map(dict(zip(sizes, map(stage.time_us, sizes), strict=True)).__getitem__, cut)


def _awaited(before: tuple[int, ...], cut: tuple[int, ...]) -> Sequence[int]:
    """For each fragment of `cut` the one of the stage before that ends it."""
    if before is cut or before == cut:
        return range(len(cut))
    ends = list(accumulate(before))
    found = array("q")
    holder = 0
    for end in accumulate(cut):
        while ends[holder] < end:
            holder += 1
        found.append(holder)
    return found
