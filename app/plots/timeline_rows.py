"""The rows of a timeline: a label, the idle ground, and a block for each fragment."""

from __future__ import annotations

from collections.abc import Iterator

from app.plots.svg import group, number, safe, shortened, tag, text_at, text_width
from app.plots.timeline_marks import Mark
from app.plots.timeline_plan import LABEL, MARGIN, NARROW_PX, ROOM, WIDE_PX, Plan
from app.plots.timeline_words import costs_text, format_moment, row_details, row_title
from app.text.units import format_given_time
from domain.course import StageCourse
from domain.units import format_bytes

_SIZE_PX = 12.0
_LEAST_DRAWN = 0.8
_OVERLAP = 0.7  # of a run with the one that goes on from it: no seam where pixels are rounded
_LEAST_BAR_WITH_SIZES = 20.0


def draw_rows(plan: Plan) -> Iterator[str]:
    """A row for each stage, and one for the constant delay."""
    for j, stage in enumerate(plan.drawn.course.stages):
        title = tag("title", safe(row_title(stage, is_busiest=_is_busiest(plan, j))))
        class_ = "stage bottleneck" if _is_busiest(plan, j) else "stage"
        yield _row(plan, j, [title, *_bar(plan, j, stage)], class_)
    if plan.has_delay:
        yield _row(plan, len(plan.marks), _delay(plan), "after")


def _row(plan: Plan, place: int, content: list[str], class_: str) -> str:
    y = plan.rows_top + place * plan.pitch + LABEL
    return group(content, class_=class_, transform=f"translate(0 {number(y)})")


def draw_labels(plan: Plan) -> Iterator[str]:
    """What stands above each bar, to be drawn over whatever crosses it."""
    course = plan.drawn.course
    for j, stage in enumerate(course.stages):
        yield _label(plan, j, stage)
    if plan.has_delay:
        name, time = "constant delay", format_given_time(course.delay_us)
        widths = [text_width(f"{name}  {time}", 1.1 * px) for px in (NARROW_PX, WIDE_PX)]
        spans = tag("tspan", name, class_="name"), _about(time)
        yield _labelled(plan, len(plan.marks), (widths[0], widths[1]), *spans)


def _is_busiest(plan: Plan, j: int) -> bool:
    return plan.marks_bottleneck and j == plan.busiest


def _label(plan: Plan, j: int, stage: StageCourse) -> str:
    is_busiest = _is_busiest(plan, j)
    costs, details = costs_text(stage), row_details(stage, is_busiest=is_busiest)
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


def _name(stage: StageCourse, others: str, px: float) -> str:
    """A stage's name in bold letters, shortened to what the rest of its label leaves."""
    name = stage.stage.name
    return shortened(name, ROOM - text_width(others, px), _bold_px(name, px))


def _bold_px(name: str, px: float) -> float:
    """The size of common letters that are about as wide as these are in bold."""
    letters = max(1, len(name))
    capitals, wide = (sum(map(test, name)) / letters for test in (str.isupper, _is_wide))
    return px * (1.12 + 0.35 * capitals + 0.6 * wide)


def _is_wide(letter: str) -> bool:
    return letter in "mwMW@%"


def _about(text: str) -> str:
    return tag("tspan", safe(text), class_="muted", dx=8.0)


