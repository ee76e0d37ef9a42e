"""The items within a timeline's blocks: thin borders, and what each is where it is pointed at."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

from app.plots.svg import Colours, in_colours, safe, tag
from app.plots.timeline_plan import Mark, Plan, format_moment
from app.text.units import printable
from domain.item_timeline import ItemTimeline
from domain.timeline import Timeline
from domain.units import format_bytes

MIN_ITEM = 4.0  # px; narrower items stand together
_MAX_NAME = 60  # letters of an item's name

_COLOURS: Colours = MappingProxyType(
    {
        "calc": ("#d9a441", "#8a6414"),
        "calc-odd": ("#e8c988", "#6b5222"),
        "paper": ("#fff", "#14181e"),
    }
)
_RULES = """
.sluice-timeline .calc{fill:$calc}.sluice-timeline .odd .calc{fill:$calc-odd}
.sluice-timeline .within{fill:$paper;fill-opacity:0;stroke:$paper;stroke-width:.9;stroke-opacity:.8}
"""
ITEM_STYLE = in_colours(_RULES, _COLOURS, dark="screen and (prefers-color-scheme:dark)")


def of_items(timeline: Timeline) -> ItemTimeline | None:
    """Return the timeline where it is of items, else None."""
    return timeline if isinstance(timeline, ItemTimeline) else None


def fragment_words(timeline: Timeline, fragment: int) -> str:
    """Return which items a fragment holds, behind its size; "" where there are none."""
    timed = of_items(timeline)
    return "" if timed is None else f", {_words(timed, timed.items_of(fragment))}"


def item_spans(plan: Plan, row: int, mark: Mark) -> Iterator[str]:
    """Yield what shows the items of a block: nothing where it is too narrow for two of them."""
    timed = of_items(plan.drawn.timeline)
    if timed is None or plan.scale.is_empty:
        return
    found = list(_spans(plan, timed, row, mark))
    if len(found) < 2:
        return
    stage = timed.stages[row]
    which = f"fragment {stage.number(mark.first)} of {stage.total}"
    for held, start_us, end_us in found:
        stated = (
            f"{which}, {_words(timed, held)}: {format_bytes(_bytes(timed, held))}, "
            f"{_ready(timed, held)}{format_moment(start_us)} to {format_moment(end_us)}"
        )
        start, end = plan.scale.place(start_us), plan.scale.place(end_us)
        box = tag("rect", x=start, width=end - start, height=plan.bar, class_="within")
        yield tag("g", tag("title", safe(stated)), box, class_="item")


def joins_items(plan: Plan) -> bool:
    """Return whether some items are too narrow to be told apart: a closer look shows more."""
    timed = of_items(plan.drawn.timeline)
    if timed is None or plan.scale.is_empty:
        return False
    return any(
        len(held) > 1
        for row, marks in enumerate(plan.marks)
        for mark in marks
        if not mark.is_run
        for held, start_us, end_us in _spans(plan, timed, row, mark)
        if end_us > start_us
    )


def _spans(
    plan: Plan, timed: ItemTimeline, row: int, mark: Mark
) -> Iterator[tuple[range, float, float]]:
    """Yield items that stand together, with their start and end in µs. The first of a block begins
    with it, so that it has the overhead.
    """
    held, min_us = timed.items_of(mark.first), plan.scale.duration_us(MIN_ITEM)
    ends = timed.item_ends_us(row, mark.first)
    first, begun_us = held.start, mark.start_us
    for item, end_us in zip(held, ends, strict=True):
        is_last = item == held.stop - 1
        if is_last or (end_us - begun_us >= min_us and ends[-1] - end_us >= min_us):
            yield range(first, item + 1), begun_us, mark.exit_us if is_last else end_us
            first, begun_us = item + 1, end_us


def _words(timed: ItemTimeline, held: range) -> str:
    names = [_name(timed, item) for item in (held[0], held[-1])]
    if len(held) == 1:
        return f"item {held[0] + 1}{f' ({names[0]})' if timed.sequence.names else ''}"
    between = f" ({names[0]} … {names[1]})" if timed.sequence.names else ""
    return f"items {held[0] + 1} to {held[-1] + 1}{between}"


def _name(timed: ItemTimeline, item: int) -> str:
    name = printable(timed.sequence.label(item))
    return name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 1]}…"


def _bytes(timed: ItemTimeline, held: range) -> int:
    ends = timed.sequence.ends_bytes
    return ends[held.stop] - ends[held.start]


def _ready(timed: ItemTimeline, held: range) -> str:
    if not timed.has_calculation:
        return ""
    return f"ready at {format_moment(timed.sequence.all_ready_us[held.stop])}; "
