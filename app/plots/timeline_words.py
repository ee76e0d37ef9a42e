"""A schedule as a timeline names and describes it: every function and property is text."""

from __future__ import annotations

from dataclasses import dataclass

from app.text.numbers import format_cost, format_gap, format_sizes
from app.text.units import format_given_time, format_proven, format_time
from domain.course import Course, Leg, StageCourse
from domain.solution import relative_excess
from domain.units import format_bytes

_MOMENT_DIGITS = 6  # of when a fragment starts and leaves: many follow each other closely
_MOST_TOLD = 8  # stages of the critical path in the description


@dataclass(frozen=True, slots=True)
class DrawnSchedule:
    """A course with the name it has in the picture, and the proven bound where there is one."""

    name: str
    course: Course
    lower_bound_us: float | None = None

    @property
    def heading(self) -> str:
        """Name, fragments and latency."""
        latency = self._texts[0]
        return f"{self.name}: {self.fragments_text}, {latency}"

    @property
    def fragments_text(self) -> str:
        """How many fragments there are, from the least to the most that a stage has."""
        counts = sorted({len(stage.fragment_bytes) for stage in self.course.stages})
        if counts == [1]:
            return "1 fragment"
        return f"{' to '.join(map(str, dict.fromkeys((counts[0], counts[-1]))))} fragments"

    @property
    def proof(self) -> str:
        """Bound and gap in words; nothing without a bound."""
        if self.lower_bound_us is None:
            return ""
        latency_us, bound_us = self.course.latency_us, self.lower_bound_us
        gap = relative_excess(latency_us, bound_us, bound_us)
        return f"proven bound {self._texts[1]}, gap {format_gap(gap)}"

    @property
    def _texts(self) -> tuple[str, str]:
        """Latency and bound, as far apart as the gap says."""
        if self.lower_bound_us is None:
            return format_time(self.course.latency_us), ""
        return format_proven(self.course.latency_us, self.lower_bound_us)

    @property
    def range_text(self) -> str:
        """The least and the greatest fragment of any stage."""
        stages = self.course.stages
        least, greatest = min(one.sizes[0] for one in stages), max(one.sizes[-1] for one in stages)
        return f"{format_bytes(least)} to {format_bytes(greatest)} a fragment"

    @property
    def cut_text(self) -> str:
        """The sizes."""
        cuts = [stage.fragment_bytes for stage in self.course.stages]
        if self.course.is_shared:
            return f"{format_sizes(cuts[0])} bytes"
        told = " | ".join(map(format_sizes, cuts[:_MOST_TOLD]))
        return f"{told}{' | …' if len(cuts) > _MOST_TOLD else ''} bytes by stage"


def format_moment(time_us: float) -> str:
    """Return when a fragment starts or leaves."""
    return format_given_time(time_us, _MOMENT_DIGITS)


def costs_text(stage: StageCourse) -> str:
    """Overhead and per-byte cost; from least to greatest where the cut uses several ranges."""
    used = stage.used_ranges
    overhead = _span({part.overhead_us for part in used})
    per_byte = _span({part.ns_per_byte for part in used})
    return f"{overhead} µs + {per_byte} ns/B"


def _span(values: set[float]) -> str:
    low, high = format_cost(min(values)), format_cost(max(values))
    return low if low == high else f"{low}…{high}"


def row_title(stage: StageCourse, *, is_busiest: bool) -> str:
    """What a row is about, for whoever points at it."""
    mark = ", the bottleneck" if is_busiest else ""
    idle = f"idle {format_time(stage.idle_us)} between its fragments"
    busy = f"busy {format_time(stage.busy_us)}"
    return f"{stage.stage.name}{mark}: {costs_text(stage)}; {busy}, {idle}"


def row_details(stage: StageCourse, *, is_busiest: bool) -> str:
    """What stands behind the costs where there is room."""
    said = f" · busy {format_time(stage.busy_us)}"
    if stage.idle_us > 0.0:
        said += f", idle {format_time(stage.idle_us)} in between"
    return said + (" · bottleneck" if is_busiest else "")


def headline(course: Course) -> str:
    """The message and how many stages it crosses."""
    stages = len(course.stages)
    return f"{format_bytes(course.message_bytes)} through {stages} stage{'s' * (stages > 1)}"


def description(drawn: DrawnSchedule) -> str:
    """What the picture shows of a schedule, for whoever cannot see it."""
    course = drawn.course
    legs = [_leg_text(course, leg) for leg in course.critical_legs()]
    if len(legs) > _MOST_TOLD:
        legs = [*legs[:_MOST_TOLD], f"{len(legs) - _MOST_TOLD} more stages"]
    delay = f" A constant delay of {format_given_time(course.delay_us)} follows."
    slowest = course.stages[course.busiest_stage]
    return (
        f"{drawn.heading}. Bottleneck: {slowest.stage.name} ({costs_text(slowest)}), "
        f"busy {format_time(slowest.busy_us)}. Critical path: {', '.join(legs)}."
        + (delay if course.delay_us > 0.0 else "")
    )


def _leg_text(course: Course, leg: Leg) -> str:
    which = f"fragment {leg.first + 1}"
    if leg.last > leg.first:
        which = f"fragments {leg.first + 1} to {leg.last + 1}"
    name = course.stages[leg.stage].stage.name
    return f"{name} with {which} from {format_moment(leg.start_us)} to {format_moment(leg.exit_us)}"
