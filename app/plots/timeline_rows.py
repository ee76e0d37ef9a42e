"""The drawing of one schedule in a timeline: colours, rows, heading, critical path and ends.

Every rule is below the class of the picture, so that it stays inside where the picture is part of a
page. The letters grow where the picture is scaled down: 960 units on 360 px are 0.375, and 26 units
are still 10 px.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from types import MappingProxyType

from app.plots.svg import (
    Colours,
    Tick,
    group,
    in_colours,
    line_at,
    number,
    path_of,
    safe,
    shortened,
    tag,
    text_at,
    text_width,
)
from app.plots.timeline_items import fragment_words, item_spans
from app.plots.timeline_plan import (
    BELOW_BAR,
    HEADING,
    LABEL,
    MARGIN,
    NARROW_PX,
    ROOM,
    SHEET,
    WIDE_PX,
    Mark,
    Plan,
    format_moment,
    format_stage_cost,
    row_details,
    row_title,
)
from app.text.numbers import format_excess
from app.text.units import PROVEN_BOUND, format_given_time
from domain.item_timeline import Calculation
from domain.timeline import StageTimeline
from domain.units import format_bytes

SCOPE = "sluice-timeline"

_COLOURS: Colours = MappingProxyType(
    {
        "paper": ("#fff", "#14181e"),
        "ink": ("#1c2128", "#e8ebef"),
        "muted": ("#59636e", "#9aa5b1"),
        "grid": ("#e3e7ec", "#29313a"),
        "edge": ("#b6bec8", "#4a5561"),
        "over": ("#1c4f8f", "#86baf2"),
        "over-odd": ("#2f6fb5", "#aad0fa"),
        "byte": ("#6fa5de", "#2f649f"),
        "byte-odd": ("#9cc3ee", "#42618a"),
        "on-over": ("#fff", "#10161d"),
        "on-byte": ("#14202e", "#f3f7fb"),
        "idle": ("#aeb8c3", "#4b5661"),
        "path": ("#c2410c", "#ff9a5c"),
        "bound": ("#6b46a8", "#c3a6f5"),
        "mark": ("#fdf0e4", "#2a221b"),
    }
)
_RULES = """
.sluice-timeline{max-width:100%;height:auto;
font:13px system-ui,-apple-system,"Segoe UI","Noto Sans",sans-serif}
.sluice-timeline text{fill:$ink;font-variant-numeric:tabular-nums}
.sluice-timeline .paper{fill:$paper}
.sluice-timeline .title{font-size:21px;font-weight:650}
.sluice-timeline .heading{font-size:16px;font-weight:650}
.sluice-timeline .name{font-weight:650}.sluice-timeline .narrow{display:none}
.sluice-timeline .muted,.sluice-timeline .tick{fill:$muted}
.sluice-timeline .end{text-anchor:end}.sluice-timeline .middle{text-anchor:middle}
.sluice-timeline .plate{fill:$paper}.sluice-timeline .plate.on-ground{fill:$mark}
.sluice-timeline .ground{fill:$mark}
.sluice-timeline .grid{stroke:$grid}.sluice-timeline .axis{stroke:$edge}
.sluice-timeline .hatch{stroke:$idle;stroke-width:1.6}
.sluice-timeline .over{fill:$over}.sluice-timeline .byte{fill:$byte}
.sluice-timeline .odd .over{fill:$over-odd}.sluice-timeline .odd .byte{fill:$byte-odd}
.sluice-timeline .size{font-size:12px;fill:$on-byte;pointer-events:none}
.sluice-timeline .on-over{fill:$on-over}
.sluice-timeline .delay{fill:none;stroke:$muted;stroke-width:1.5;stroke-dasharray:3 3}
.sluice-timeline .halo{fill:none;stroke:$paper;stroke-width:5px;stroke-linejoin:round}
.sluice-timeline .path{fill:none;stroke:$path;stroke-width:3px;stroke-linejoin:round}
.sluice-timeline .arrow{fill:$path}
.sluice-timeline .latency{stroke:$ink;stroke-width:1.5}
.sluice-timeline .bound{stroke:$bound;stroke-width:1.8;stroke-dasharray:6 4}
.sluice-timeline .bound-label{fill:$bound}
.sluice-timeline .halo,.sluice-timeline .path,.sluice-timeline line{pointer-events:none}
@media (max-width:720px){.sluice-timeline{font-size:18px}.sluice-timeline .wide{display:none}
.sluice-timeline .narrow{display:inline}.sluice-timeline .title{font-size:26px}
.sluice-timeline .heading{font-size:21px}}
@media (max-width:480px){.sluice-timeline{font-size:26px}
.sluice-timeline .title{font-size:32px}.sluice-timeline .heading{font-size:27px}}
"""
STYLE = in_colours(_RULES, _COLOURS, dark="screen and (prefers-color-scheme:dark)")


# --- rows: a label, the idle ground, and a block for each fragment --------------------------------


_SIZE_PX = 12.0
_MIN_DRAWN = 0.8
_OVERLAP = 0.7  # of a run with the one that goes on from it: no seam where pixels are rounded
_MIN_BAR_WITH_SIZES = 20.0


def draw_rows(plan: Plan) -> Iterator[str]:
    """Yield a row for each stage, and one for the constant delay."""
    for j, stage in enumerate(plan.drawn.timeline.stages):
        title = tag("title", safe(row_title(stage, is_busiest=_is_busiest(plan, j))))
        class_ = "stage bottleneck" if _is_busiest(plan, j) else "stage"
        yield _row(plan, j, [title, *_bar(plan, j, stage)], class_)
    if plan.has_delay:
        yield _row(plan, len(plan.marks), _delay(plan), "after")


def _row(plan: Plan, place: int, content: list[str], class_: str) -> str:
    y = plan.rows_top + place * plan.pitch + LABEL
    return group(content, class_=class_, transform=f"translate(0 {number(y)})")


def draw_labels(plan: Plan) -> Iterator[str]:
    """Yield what stands above each bar, to be drawn over whatever crosses it."""
    timeline = plan.drawn.timeline
    for j, stage in enumerate(timeline.stages):
        yield _label(plan, j, stage)
    if plan.has_delay:
        name, time = "constant delay", format_given_time(timeline.delay_us)
        widths = [text_width(f"{name}  {time}", 1.1 * px) for px in (NARROW_PX, WIDE_PX)]
        spans = tag("tspan", name, class_="name"), _about(time)
        yield _labelled(plan, len(plan.marks), (widths[0], widths[1]), *spans)


def _is_busiest(plan: Plan, j: int) -> bool:
    return plan.marks_bottleneck and j == plan.busiest


def _label(plan: Plan, j: int, stage: StageTimeline) -> str:
    is_busiest = _is_busiest(plan, j)
    costs, details = format_stage_cost(stage), row_details(stage, is_busiest=is_busiest)
    mark = "▶ " if is_busiest else ""
    narrow = _name(stage, f"{mark}  {costs}", NARROW_PX)
    wide = _name(stage, f"{mark}  {costs}{details}", WIDE_PX)
    names = [tag("tspan", safe(mark + narrow), class_="name")]
    if wide != narrow:
        names = [
            tag("tspan", safe(mark + narrow), class_="name narrow"),
            tag("tspan", safe(mark + wide), class_="name wide"),
        ]
    more = tag("tspan", safe(details), class_="muted wide")
    widths = (
        text_width(narrow, _bold_px(narrow, NARROW_PX)) + text_width(f"{mark}  {costs}", NARROW_PX),
        text_width(wide, _bold_px(wide, WIDE_PX))
        + text_width(f"{mark}  {costs}{details}", WIDE_PX),
    )
    return _labelled(plan, j, widths, *names, _about(costs), more)


def _name(stage: StageTimeline, others: str, px: float) -> str:
    """Return a stage's name in bold letters, shortened to what the rest of its label leaves."""
    name = stage.name
    return shortened(name, ROOM - text_width(others, px), _bold_px(name, px))


