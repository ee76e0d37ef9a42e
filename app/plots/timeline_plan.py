"""The plan of a timeline: its texts, its time axis, and where every mark of a schedule stands."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf
from operator import sub

from app.plots.svg import Tick, nice_above
from app.text.numbers import format_cost, format_gap, format_sizes
from app.text.units import PROVEN_BOUND, TimeUnit, format_given_time, format_proven, format_time
from domain.errors import StrategyDeclined
from domain.item_timeline import Calculation
from domain.solution import relative_excess
from domain.timeline import CriticalPathPart, StageTimeline, Timeline
from domain.units import format_bytes

_MOMENT_DIGITS = 6  # of the times when a fragment starts and leaves: many follow each other closely
_MIN_IDLE = 1e-4  # of the time for which a stage is busy: less idle time is not said
_MAX_LISTED = 8  # stages of the critical path in the description


@dataclass(frozen=True, slots=True)
class DrawnSchedule:
    """A timeline with its name in the picture, and the proven bound where there is one."""

    name: str
    timeline: Timeline
    lower_bound_us: float | None = None

    @property
    def heading(self) -> str:
        """Name, fragments and latency."""
        latency = self._texts[0]
        return f"{self.name}: {self.fragments_text}, {latency}"

    @property
    def fragments_text(self) -> str:
        """How many fragments there are, from the fewest to the most of a stage."""
        counts = sorted(set(map(len, self.timeline.cuts)))
        if counts == [1]:
            return "1 fragment"
        return f"{' to '.join(map(str, dict.fromkeys((counts[0], counts[-1]))))} fragments"

    @property
    def proof(self) -> str:
        """Bound and gap in words; nothing without a bound."""
        if self.lower_bound_us is None:
            return ""
        latency_us, bound_us = self.timeline.latency_us, self.lower_bound_us
        gap = relative_excess(latency_us, bound_us, bound_us)
        return f"{PROVEN_BOUND} {self._texts[1]}, gap {format_gap(gap)}"

    @property
    def _texts(self) -> tuple[str, str]:
        """Return latency and bound with as many digits as show their gap."""
        if self.lower_bound_us is None:
            return format_time(self.timeline.latency_us), ""
        return format_proven(self.timeline.latency_us, self.lower_bound_us)

    @property
    def range_text(self) -> str:
        """The smallest and the largest fragment of any stage."""
        stages = self.timeline.stages
        minimum, maximum = min(one.sizes[0] for one in stages), max(one.sizes[-1] for one in stages)
        return f"{format_bytes(minimum)} to {format_bytes(maximum)} a fragment"

    @property
    def cut_text(self) -> str:
        """The sizes."""
        cuts = self.timeline.cuts
        if self.timeline.is_shared:
            return f"{format_sizes(cuts[0])} bytes"
        listed = " | ".join(map(format_sizes, cuts[:_MAX_LISTED]))
        return f"{listed}{' | …' if len(cuts) > _MAX_LISTED else ''} bytes by stage"


def check_rows(timeline: Timeline) -> None:
    """Raise StrategyDeclined for a timeline of more rows than a picture has."""
    if len(timeline.stages) > MAX_ROWS:
        raise StrategyDeclined(
            f"a timeline has a row for each lane that is used, and no more than {MAX_ROWS}: these "
            f"stages use {len(timeline.stages)}"
        )


def format_moment(time_us: float) -> str:
    """Return when a fragment starts or leaves."""
    return format_given_time(time_us, _MOMENT_DIGITS)


def format_stage_cost(stage: StageTimeline) -> str:
    """Return overhead and per-byte cost; minimum and maximum where several ranges are used."""
    if isinstance(stage, Calculation):
        return "items become ready"
    used = stage.used_ranges
    overhead = _span({part.overhead_us for part in used})
    per_byte = _span({part.ns_per_byte for part in used})
    return f"{overhead} µs + {per_byte} ns/B"


def _span(values: set[float]) -> str:
    low, high = format_cost(min(values)), format_cost(max(values))
    return low if low == high else f"{low}…{high}"


def row_title(stage: StageTimeline, *, is_busiest: bool) -> str:
    """Return what a row is about, shown where it is pointed at."""
    if isinstance(stage, Calculation):
        return f"{stage.name}: {format_stage_cost(stage)}, {_last_ready(stage)}"
    mark = ", the bottleneck" if is_busiest else ""
    busy = f"busy {format_time(stage.busy_us)}{_idle(stage, 'between its fragments')}"
    return f"{stage.name}{mark}: {format_stage_cost(stage)}; {busy}"


def row_details(stage: StageTimeline, *, is_busiest: bool) -> str:
    """Return what stands behind the costs, where it fits."""
    if isinstance(stage, Calculation):
        return f" · {_last_ready(stage)}"
    stated = f" · busy {format_time(stage.busy_us)}{_idle(stage, 'in between')}"
    return stated + (" · bottleneck" if is_busiest else "")


def _last_ready(stage: Calculation) -> str:
    return f"the last after {format_time(stage.exit_us[-1])}"


def _idle(stage: StageTimeline, where: str) -> str:
    """Return how long it is idle, "" for less than shows: rounded sums of times leave a residue."""
    is_shown = stage.idle_us > _MIN_IDLE * stage.busy_us
    return f", idle {format_time(stage.idle_us)} {where}" if is_shown else ""


def headline(timeline: Timeline) -> str:
    """Return the message and how many stages it crosses."""
    stages = timeline.number_of_stages
    return f"{format_bytes(timeline.message_bytes)} through {stages} stage{'s' * (stages > 1)}"


def description(drawn: DrawnSchedule) -> str:
    """Return what the picture shows of a schedule, for readers who cannot see it."""
    timeline = drawn.timeline
    parts = [_format_part(timeline, part) for part in timeline.critical_parts()]
    if len(parts) > _MAX_LISTED:
        parts = [*parts[:_MAX_LISTED], f"{len(parts) - _MAX_LISTED} more stages"]
    delay = f" A constant delay of {format_given_time(timeline.delay_us)} follows."
    slowest = timeline.stages[timeline.busiest_stage]
    return (
        f"{drawn.heading}. Bottleneck: {slowest.name} ({format_stage_cost(slowest)}), "
        f"busy {format_time(slowest.busy_us)}. Critical path: {', '.join(parts)}."
        + (delay if timeline.delay_us > 0.0 else "")
    )


def _format_part(timeline: Timeline, part: CriticalPathPart) -> str:
    row = timeline.stages[part.stage]
    which = f"fragment {row.number(part.first)}"
    if part.last > part.first:
        which = f"fragments {row.number(part.first)} to {row.number(part.last)}"
    return (
        f"{row.name} with {which} "
        f"from {format_moment(part.start_us)} to {format_moment(part.exit_us)}"
    )


# --- the time axis: linear, in the unit that suits its end ----------------------------------------


_MIN_US = 1e-290  # below it nothing can be divided by reliably; such a picture takes no time


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Times from `from_us` to `to_us` on pixels from `left` on, `width` of them."""

    to_us: float
    left: float
    width: float
    from_us: float = 0.0

    @property
    def span_us(self) -> float:
        """How much time is shown."""
        return self.to_us - self.from_us

    @property
    def is_empty(self) -> bool:
        """Whether everything takes no time at all, and stands at 0."""
        return self.span_us < _MIN_US

    def place(self, time_us: float) -> float:
        """Return where a time is drawn; times outside are kept within a picture's width."""
        place = self.left + self.length(time_us - self.from_us)
        return min(max(place, self.left - self.width), self.left + 2.0 * self.width)

    def length(self, time_us: float) -> float:
        """Return how long a time is drawn."""
        return 0.0 if self.is_empty else self.width * (time_us / self.span_us)

    def duration_us(self, length: float) -> float:
        """Return the time that is drawn so long."""
        return self.span_us * (length / self.width)

    def ticks(self, max_steps: int) -> list[Tick]:
        """Return whole multiples of 1, 2 or 5 times a power of ten, all in one unit."""
        if self.is_empty:
            return [Tick(0.0, "0")]
        step_us = nice_above(self.span_us / max_steps)
        unit = TimeUnit.of(self.to_us)
        first = ceil(self.from_us / step_us * (1 - 1e-12))
        last = floor(self.to_us / step_us * (1 + 1e-12))
        return [
            Tick(i * step_us, f"{i * step_us / unit.us:.9g} {unit.name}" if i else "0")
            for i in range(first, last + 1)
        ]


