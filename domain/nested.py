"""Cuts that differ from stage to stage: reassembly before a slow stage, refragmentation after it.

Rule (theory: refragmentation): a block starts in a stage when its predecessor there has ended and
when the block of the stage before that holds its last byte has ended, or, where that stage hands
bytes on as they move, when it has handed on that byte. With the same cut in every stage this is the
recurrence of `domain.schedule`, and a test says so.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, repeat
from math import inf

from domain.errors import InvalidInput
from domain.pipeline import Pipeline, Stage
from domain.schedule import check_sizes


@dataclass(frozen=True, slots=True)
class NestedSchedule:
    """One cut of the same message per stage: `stage_bytes[j]` are the sizes that stage j sees.

    Stages in `flows` have the whole message as their only size, and pass each byte on as it comes.
    Raises InvalidInput where the cuts do not all sum to the same message, or a flow is cut.
    """

    stage_bytes: tuple[tuple[int, ...], ...]
    flows: frozenset[int] = field(default=frozenset(), repr=False)

    def __post_init__(self) -> None:
        if not self.stage_bytes:
            raise InvalidInput("expected one cut per stage", field="levels")
        distinct = {id(cut): cut for cut in self.stage_bytes}.values()
        for cut in distinct:
            check_sizes(cut)
        if len(set(map(sum, distinct))) != 1:
            raise InvalidInput("expected cuts that sum to the same message", field="levels")
        for stage in self.flows:
            if not 0 <= stage < len(self.stage_bytes) or len(self.stage_bytes[stage]) != 1:
                raise InvalidInput("expected flows to be stages of one size", field="levels")

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
    passed: Passed | None = None
    for j, stage in enumerate(pipeline.stages):
        cut = schedule.stage_bytes[j]
        if j in schedule.flows:
            before = None
            if j:
                before = passed or Pulses(
                    pipeline.stages[j - 1], schedule.stage_bytes[j - 1], starts[-1], exits[-1]
                )
            passed = Passed.of(stage, cut[0], before)
            starts.append((passed.start_us,))
            exits.append((passed.visible_us(cut[0]),))
            continue
        ready: Iterable[float] = repeat(0.0, len(cut))
        if passed is not None:
            ready = map(passed.visible_us, accumulate(cut))
        elif j:
            of_before = pipeline.stages[j - 1], schedule.stage_bytes[j - 1], starts[-1], exits[-1]
            ready = ready_us(*of_before, cut)
        free_us, begun, ended = 0.0, [], []
        for size, at_us in zip(cut, ready, strict=True):
            begun.append(max(free_us, at_us))
            free_us = begun[-1] + stage.time_us(size)
            ended.append(free_us)
        starts.append(tuple(begun))
        exits.append(tuple(ended))
        passed = None
    return NestedTimeline(tuple(starts), tuple(exits), pipeline.delay_us)


def nested_latency_us(pipeline: Pipeline, schedule: NestedSchedule) -> float:
    """Return the latency of nested cuts, the constant delay included.

    As `simulate_nested` has it, to the last bit, without keeping every start. Raises InvalidInput
    for a wrong count.
    """
    if schedule.flows:
        return simulate_nested(pipeline, schedule).latency_us
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


# --- stages that pass bytes on as they come -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pulses:
    """The blocks of a stage with their times, µs, and the bytes after each of them."""

    stage: Stage
    stage_bytes: Sequence[int]
    start_us: Sequence[float]
    exit_us: Sequence[float]

    def peaks_us(self, us_per_byte: float) -> tuple[list[int], list[float]]:
        """Return the ends of the blocks, and for each the largest vis(q + 1) - G q before it."""
        ends, peaks, peak, at = list[int](), list[float](), -inf, 0
        for place, size in enumerate(self.stage_bytes):
            peaks.append(peak)
            peak = max(peak, self.peak_us(place, at, size, us_per_byte))
            at += size
            ends.append(at)
        return ends, peaks

    def peak_us(self, place: int, at: int, count: int, us_per_byte: float) -> float:
        """Return the largest vis(q + 1) - G q of the first `count` bytes of a block at byte `at`.

        Within a grain it falls with q, and from one whole grain to the next it is linear: the first
        grain, the last and the one before that have it.
        """
        grain = self.stage.handoff_bytes
        if grain is None:
            return self.exit_us[place] - us_per_byte * at
        last = -(-count // grain) - 1
        size, found = self.stage_bytes[place], -inf
        for one in {0, max(0, last - 1), last}:
            seen_us = self.start_us[place] + self.stage.visible_us(size, one * grain + 1)
            found = max(found, seen_us - us_per_byte * (at + one * grain))
        return found


@dataclass(frozen=True, slots=True)
class Passed:
    """What a stage hands on that passes each byte on as it comes: hardware cut-through.

    Source: theory sec. 20; byte p of the message is out at g + max over q < p of
    vis(q + 1) + G (p - q), where vis is when the stage before has handed a byte on. Two in a row
    are one of g + g' + min(G, G') and max(G, G'). Times in µs.
    """

    overhead_us: float
    us_per_byte: float
    start_us: float
    pulses: Pulses | None
    ends: Sequence[int]
    peaks_us: Sequence[float]

    @classmethod
    def of(cls, stage: Stage, message_bytes: int, before: Pulses | Passed | None) -> Passed:
        """Return what this stage hands on of what the one before it does, None for the first."""
        part = stage.range_at(message_bytes)
        overhead_us, us_per_byte = part.overhead_us, part.ns_per_byte / 1000.0
        start_us, pulses = 0.0, before if isinstance(before, Pulses) else None
        if isinstance(before, Passed):
            start_us, pulses = before.visible_us(1), before.pulses
            overhead_us += before.overhead_us + min(us_per_byte, before.us_per_byte)
            us_per_byte = max(us_per_byte, before.us_per_byte)
        elif pulses is not None:
            start_us = pulses.peak_us(0, 0, 1, 0.0)
        ends, peaks = pulses.peaks_us(us_per_byte) if pulses else ([message_bytes], [0.0])
        return cls(overhead_us, us_per_byte, start_us, pulses, ends, peaks)

    def visible_us(self, byte: int) -> float:
        """Return when the next stage may have this byte of the message, counted from 1."""
        place = bisect_left(self.ends, byte)
        peak_us = self.peaks_us[place]
        if self.pulses is not None:
            at = self.ends[place - 1] if place else 0
            here_us = self.pulses.peak_us(place, at, byte - at, self.us_per_byte)
            peak_us = max(peak_us, here_us)
        return self.overhead_us + self.us_per_byte * byte + peak_us

    def arrived(self, at_us: float) -> int:
        """Return how many bytes the next stage may have then. O(log message)."""
        low, high = 0, self.ends[-1]
        while low < high:
            middle = (low + high + 1) // 2
            if self.visible_us(middle) <= at_us:
                low = middle
            else:
                high = middle - 1
        return low