def _bold_px(name: str, px: float) -> float:
    """Return the size of common letters that are about as wide as these are in bold."""
    letters = max(1, len(name))
    capitals, wide = (sum(map(test, name)) / letters for test in (str.isupper, _is_wide))
    return px * (1.12 + 0.35 * capitals + 0.6 * wide)


def _is_wide(letter: str) -> bool:
    return letter in "mwMW@%"


def _about(text: str) -> str:
    return tag("tspan", safe(text), class_="muted", dx=8.0)


def _labelled(plan: Plan, place: int, widths: tuple[float, float], *spans: str) -> str:
    """Draw a label on a ground of its own, below which the critical path passes unseen.

    `widths` are of the text in narrow windows and in wide ones.
    """
    y = plan.rows_top + place * plan.pitch
    ground = " on-ground" if _is_busiest(plan, place) else ""
    plates = [
        tag("rect", x=MARGIN - 3, y=top, width=min(width, ROOM) + 8, height=high, class_=class_)
        for width, top, high, class_ in (
            (widths[0], y + 2, LABEL - 4, f"plate narrow{ground}"),
            (widths[1], y + LABEL - 22, 20.0, f"plate wide{ground}"),
        )
    ]
    text = tag("text", *spans, x=MARGIN, y=y + LABEL - 8, class_=f"label{ground}")
    return "".join((*plates, text))