# --- marks: one for each block that can be seen, one for a run of narrow ones ---------------------


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
    stage: StageTimeline,
    *,
    min_us: float,
    longest_us: float,
    shown: tuple[int, int] | None = None,
) -> Iterator[Mark]:
    """Yield the marks of a stage in order of time, of its fragments in the range `shown`.

    Blocks shorter than `min_us` are merged across pauses shorter than it, into runs that are not
    longer than `longest_us`. O(k), of which all but the marks themselves is done by built-ins.
    """
    starts, exits = stage.start_us, stage.exit_us
    first, beyond = shown or (0, len(exits))
    for end in _stretches(starts[first:beyond], exits[first:beyond], min_us, first):
        while first < end:
            cut = bisect_right(exits, starts[first] + longest_us, first + 1, end)
            until_us = starts[cut] if cut < end else exits[cut - 1]
            yield _mark(stage, first, cut, until_us)
            first = cut


def _stretches(
    starts: Sequence[float], exits: Sequence[float], min_us: float, first: int
) -> list[int]:
    """Return where stretches end, exclusive: a block that can be seen, or narrow ones without a
    pause between them that could. The first fragment is number `first`.
    """
    times = enumerate(zip(starts, exits, strict=True), first)
    wide = [i for i, (start_us, exit_us) in times if not exit_us - start_us < min_us]
    pauses = enumerate(zip(starts[1:], exits, strict=False), first + 1)
    after = [i for i, (start_us, exit_us) in pauses if not start_us - exit_us < min_us]
    return sorted({first + len(exits), *after, *wide, *(i + 1 for i in wide)} - {first})