def _labelled(plan: Plan, place: int, widths: tuple[float, float], *spans: str) -> str:
    """A label on a ground of its own, below which the critical path passes unseen.

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


def _bar(plan: Plan, j: int, stage: StageCourse) -> Iterator[str]:
    start, end = plan.scale.place(stage.start_us[0]), plan.scale.place(stage.exit_us[-1])
    yield tag(
        "rect",
        x=start,
        width=max(end - start, _LEAST_DRAWN),
        height=plan.bar,
        fill=f"url(#{plan.ident}-idle)",
        class_="idle",
    )
    leg = plan.legs[j]
    marks = plan.marks[j]
    for mark, after in zip(marks, (*marks[1:], None), strict=False):
        if mark.is_run:
            goes_on = after is not None and after.is_run and after.start_us == mark.until_us
            yield _run(plan, mark, stage, overlap=_OVERLAP if goes_on else 0.0)
        else:
            is_critical = leg.first <= mark.first <= leg.last
            yield _block(plan, mark, stage, is_critical=is_critical)


def _block(plan: Plan, mark: Mark, stage: StageCourse, *, is_critical: bool) -> str:
    size = stage.fragment_bytes[mark.first]
    said = (
        f"fragment {mark.first + 1} of {len(stage.fragment_bytes)}: {format_bytes(size)}, "
        f"{format_moment(mark.start_us)} to {format_moment(mark.exit_us)}"
        + (", critical path" if is_critical else "")
    )
    start = plan.scale.place(mark.start_us)
    end = max(plan.scale.place(mark.exit_us), start + _least_drawn(plan))
    middle = min(end, plan.scale.place(mark.start_us + mark.overhead_us))
    boxes = [
        tag("rect", x=left, width=right - left, height=plan.bar, class_=class_)
        for left, right, class_ in ((start, middle, "over"), (middle, end, "byte"))
        if right - left >= 0.005
    ]
    text = _size_text(plan, format_bytes(size), start, middle, end)
    class_ = "block" + " odd" * (mark.first % 2) + " critical" * is_critical
    return tag("g", tag("title", safe(said)), *boxes, text, class_=class_)


def _least_drawn(plan: Plan) -> float:
    """How wide a mark is at least: more where nothing takes time, and all stands at 0."""
    return 6.0 if plan.scale.is_empty else _LEAST_DRAWN


def _size_text(plan: Plan, text: str, start: float, middle: float, end: float) -> str:
    """The size inside the greater part of the block, where it has room."""
    is_over = middle - start > end - middle
    left, right = (start, middle) if is_over else (middle, end)
    if plan.bar < _LEAST_BAR_WITH_SIZES or text_width(text, _SIZE_PX) + 8 > right - left:
        return ""
    class_ = "size wide middle on-over" if is_over else "size wide middle"
    return text_at((left + right) / 2, plan.bar / 2 + 4.2, text, class_)


def _run(plan: Plan, mark: Mark, stage: StageCourse, *, overlap: float) -> str:
    """Overhead at the bottom, bytes above it, pauses left open: heights are shares of time."""
    start = plan.scale.place(mark.start_us)
    width = max(plan.scale.place(mark.until_us) - start, _least_drawn(plan)) + overlap
    over, busy = (plan.bar * share for share in mark.shares)
    boxes = [
        tag("rect", x=start, y=plan.bar - top, width=width, height=high, class_=class_)
        for top, high, class_ in ((over, over, "over"), (busy, busy - over, "byte"))
        if high >= 0.005
    ]
    return tag("g", tag("title", safe(_run_text(mark, stage))), *boxes, class_="run")


def _run_text(mark: Mark, stage: StageCourse) -> str:
    sizes = stage.fragment_bytes[mark.first : mark.last + 1]
    least, greatest = format_bytes(min(sizes)), format_bytes(max(sizes))
    each = least if least == greatest else f"{least} to {greatest}"
    return (
        f"fragments {mark.first + 1} to {mark.last + 1} of {len(stage.fragment_bytes)}, merged: "
        f"{each} each, {format_moment(mark.start_us)} to {format_moment(mark.exit_us)}"
    )


def _delay(plan: Plan) -> list[str]:
    course = plan.drawn.course
    start, end = plan.scale.place(course.exit_us), plan.scale.place(course.latency_us)
    delay = format_given_time(course.delay_us)
    return [
        tag("title", safe(f"constant delay of {delay}, in no stage")),
        tag(
            "rect",
            x=start,
            y=1.0,
            width=max(end - start, _LEAST_DRAWN),
            height=plan.bar - 2,
            class_="delay",
        ),
    ]
