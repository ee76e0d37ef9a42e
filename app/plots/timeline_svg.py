"""Schedules of one message as a stand-alone SVG document: when which fragment is in which stage.

    render_timeline_svg([DrawnSchedule("exact", timeline, lower_bound_us=184.3)])

Several schedules stand one above the other on one time scale. No script, no font and no address
from elsewhere; the same schedules give the same bytes, other ones other names inside, so that
several pictures can be part of one page.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.plots.svg import group, line_at, number, safe, shortened, tag, text_at, text_width
from app.plots.timeline_items import ITEM_STYLE, MIN_ITEM, joins_items, of_items
from app.plots.timeline_plan import (
    MARGIN,
    NARROW_PX,
    ROOM,
    SHEET,
    WIDE_PX,
    DrawnSchedule,
    Plan,
    check_rows,
    description,
    headline,
    planned,
    span_of,
)
from app.plots.timeline_rows import SCOPE, STYLE, draw_schedule
from app.text.units import PROVEN_BOUND
from domain.errors import InvalidInput

_TITLE_PX = 32.0
_TITLE, _LINE, _LEGEND, _BETWEEN = 50.0, 32.0, 32.0, 26.0
_MIN_WINDOW = 1e-9  # of all the time


def render_timeline_svg(schedules: Sequence[DrawnSchedule]) -> str:
    """Return the document, beginning with the XML declaration. Raises InvalidInput, and
    StrategyDeclined for more rows than a picture has.
    """
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{timeline_element(schedules)}\n'


@dataclass(frozen=True, slots=True)
class Picture:
    """The <svg>, which shows `from_us` to `to_us` of the time from 0 to `span_us`.

    `is_merged`: some of its marks are several blocks.
    """

    markup: str
    span_us: float
    from_us: float
    to_us: float
    is_merged: bool


def timeline_element(schedules: Sequence[DrawnSchedule], *, rules: str = STYLE) -> str:
    """Return the <svg> alone, for HTML. A page that brings `STYLE` itself gives no `rules`.

    Raises InvalidInput unless there is a schedule and all are of one message.
    """
    return timeline_picture(schedules, rules=rules).markup


def timeline_picture(
    schedules: Sequence[DrawnSchedule],
    *,
    rules: str = STYLE,
    window: tuple[float, float] | None = None,
) -> Picture:
    """Return the <svg> of a window of time (from, to in µs), or of all. Raises InvalidInput."""
    _check(schedules)
    span_us = span_of(schedules)
    window = _within(window, span_us)
    ident = f"timeline-{_digest(schedules, window)}"
    plans = planned(schedules, ident, window)
    from_us, to_us = window or (0.0, span_us)
    is_merged = any(plan.merged_blocks or joins_items(plan) for plan in plans)
    return Picture(_element(schedules, plans, rules), span_us, from_us, to_us, is_merged)


def _within(window: tuple[float, float] | None, span_us: float) -> tuple[float, float] | None:
    """Return the window as far as there is anything in it, or all of it."""
    if window is None:
        return None
    from_us, to_us = window[0], min(window[1], span_us)
    return (from_us, to_us) if to_us - from_us > _MIN_WINDOW * span_us else None


def _element(schedules: Sequence[DrawnSchedule], plans: Sequence[Plan], rules: str) -> str:
    ident = plans[0].ident
    if rules and of_items(schedules[0].timeline):
        rules += ITEM_STYLE
    legend, legend_lines = _legend(schedules, ident)
    top = _TITLE + _LEGEND * legend_lines + 8
    bottom = top + sum(plan.height + _BETWEEN for plan in plans)
    footer = list(_footer(plans, bottom))
    height = bottom + _LINE * len(footer) + (4 if footer else 0)
    parts = [
        tag("title", safe(_title(schedules)), id=f"{ident}-title"),
        tag("desc", safe(" ".join(map(description, schedules))), id=f"{ident}-desc"),
        *([f"<style>{rules}</style>"] if rules else []),
        _hatch(ident),
        tag("rect", width=SHEET, height=height, class_="paper"),
        text_at(MARGIN, 36, shortened(headline(schedules[0].timeline), ROOM, _TITLE_PX), "title"),
        group(legend, class_="legend"),
        *_stacked(plans, top),
        *footer,
    ]
    size = f'width="{number(SHEET)}" height="{number(height)}"'
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{SCOPE}" {size} '
        f'viewBox="0 0 {number(SHEET)} {number(height)}" role="img" '
        f'aria-labelledby="{ident}-title" aria-describedby="{ident}-desc">'
    )
    return "\n".join([opening, *parts, "</svg>"])


def _check(schedules: Sequence[DrawnSchedule]) -> None:
    if not schedules:
        raise InvalidInput("expected at least one schedule to draw")
    if len({one.timeline.message_bytes for one in schedules}) > 1:
        raise InvalidInput("expected schedules of one message")
    for one in schedules:
        check_rows(one.timeline)


def _stacked(plans: Sequence[Plan], y: float) -> Iterator[str]:
    for plan in plans:
        yield draw_schedule(plan, y)
        y += plan.height + _BETWEEN


def _digest(schedules: Sequence[DrawnSchedule], window: tuple[float, float] | None) -> str:
    """Return a digest that is equal for equal pictures."""
    digest = hashlib.sha256(repr(window).encode() if window else b"")
    for one in schedules:
        # Of the bound what is shown: its last bits differ from machine to machine.
        digest.update(repr((one.heading, one.proof, one.timeline.delay_us)).encode())
        if (timed := of_items(one.timeline)) is not None:
            digest.update(timed.sequence.digest.encode())
        for stage in one.timeline.stages:
            digest.update(repr(stage.stage).encode())
            digest.update(array("q", stage.fragment_bytes).tobytes())
    return digest.hexdigest()[:10]


# --- footer ---------------------------------------------------------------------------------------


def _title(schedules: Sequence[DrawnSchedule]) -> str:
    facts = [", ".join(filter(None, (one.heading, one.proof))) for one in schedules]
    return f"{headline(schedules[0].timeline)}. {'; '.join(facts)}"


def _footer(plans: Sequence[Plan], y: float) -> Iterator[str]:
    """Yield what was merged, and how much."""
    if plans[0].scale.is_empty:
        yield text_at(
            MARGIN, y + 14, "Nothing takes any time here: all of it stands at 0.", "muted note"
        )
        return
    merged = sum(plan.merged_blocks for plan in plans)
    if not merged and any(map(joins_items, plans)):
        line = f"Items narrower than {MIN_ITEM:g} px stand together."
        yield text_at(MARGIN, y + 14, line, "muted note")
        yield text_at(MARGIN, y + 14 + _LINE, "", "muted note")
        return
    if not merged and plans[0].is_window:
        # As high as the picture of all of it, which a page exchanges for this one.
        yield text_at(MARGIN, y + 14, "Every block is drawn for itself.", "muted note")
        yield text_at(MARGIN, y + 14 + _LINE, "", "muted note")
    if not merged:
        return
    minimum = f"{plans[0].minimum:.1f}".removesuffix(".0")
    lines = (
        f"{merged} blocks narrower than {minimum} px are merged into runs.",
        "In a run heights are shares of time: overhead, bytes, idle.",
    )
    for place, line in enumerate(lines):
        yield text_at(MARGIN, y + 14 + _LINE * place, line, "muted note")


# --- legend ---------------------------------------------------------------------------------------


def _hatch(ident: str) -> str:
    line = line_at(0, -1, 0, 8, "hatch")
    return tag(
        "defs",
        tag(
            "pattern",
            line,
            id=f"{ident}-idle",
            width=7.0,
            height=7.0,
            patternUnits="userSpaceOnUse",
            patternTransform="rotate(45)",
        ),
    )


def _legend(schedules: Sequence[DrawnSchedule], ident: str) -> tuple[list[str], int]:
    """Return the entries for narrow windows and for wide ones, and in how many lines they stand."""
    entries = list(_entries(schedules, ident))
    narrow, lines = _placed(entries, NARROW_PX, 0)
    _, wide_lines = _placed(entries, WIDE_PX, 0)
    if of_items(schedules[0].timeline) is not None:
        lines = max(lines, wide_lines + 1)  # where it is wide a page hides the first line
    wide, _ = _placed(entries, WIDE_PX, lines - wide_lines)
    return [group(narrow, class_="narrow"), group(wide, class_="wide")], lines


def _placed(entries: Sequence[tuple[str, str]], px: float, line: int) -> tuple[list[str], int]:
    """Return entries from this line on, spaced for letters of this size; and the line behind."""
    parts, x = [], MARGIN
    for label, mark in entries:
        width = 34 + text_width(label, px) + 18
        if x + width - 18 > SHEET - MARGIN and x > MARGIN:
            x, line = MARGIN, line + 1
        y = _TITLE + 6 + _LEGEND * line
        parts.append(
            group([mark, text_at(34, 14, label, "tick")], transform=f"translate({x:g} {y:g})")
        )
        x += width
    return parts, line + 1


def _entries(schedules: Sequence[DrawnSchedule], ident: str) -> Iterator[tuple[str, str]]:
    timed = of_items(schedules[0].timeline)
    if timed is not None and timed.has_calculation:
        yield "calculation", tag("rect", width=26.0, height=16.0, class_="calc")
    if timed is not None:
        yield (
            "item",
            "".join(
                tag("rect", x=x, width=13.0, height=16.0, class_=class_)
                for x in (0.0, 13.0)
                for class_ in ("byte", "within")
            ),
        )
    yield "overhead", tag("rect", width=26.0, height=16.0, class_="over")
    yield "bytes", tag("rect", width=26.0, height=16.0, class_="byte")
    yield "idle", tag("rect", width=26.0, height=16.0, fill=f"url(#{ident}-idle)")
    yield "critical path", line_at(0, 8, 26, 8, "path")
    yield "latency", line_at(13, -2, 13, 18, "latency")
    if any(one.lower_bound_us is not None for one in schedules):
        yield PROVEN_BOUND, line_at(13, -2, 13, 18, "bound")
    if len(schedules[0].timeline.stages) > 1:
        yield "bottleneck", text_at(4, 14, "▶", "name")
