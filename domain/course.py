"""The course of a message: when every stage handles each of its fragments, stage by stage.

The same recurrence as `domain.schedule.simulate` and `domain.nested.simulate_nested`, for cuts that
all stages share and for cuts that differ, kept so compactly that 64 stages times 100 000 fragments
can be drawn. A test holds its times to be theirs, to the last bit.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, repeat

from domain.errors import InvalidInput
from domain.nested import NestedSchedule
from domain.pipeline import Pipeline, Stage
from domain.schedule import Schedule


@dataclass(frozen=True, slots=True)
class StageCourse:
    """One stage: its cut, and for each fragment (k,) of it, start and exit in µs.

    `awaits[i]` is the fragment of the stage before that carries the last byte of fragment i.
    """

    stage: Stage
    fragment_bytes: tuple[int, ...]
    start_us: Sequence[float]
    exit_us: Sequence[float]
    awaits: Sequence[int]

    @property
    def busy_us(self) -> float:
        """How long the stage is occupied."""
        pairs = zip(self.start_us, self.exit_us, strict=True)
        return sum(exit_us - start_us for start_us, exit_us in pairs)

    @property
    def idle_us(self) -> float:
        """How long the stage waits between its first fragment and its last."""
        pairs = zip(self.start_us[1:], self.exit_us[:-1], strict=True)
        return sum(start_us - before_us for start_us, before_us in pairs)


@dataclass(frozen=True, slots=True)
class Leg:
    """A stretch of the critical path in one stage: fragments `first` to `last` without a pause."""

    stage: int
    first: int
    last: int
    start_us: float
    exit_us: float


@dataclass(frozen=True, slots=True)
class Course:
    """All stages in order. Times leave out the constant delay; `latency_us` contains it."""

    stages: tuple[StageCourse, ...]
    delay_us: float

    @property
    def message_bytes(self) -> int:
        """The size of the message."""
        return sum(self.stages[0].fragment_bytes)

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

        Judged by the stages' times for the cut, as in `domain.schedule.busiest_stage`.
        """
        busy = [sum(_times(one.stage, one.fragment_bytes)) for one in self.stages]
        return busy.index(max(busy))

    def critical_path(self) -> tuple[tuple[int, int], ...]:
        """(fragment, stage) pairs of a chain without a pause from 0 to the last exit.

        Each starts at the very moment at which the one before it ends. Of two that end then, the
        one in the same stage is taken: it shows the queue.
        """
        return tuple(
            (fragment, leg.stage)
            for leg in self.critical_legs()
            for fragment in range(leg.first, leg.last + 1)
        )

    def critical_legs(self) -> tuple[Leg, ...]:
        """The critical path stage by stage. O(its length)."""
        return tuple(reversed(list(self._legs_backwards())))

    def _legs_backwards(self) -> Iterator[Leg]:
        last = len(self.stages[-1].exit_us) - 1
        for j in range(len(self.stages) - 1, -1, -1):
            here = self.stages[j]
            first = last
            while first and not (j and here.start_us[first] > here.exit_us[first - 1]):
                first -= 1
            yield Leg(j, first, last, here.start_us[first], here.exit_us[last])
            last = here.awaits[first]


def course_of(pipeline: Pipeline, fragment_bytes: tuple[int, ...]) -> Course:
    """The course of one cut that all stages share. O(k n). Raises InvalidInput."""
    schedule = Schedule(fragment_bytes)
    return _course(pipeline, (schedule.fragment_bytes,) * len(pipeline))


def nested_course_of(pipeline: Pipeline, schedule: NestedSchedule) -> Course:
    """The course of a cut for each stage. O(total fragments). Raises InvalidInput."""
    if len(schedule.stage_bytes) != len(pipeline):
        raise InvalidInput(
            f"expected {len(pipeline)} cuts, one per stage, got {len(schedule.stage_bytes)}",
            field="levels",
        )
    return _course(pipeline, schedule.stage_bytes)


def _course(pipeline: Pipeline, cuts: Sequence[tuple[int, ...]]) -> Course:
    stages: list[StageCourse] = []
    for stage, cut in zip(pipeline.stages, cuts, strict=True):
        before = stages[-1] if stages else None
        stages.append(_stage_course(stage, cut, before))
    return Course(tuple(stages), pipeline.delay_us)


def _stage_course(stage: Stage, cut: tuple[int, ...], before: StageCourse | None) -> StageCourse:
    awaits = _awaited(before.fragment_bytes, cut) if before is not None else range(len(cut))
    ready: Iterable[float] = repeat(0.0, len(cut))
    if before is not None:
        ready = map(before.exit_us.__getitem__, awaits)
    times = _times(stage, cut)
    starts, exits = array("d"), array("d")
    started, ended = starts.append, exits.append
    free_us = 0.0
    for ready_us, time_us in zip(ready, times, strict=True):
        if ready_us > free_us:
            free_us = ready_us
        started(free_us)
        free_us += time_us
        ended(free_us)
    return StageCourse(stage, cut, starts, exits, awaits)


def _times(stage: Stage, cut: Sequence[int]) -> Iterator[float]:
    """The time of each fragment in µs; each size that occurs is priced once."""
    return map({size: stage.time_us(size) for size in set(cut)}.__getitem__, cut)


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