def _mark(stage: StageTimeline, first: int, end: int, until_us: float) -> Mark:
    begun_us, ended_us = stage.start_us[first], stage.exit_us[end - 1]
    sizes = stage.fragment_bytes[first:end]
    busy_us = ended_us - begun_us
    if end > first + 1:
        starts, exits = stage.start_us[first:end], stage.exit_us[first:end]
        busy_us = sum(map(sub, exits, starts))
    return Mark(first, end - 1, begun_us, ended_us, busy_us, _overhead_us(stage, sizes), until_us)


def _overhead_us(stage: StageTimeline, sizes: Sequence[int]) -> float:
    """Return the fixed part of the times of these fragments, µs."""
    ranges = stage.stage.ranges
    if len(ranges) == 1:
        return ranges[0].overhead_us * len(sizes)
    counted = Counter(sizes)
    return sum(stage.stage.range_at(size).overhead_us * n for size, n in counted.items())


# --- the plan: where everything of one schedule stands --------------------------------------------


SHEET, MARGIN = 960.0, 24.0
ROOM = SHEET - 2 * MARGIN
WIDE_PX, NARROW_PX = 13.0, 26.0  # of letters, where the sheet is shown at its width and at 360 px
LABEL, BELOW_BAR = 33.0, 9.0  # of a row, above its bar and below
HEADING, LINE, FLAG, AXIS = 34.0, 32.0, 30.0, 36.0
MIN = 2.0  # the narrowest block that is drawn for itself, where there are not very many
_BETWEEN_ROWS = 3.0
MAX_ROWS = 64
_BARS = ((4, 34.0), (8, 28.0), (16, 22.0), (MAX_ROWS, 16.0))  # up to so many rows, so high
_TOP_AXIS_FROM = 10  # stages
_LONGEST_RUN = 24.0
_MAX_BLOCKS = 12_000  # what a picture is held to, roughly


