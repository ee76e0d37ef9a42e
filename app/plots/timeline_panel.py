"""One schedule of a timeline: its heading, its rows, the critical path through them, the axis."""

from __future__ import annotations

from collections.abc import Iterator

from app.plots.scales import Tick
from app.plots.svg import group, line_at, number, path_of, safe, shortened, tag, text_at, text_width
from app.plots.timeline_plan import (
    BELOW_BAR,
    HEADING,
    LABEL,
    MARGIN,
    NARROW_PX,
    ROOM,
    SHEET,
    WIDE_PX,
    Plan,
)
from app.plots.timeline_rows import draw_labels, draw_rows
from app.text.numbers import format_excess

_HEADING_PX = 27.0  # of letters, at their greatest
_MOST_STEPS = 6
_BOUND = "proven bound"


def draw_schedule(plan: Plan, y: float) -> str:
    """The schedule below this place, `plan.height` high."""
    content = [
        text_at(MARGIN, 22, _heading(plan), "heading"),
        _below_heading(plan),
        _ground(plan),
        *_axes(plan),
        *draw_rows(plan),
        *_critical_path(plan),
        group(draw_labels(plan), class_="labels"),
        *_ends(plan),
    ]
    return group(content, class_="schedule", transform=f"translate(0 {number(y)})")


# --- above and below the rows ---------------------------------------------------------------------


def _heading(plan: Plan) -> str:
    heading = plan.drawn.heading
    if plan.compared_us is not None:
        more = format_excess(plan.drawn.course.latency_us, plan.compared_us)
        heading += f" ({more})" if more else ""
    return shortened(heading, ROOM, _HEADING_PX)


def _below_heading(plan: Plan) -> str:
    """The proof, or else how great the fragments are; all sizes behind it where there is room."""
    said = plan.drawn.proof or plan.drawn.range_text
    room = ROOM - text_width(said, WIDE_PX) - 30
    sizes = f" · {shortened(plan.drawn.cut_text, room, WIDE_PX)}"
    more = tag("tspan", safe(sizes), class_="wide")
    return tag("text", safe(said), more, x=MARGIN, y=HEADING + 20, class_="muted")


def _axes(plan: Plan) -> Iterator[str]:
    ticks = plan.scale.ticks(_MOST_STEPS)
    for tick in ticks:
        x = plan.scale.place(tick.value)
        yield line_at(x, plan.rows_top, x, plan.rows_bottom, "grid")
    yield from _axis(plan, ticks, plan.rows_bottom, 26.0)
    if plan.has_top_axis:
        yield from _axis(plan, ticks, plan.rows_top, -8.0)


def _axis(plan: Plan, ticks: list[Tick], y: float, below: float) -> Iterator[str]:
    yield line_at(MARGIN, y, SHEET - MARGIN, y, "axis")
    for tick in ticks:
        x, half = plan.scale.place(tick.value), text_width(tick.label, NARROW_PX) / 2
        if x - half < MARGIN:
            yield text_at(MARGIN, y + below, tick.label, "tick")
        elif x + half > SHEET - MARGIN:
            yield text_at(SHEET - MARGIN, y + below, tick.label, "tick end")
        else:
            yield text_at(x, y + below, tick.label, "tick middle")


# --- across the rows ------------------------------------------------------------------------------


def _ground(plan: Plan) -> str:
    """The bottleneck stands on a ground of its own."""
    if not plan.marks_bottleneck:
        return ""
    y = plan.rows_top + plan.busiest * plan.pitch + 2
    return tag("rect", x=0.0, y=y, width=SHEET, height=plan.pitch, class_="ground")


def _critical_path(plan: Plan) -> Iterator[str]:
    points = path_of(_corners(plan))
    yield tag("path", d=points, class_="halo")
    yield tag("path", d=points, class_="path")


def _corners(plan: Plan) -> Iterator[tuple[float, float]]:
    """A stair from the first moment to the last, below the bars that it passes."""
    course, below = plan.drawn.course, plan.rows_top + LABEL + plan.bar + BELOW_BAR / 2
    for leg in plan.legs:
        y = below + leg.stage * plan.pitch
        yield plan.scale.place(leg.start_us), y
        yield plan.scale.place(leg.exit_us), y
    if plan.has_delay:
        y = below + len(plan.legs) * plan.pitch
        yield plan.scale.place(course.exit_us), y
        yield plan.scale.place(course.latency_us), y


def _ends(plan: Plan) -> Iterator[str]:
    """Where the message has arrived, and the earliest that any schedule could have it."""
    top, bottom = plan.rows_top, plan.rows_bottom
    x = plan.scale.place(plan.drawn.course.latency_us)
    if not plan.scale.is_empty:
        yield line_at(x, top, x, bottom, "latency")
    if plan.has_bound and plan.drawn.lower_bound_us is not None:
        yield from _bound(plan, plan.scale.place(plan.drawn.lower_bound_us))


def _bound(plan: Plan, x: float) -> Iterator[str]:
    y = plan.flag_top
    yield line_at(x, y + 8, x, plan.rows_bottom, "bound")
    if x - text_width(_BOUND, NARROW_PX) - 8 < MARGIN:
        yield text_at(x + 8, y + 22, _BOUND, "bound-label")
    else:
        yield text_at(x - 8, y + 22, _BOUND, "bound-label end")
