"""Where everything of one schedule stands in a timeline, decided before anything is drawn.

All lengths are units of the picture, `SHEET` of them wide. The label of a row stands above its bar,
so that both have the picture's whole width.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from app.plots.timeline_marks import Mark, marks_of
from app.plots.timeline_scale import TimeScale
from app.plots.timeline_words import DrawnSchedule
from domain.course import Leg, StageCourse

SHEET, MARGIN = 960.0, 24.0
ROOM = SHEET - 2 * MARGIN
WIDE_PX, NARROW_PX = 13.0, 26.0  # of letters, where the sheet is shown at its width and at 360 px
LABEL, BELOW_BAR = 33.0, 9.0  # of a row, above its bar and below
HEADING, LINE, FLAG, AXIS = 34.0, 32.0, 30.0, 36.0
LEAST = 2.0  # the narrowest block that is drawn for itself, where there are not very many
_BETWEEN_ROWS = 3.0
_BARS = ((4, 34.0), (8, 28.0), (16, 22.0), (64, 16.0))  # up to so many stages, so high
_TOP_AXIS_FROM = 10  # stages
_LONGEST_RUN = 24.0
_MOST_BLOCKS = 12_000  # what a picture is held to, roughly


@dataclass(frozen=True, slots=True)
class Plan:
    """A schedule on the time scale that all of a picture share.

    `marks` has those of each stage; blocks narrower than `least` are merged. `ident` begins the
    names inside the picture, and `compared_us` is the latency that this one's is compared with.
    `is_window`: it is a stretch of the time that is drawn.
    """

    drawn: DrawnSchedule
    scale: TimeScale
    ident: str
    least: float
    compared_us: float | None
    marks: tuple[tuple[Mark, ...], ...]
    legs: tuple[Leg, ...]
    busiest: int
    is_window: bool = False

    @property
    def bar(self) -> float:
        """How high a bar is: less where there are many."""
        return next(high for most, high in _BARS if len(self.marks) <= most)

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
        return self.drawn.course.delay_us > 0.0

    @property
    def has_top_axis(self) -> bool:
        """Whether the axis at the bottom is too far away."""
        return len(self.marks) >= _TOP_AXIS_FROM

    @property
    def marks_bottleneck(self) -> bool:
        """Whether one stage can be told from the others as the slowest."""
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
    """A plan for each of the schedules, of which the first is what the others are compared with.

    A window is a stretch of time, from and to in µs; without one all of it is shown.
    """
    span_us = span_of(schedules)
    begin_us, end_us = window or (0.0, span_us)
    scale = TimeScale(end_us, MARGIN, ROOM, begin_us)
    rows = sum(len(one.course.stages) for one in schedules)
    least = max(LEAST, ROOM * rows / _MOST_BLOCKS)
    first_us = schedules[0].course.latency_us
    return [
        Plan(
            drawn=drawn,
            scale=scale,
            ident=ident,
            least=least,
            compared_us=first_us if place else None,
            marks=tuple(_marks(stage, scale, least) for stage in drawn.course.stages),
            legs=drawn.course.critical_legs(),
            busiest=drawn.course.busiest_stage,
            is_window=window is not None,
        )
        for place, drawn in enumerate(schedules)
    ]


def span_of(schedules: Sequence[DrawnSchedule]) -> float:
    """The end of the time axis where all of it is shown, µs."""
    times_us = [one.course.latency_us for one in schedules]
    times_us += [one.lower_bound_us for one in schedules if one.lower_bound_us is not None]
    return max(times_us)


def _marks(stage: StageCourse, scale: TimeScale, least: float) -> tuple[Mark, ...]:
    if scale.is_empty:
        return tuple(marks_of(stage, least_us=inf, longest_us=inf))
    least_us = scale.duration_us(least)
    longest_us = scale.duration_us(max(_LONGEST_RUN, 6 * least))
    shown = bisect_left(stage.exit_us, scale.from_us), bisect_right(stage.start_us, scale.to_us)
    return tuple(marks_of(stage, least_us=least_us, longest_us=longest_us, shown=shown))
