"""Cuts that differ from stage to stage: reassembly before a slow stage, refragmentation after it.

Rule (theory: refragmentation): a block starts in a stage when its predecessor there has ended and
when the block of the stage before that holds its last byte has ended, or, where that stage hands
bytes on as they move, when it has handed on that byte. With the same cut in every stage this is the
recurrence of `domain.schedule`, and a test says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, repeat

from domain.errors import InvalidInput
from domain.pipeline import Pipeline, Stage
from domain.schedule import check_sizes


@dataclass(frozen=True, slots=True)
class NestedSchedule:
    """One cut of the same message per stage: `stage_bytes[j]` are the sizes that stage j sees.

    Raises InvalidInput where the cuts do not all sum to the same message.
    """

    stage_bytes: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if not self.stage_bytes:
            raise InvalidInput("expected one cut per stage", field="levels")
        distinct = {id(cut): cut for cut in self.stage_bytes}.values()
        for cut in distinct:
            check_sizes(cut)
        if len(set(map(sum, distinct))) != 1:
            raise InvalidInput("expected cuts that sum to the same message", field="levels")

    @property
    def message_bytes(self) -> int:
        """The size of the message that every stage's cut adds up to."""
        return sum(self.stage_bytes[0])


@dataclass(frozen=True, slots=True)
class NestedTimeline:
    """When each stage handles each of its own blocks; `start_us[j][i]`: stage first, block second.

    Times leave out the pipeline's constant delay; `latency_us` contains it.
    """

    start_us: tuple[tuple[float, ...], ...]
    exit_us: tuple[tuple[float, ...], ...]
    delay_us: float

    @property
    def latency_us(self) -> float:
        """Time of the whole message, the delay included."""
        return self.exit_us[-1][-1] + self.delay_us


def simulate_nested(pipeline: Pipeline, schedule: NestedSchedule) -> NestedTimeline:
    """Return every (stage, block) interval, O(total blocks). Raises InvalidInput for a wrong
    count.
    """
    _check_count(pipeline, schedule)
    starts: list[tuple[float, ...]] = []
    exits: list[tuple[float, ...]] = []
    for j, stage in enumerate(pipeline.stages):
        cut = schedule.stage_bytes[j]
        ready: Iterable[float] = repeat(0.0, len(cut))
        if j:
            before = pipeline.stages[j - 1], schedule.stage_bytes[j - 1], starts[-1], exits[-1]
            ready = ready_us(*before, cut)
        free_us, begun, ended = 0.0, [], []
        for size, at_us in zip(cut, ready, strict=True):
            begun.append(max(free_us, at_us))
            free_us = begun[-1] + stage.time_us(size)
            ended.append(free_us)
        starts.append(tuple(begun))
        exits.append(tuple(ended))
    return NestedTimeline(tuple(starts), tuple(exits), pipeline.delay_us)


def nested_latency_us(pipeline: Pipeline, schedule: NestedSchedule) -> float:
    """Return the latency of nested cuts, the constant delay included.

    As `simulate_nested` has it, to the last bit, without keeping every start. Raises InvalidInput
    for a wrong count.
    """
    _check_count(pipeline, schedule)
    exit_us: list[float] = []
    start_us: list[float] = []
    before: tuple[int, ...] = ()
    stage_before = pipeline.stages[0]
    for stage, cut in zip(pipeline.stages, schedule.stage_bytes, strict=True):
        ready: Iterable[float] = repeat(0.0, len(cut))
        if exit_us:
            ready = ready_us(stage_before, before, start_us, exit_us, cut)
        time_us = {size: stage.time_us(size) for size in set(cut)}
        times = map(time_us.__getitem__, cut)
        hands_on = stage.handoff_bytes is not None
        start_us, exit_us = _times_us(ready, times, with_starts=hands_on)
        before, stage_before = cut, stage
    return exit_us[-1] + pipeline.delay_us


def _times_us(
    ready_us: Iterable[float], times_us: Iterable[float], *, with_starts: bool
) -> tuple[list[float], list[float]]:
    """Starts, where they are wanted, and exits."""
    free_us, begun, ended = 0.0, list[float](), list[float]()
    for ready, time in zip(ready_us, times_us, strict=True):
        if ready > free_us:
            free_us = ready
        if with_starts:
            begun.append(free_us)
        free_us += time
        ended.append(free_us)
    return begun, ended


def _check_count(pipeline: Pipeline, schedule: NestedSchedule) -> None:
    if len(schedule.stage_bytes) != len(pipeline):
        raise InvalidInput(
            f"expected {len(pipeline)} cuts, one per stage, got {len(schedule.stage_bytes)}",
            field="levels",
        )


def ready_us(
    stage: Stage,
    stage_bytes: Sequence[int],
    start_us: Sequence[float],
    exit_us: Sequence[float],
    cut: Sequence[int],
) -> Sequence[float]:
    """Return when each block of `cut`, of the next stage, may begin: when its last byte is there.

    `stage_bytes` is this stage's cut, `start_us` and `exit_us` its times; without `handoff_bytes`
    the starts are not read.
    """
    if stage_bytes is cut or tuple(stage_bytes) == tuple(cut):
        return exit_us
    ends = list(accumulate(stage_bytes))
    hands_on = stage.handoff_bytes is not None
    ready: list[float] = []
    holder = 0
    for end in accumulate(cut):
        while ends[holder] < end:
            holder += 1
        at_us = exit_us[holder]
        if hands_on and end < ends[holder]:
            size = stage_bytes[holder]
            seen_us = stage.visible_us(size, size - (ends[holder] - end))
            at_us = min(at_us, start_us[holder] + seen_us)
        ready.append(at_us)
    return ready