def _bar(plan: Plan, j: int, stage: StageTimeline) -> Iterator[str]:
    start, end = plan.scale.place(stage.start_us[0]), plan.scale.place(stage.exit_us[-1])
    yield tag(
        "rect",
        x=start,
        width=max(end - start, _MIN_DRAWN),
        height=plan.bar,
        fill=f"url(#{plan.ident}-idle)",
        class_="idle",
    )
    parts = [part for part in plan.parts if part.stage == j]
    firsts = [part.first for part in parts]
    marks = plan.marks[j]
    for mark, after in zip(marks, (*marks[1:], None), strict=False):
        if mark.is_run:
            goes_on = after is not None and after.is_run and after.start_us == mark.until_us
            yield _run(plan, mark, stage, overlap=_OVERLAP if goes_on else 0.0)
        else:
            at = bisect_right(firsts, mark.first) - 1
            is_critical = at >= 0 and mark.first <= parts[at].last
            yield _block(plan, j, mark, is_critical=is_critical)


def _block(plan: Plan, j: int, mark: Mark, *, is_critical: bool) -> str:
    stage = plan.drawn.timeline.stages[j]
    size = stage.fragment_bytes[mark.first]
    stated = (
        f"fragment {stage.number(mark.first)} of {stage.total}: {format_bytes(size)}"
        f"{fragment_words(plan.drawn.timeline, mark.first)}, "
        f"{format_moment(mark.start_us)} to {format_moment(mark.exit_us)}"
        + (", critical path" if is_critical else "")
    )
    start = plan.scale.place(mark.start_us)
    end = max(plan.scale.place(mark.exit_us), start + _min_drawn(plan))
    middle = min(end, plan.scale.place(mark.start_us + mark.overhead_us))
    boxes = [
        tag("rect", x=left, width=right - left, height=plan.bar, class_=class_)
        for left, right, class_ in ((start, middle, "over"), (middle, end, _part(stage)))
        if right - left >= 0.005
    ]
    which = str(stage.number(mark.first))
    texts = (f"{which}: {format_bytes(size)}", which)
    text = _draw_number(plan, texts, start, middle, end)
    class_ = "block" + " odd" * (mark.first % 2) + " critical" * is_critical
    within = item_spans(plan, j, mark)
    return tag("g", tag("title", safe(stated)), *boxes, *within, text, class_=class_)


def _part(stage: StageTimeline) -> str:
    """What a block is but for its overhead."""
    return "calc" if isinstance(stage, Calculation) else "byte"


def _min_drawn(plan: Plan) -> float:
    """Return how wide a mark is at least: more where nothing takes time, and all stands at 0."""
    return 6.0 if plan.scale.is_empty else _MIN_DRAWN


def _draw_number(
    plan: Plan, texts: tuple[str, ...], start: float, middle: float, end: float
) -> str:
    """Draw the first of the texts that fits inside the larger part of the block: the fragment's
    number with its size, or alone.
    """
    is_over = middle - start > end - middle
    left, right = (start, middle) if is_over else (middle, end)
    room = right - left - 4 if plan.bar >= _MIN_BAR_WITH_SIZES else 0.0
    text = next((one for one in texts if text_width(one, _SIZE_PX) + 4 <= room), "")
    if not text:
        return ""
    class_ = "size wide middle on-over" if is_over else "size wide middle"
    return text_at((left + right) / 2, plan.bar / 2 + 4.2, text, class_)


def _run(plan: Plan, mark: Mark, stage: StageTimeline, *, overlap: float) -> str:
    """Draw overhead at the bottom, bytes above it, pauses left open: heights are shares of time."""
    start = plan.scale.place(mark.start_us)
    width = max(plan.scale.place(mark.until_us) - start, _min_drawn(plan)) + overlap
    over, busy = (plan.bar * share for share in mark.shares)
    boxes = [
        tag("rect", x=start, y=plan.bar - top, width=width, height=high, class_=class_)
        for top, high, class_ in ((over, over, "over"), (busy, busy - over, _part(stage)))
        if high >= 0.005
    ]
    return tag("g", tag("title", safe(_format_run(mark, stage))), *boxes, class_="run")