@dataclass(frozen=True, slots=True)
class Plan:
    """A schedule on the time scale that all of a picture share.

    `marks` has those of each stage; blocks narrower than `minimum` px are merged. `ident` begins
    the names inside the picture, and `compared_us` is the latency that this one's is compared with.
    `is_window`: it is a stretch of the time that is drawn.
    """

    drawn: DrawnSchedule
    scale: TimeScale
    ident: str
    minimum: float
    compared_us: float | None
    marks: tuple[tuple[Mark, ...], ...]
    parts: tuple[CriticalPathPart, ...]
    busiest: int
    is_window: bool = False

    @property
    def bar(self) -> float:
        """How high a bar is: less where there are many."""
        return next(high for maximum, high in _BARS if len(self.marks) <= maximum)

    @property
    def pitch(self) -> float:
        """From row to row."""
        return LABEL + self.bar + BELOW_BAR + _BETWEEN_ROWS

    @property
    def has_bound(self) -> bool:
        """Whether there is a proven bound to mark; where nothing takes time there is no place."""
        return self.drawn.lower_bound_us is not None and not self.scale.is_empty

    @property
    def has_delay(self) -> bool:
        """Whether there is a row for the constant delay."""
        return self.drawn.timeline.delay_us > 0.0

    @property
    def has_top_axis(self) -> bool:
        """Whether the axis at the bottom is too far away."""
        return len(self.marks) >= _TOP_AXIS_FROM

    @property
    def marks_bottleneck(self) -> bool:
        """Whether one stage is the slowest, by more than rounding."""
        return len(self.marks) > 1

    @property
    def rows_top(self) -> float:
        """Where the first row begins, below the head."""
        return self.flag_top + (FLAG if self.has_bound else 0.0) + self.top_axis

    @property
    def flag_top(self) -> float:
        """Where the line of the bound begins, with its name beside it."""
        return HEADING + LINE

    @property
    def top_axis(self) -> float:
        """How high the labels above the rows are."""
        return AXIS - 4 if self.has_top_axis else 0.0

    @property
    def rows_bottom(self) -> float:
        """Where the axis is."""
        return self.rows_top + self.pitch * (len(self.marks) + self.has_delay) + 4

    @property
    def height(self) -> float:
        """Of all of it."""
        return self.rows_bottom + AXIS - 4

    @property
    def merged_blocks(self) -> int:
        """How many blocks are in runs."""
        return sum(mark.blocks for marks in self.marks for mark in marks if mark.is_run)


def planned(
    schedules: Sequence[DrawnSchedule], ident: str, window: tuple[float, float] | None = None
) -> list[Plan]:
    """Return a plan for each schedule; the others are compared with the first.

    A window is a stretch of time, from and to in µs; without one all of it is shown.
    """
    span_us = span_of(schedules)
    begin_us, end_us = window or (0.0, span_us)
    scale = TimeScale(end_us, MARGIN, ROOM, begin_us)
    rows = sum(len(one.timeline.stages) for one in schedules)
    minimum = max(MIN, ROOM * rows / _MAX_BLOCKS)
    first_us = schedules[0].timeline.latency_us
    return [
        Plan(
            drawn=drawn,
            scale=scale,
            ident=ident,
            minimum=minimum,
            compared_us=first_us if place else None,
            marks=tuple(_marks(stage, scale, minimum) for stage in drawn.timeline.stages),
            parts=drawn.timeline.critical_parts(),
            busiest=drawn.timeline.busiest_stage,
            is_window=window is not None,
        )
        for place, drawn in enumerate(schedules)
    ]


def span_of(schedules: Sequence[DrawnSchedule]) -> float:
    """Return the end of the time axis where all of it is shown, µs."""
    times_us = [one.timeline.latency_us for one in schedules]
    times_us += [one.lower_bound_us for one in schedules if one.lower_bound_us is not None]
    return max(times_us)


def _marks(stage: StageTimeline, scale: TimeScale, minimum: float) -> tuple[Mark, ...]:
    if scale.is_empty:
        return tuple(marks_of(stage, min_us=inf, longest_us=inf))
    min_us = scale.duration_us(minimum)
    longest_us = scale.duration_us(max(_LONGEST_RUN, 6 * minimum))
    shown = bisect_left(stage.exit_us, scale.from_us), bisect_right(stage.start_us, scale.to_us)
    return tuple(marks_of(stage, min_us=min_us, longest_us=longest_us, shown=shown))