def _format_run(mark: Mark, stage: StageTimeline) -> str:
    sizes = stage.fragment_bytes[mark.first : mark.last + 1]
    minimum, maximum = format_bytes(min(sizes)), format_bytes(max(sizes))
    each = minimum if minimum == maximum else f"{minimum} to {maximum}"
    which = f"{stage.number(mark.first)} to {stage.number(mark.last)} of {stage.total}"
    return (
        f"fragments {which}, merged: "
        f"{each} each, {format_moment(mark.start_us)} to {format_moment(mark.exit_us)}"
    )


def _delay(plan: Plan) -> list[str]:
    timeline = plan.drawn.timeline
    start, end = plan.scale.place(timeline.exit_us), plan.scale.place(timeline.latency_us)
    delay = format_given_time(timeline.delay_us)
    return [
        tag("title", safe(f"constant delay of {delay}, in no stage")),
        tag(
            "rect",
            x=start,
            y=1.0,
            width=max(end - start, _MIN_DRAWN),
            height=plan.bar - 2,
            class_="delay",
        ),
    ]


# --- one schedule: its heading, its rows, its critical path and its end ---------------------------


_HEADING_PX = 27.0  # of letters, at their largest
_MAX_STEPS = 6


def draw_schedule(plan: Plan, y: float) -> str:
    """Return the schedule below this place, `plan.height` high."""
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
        more = format_excess(plan.drawn.timeline.latency_us, plan.compared_us)
        heading += f" ({more})" if more else ""
    return shortened(heading, ROOM, _HEADING_PX)


def _below_heading(plan: Plan) -> str:
    """Draw the proof, or else how large the fragments are; then all sizes where they fit."""
    stated = plan.drawn.proof or plan.drawn.range_text
    room = ROOM - text_width(stated, WIDE_PX) - 30
    sizes = f" · {shortened(plan.drawn.cut_text, room, WIDE_PX)}"
    more = tag("tspan", safe(sizes), class_="wide")
    return tag("text", safe(stated), more, x=MARGIN, y=HEADING + 20, class_="muted")


def _axes(plan: Plan) -> Iterator[str]:
    ticks = plan.scale.ticks(_MAX_STEPS)
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
    """Draw the bottleneck on a ground of its own."""
    if not plan.marks_bottleneck:
        return ""
    y = plan.rows_top + plan.busiest * plan.pitch + 2
    return tag("rect", x=0.0, y=y, width=SHEET, height=plan.pitch, class_="ground")


def _critical_path(plan: Plan) -> Iterator[str]:
    points = path_of(_corners(plan))
    yield tag("path", d=points, class_="halo")
    yield tag("path", d=points, class_="path")


def _corners(plan: Plan) -> Iterator[tuple[float, float]]:
    """Return a stair from the first time to the last, below the bars that it passes."""
    timeline, below = plan.drawn.timeline, plan.rows_top + LABEL + plan.bar + BELOW_BAR / 2
    for part in plan.parts:
        y = below + part.stage * plan.pitch
        yield plan.scale.place(part.start_us), y
        yield plan.scale.place(part.exit_us), y
    if plan.has_delay:
        y = below + len(plan.marks) * plan.pitch
        yield plan.scale.place(timeline.exit_us), y
        yield plan.scale.place(timeline.latency_us), y


def _ends(plan: Plan) -> Iterator[str]:
    """Draw where the message has arrived, and the earliest time that any schedule could have."""
    top, bottom = plan.rows_top, plan.rows_bottom
    x = plan.scale.place(plan.drawn.timeline.latency_us)
    if not plan.scale.is_empty:
        yield line_at(x, top, x, bottom, "latency")
    if plan.has_bound and plan.drawn.lower_bound_us is not None:
        yield from _bound(plan, plan.scale.place(plan.drawn.lower_bound_us))


def _bound(plan: Plan, x: float) -> Iterator[str]:
    y = plan.flag_top
    yield line_at(x, y + 8, x, plan.rows_bottom, "bound")
    if x - text_width(PROVEN_BOUND, NARROW_PX) - 8 < MARGIN:
        yield text_at(x + 8, y + 22, PROVEN_BOUND, "bound-label")
    else:
        yield text_at(x - 8, y + 22, PROVEN_BOUND, "bound-label end")
