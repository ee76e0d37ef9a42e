"""Curves over a common axis as an SVG element, for pages that stand alone and for paper.

    curves_element(CurvesPlot("Latency by number of fragments", ..., (Curve("best", points),)))

Colours and dashes distinguish curves; the legend below has their names. Points that an axis cannot
hold are left out, never drawn elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite
from types import MappingProxyType

from app.plots.svg import (
    Axis,
    Colours,
    Frame,
    Tick,
    burst_ticks,
    group,
    in_colours,
    line_at,
    log_axis,
    max_labels,
    nice_above,
    number,
    path_of,
    safe,
    size_ticks,
    tag,
    text_at,
    text_width,
    time_ticks,
)
from app.text.units import format_given_time

SCOPE = "sluice-curves"
WIDTH, HEIGHT = 640.0, 320.0
_LEFT, _RIGHT, _TOP, _BELOW = 66.0, 14.0, 26.0, 44.0
_LEGEND_ROW, _LEGEND_PX = 20.0, 12.0
_NUMBER, _DASHES = 7, ("", "7 4", "2 3")  # of colours

_PALETTE: Colours = MappingProxyType(
    {
        "ink": ("#1c2128", "#e8ebef"),
        "muted": ("#59636e", "#9aa5b1"),
        "grid": ("#e3e7ec", "#29313a"),
        "edge": ("#b6bec8", "#4a5561"),
        "c0": ("#0072b2", "#56b4e9"),
        "c1": ("#b84a00", "#f28e4a"),
        "c2": ("#00785a", "#3fc79b"),
        "c3": ("#a1457c", "#e295c4"),
        "c4": ("#7a6500", "#e2cf54"),
        "c5": ("#3b6fa0", "#8fb8e8"),
        "c6": ("#5d5d5d", "#b5b5b5"),
    }
)
_RULES = """
.sluice-curves{max-width:100%;height:auto;
font:12px system-ui,-apple-system,"Segoe UI","Noto Sans",sans-serif}
.sluice-curves text{fill:$ink;font-variant-numeric:tabular-nums}
.sluice-curves .tick{fill:$muted;font-size:11px}
.sluice-curves .axis{font-size:11px;font-weight:600}
.sluice-curves .middle{text-anchor:middle}.sluice-curves .end{text-anchor:end}
.sluice-curves .frame{fill:none;stroke:$edge}.sluice-curves .grid{stroke:$grid}
.sluice-curves .minor{stroke:$edge}
.sluice-curves .curve{fill:none;stroke-width:2;stroke-linejoin:round}
.sluice-curves .mark{fill:none;stroke-width:2}
""" + "".join(f".sluice-curves .c{i}{{stroke:$c{i}}}" for i in range(_NUMBER))
STYLE = in_colours(_RULES, _PALETTE, dark="screen and (prefers-color-scheme:dark)")


class HorizontalAxis(StrEnum):
    """What the horizontal axis is about."""

    FRAGMENTS = "fragments"
    MESSAGE = "message"
    PROCESSES = "processes"
    RATIO = "ratio"
    THRESHOLD = "threshold"
    PULSE = "pulse"


class VerticalAxis(StrEnum):
    """What the vertical axis is about: µs (the first two), a share above something, a factor."""

    LATENCY = "latency"
    TIME = "time"
    EXCESS = "excess"
    SPEEDUP = "speedup"
    GAIN = "gain"


@dataclass(frozen=True, slots=True)
class Curve:
    """A name and points by ascending x; `is_mark` draws each as a ring without a line."""

    name: str
    points: tuple[tuple[float, float], ...]
    is_mark: bool = False


@dataclass(frozen=True, slots=True)
class CurvesPlot:
    """All that is drawn. `floor` is the smallest value on the vertical axis, where given.

    `x_words` and `y_words` stand beside the axes in place of their own.
    """

    title: str
    across: HorizontalAxis
    upwards: VerticalAxis
    curves: tuple[Curve, ...]
    floor: float | None = None
    x_words: str = field(default="", repr=False)  # not part of the picture's name: the title is
    y_words: str = field(default="", repr=False)


def curves_element(plot: CurvesPlot) -> str:
    """Return the <svg>; "" where no point can be drawn."""
    curves = [_drawable(curve, plot.floor) for curve in plot.curves]
    curves = [curve for curve in curves if curve.points]
    if not curves:
        return ""
    ident = f"curves-{hashlib.sha256(repr(plot).encode()).hexdigest()[:10]}"
    frame = _frame(plot, curves)
    legend, rows = _legend(curves)
    height = HEIGHT + _LEGEND_ROW * rows
    parts = [
        tag("title", safe(plot.title), id=f"{ident}-title"),
        tag("desc", safe(_description(curves)), id=f"{ident}-desc"),
        f"<style>{STYLE}</style>",
        tag("defs", frame.clip(f"{ident}-clip")),
        frame.grid(_x_ticks(plot, frame.x), _y_ticks(plot, frame.y)),
        text_at(0, 12, plot.y_words or _Y_WORDS[plot.upwards], "axis"),
        text_at(
            (frame.x.start + frame.x.end) / 2,
            HEIGHT - 8,
            plot.x_words or _X_WORDS[plot.across],
            "axis middle",
        ),
        group(
            (_drawn(curve, place, frame) for place, curve in enumerate(curves)),
            clip_path=f"url(#{ident}-clip)",
        ),
        group(legend, transform=f"translate(0 {number(HEIGHT)})"),
    ]
    size = f'width="{number(WIDTH)}" height="{number(height)}"'
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{SCOPE}" {size} '
        f'viewBox="0 0 {number(WIDTH)} {number(height)}" role="img" '
        f'aria-labelledby="{ident}-title" aria-describedby="{ident}-desc">'
    )
    return "\n".join([opening, *parts, "</svg>"])


_X_WORDS = {
    HorizontalAxis.FRAGMENTS: "fragments",
    HorizontalAxis.MESSAGE: "message",
    HorizontalAxis.PROCESSES: "processes",
    HorizontalAxis.RATIO: "calculation over communication",
    HorizontalAxis.THRESHOLD: "threshold",
    HorizontalAxis.PULSE: "pulse size",
}
_Y_WORDS = {
    VerticalAxis.LATENCY: "latency",
    VerticalAxis.TIME: "time",
    VerticalAxis.EXCESS: "latency above the best known",
    VerticalAxis.SPEEDUP: "speed-up",
    VerticalAxis.GAIN: "gain",
}
_FACTORS = (VerticalAxis.SPEEDUP, VerticalAxis.GAIN)


def _drawable(curve: Curve, floor: float | None) -> Curve:
    minimum = floor or 0.0
    points = tuple(
        (x, max(y, minimum))
        for x, y in curve.points
        if isfinite(x) and isfinite(y) and x > 0.0 and (y > 0.0 or floor is not None)
    )
    return Curve(curve.name, points, curve.is_mark)


def _description(curves: Sequence[Curve]) -> str:
    return f"{len(curves)} curves: {', '.join(curve.name for curve in curves)}."


# --- axes -----------------------------------------------------------------------------------------


def _frame(plot: CurvesPlot, curves: Sequence[Curve]) -> Frame:
    every = [point for curve in curves for point in curve.points]
    across, upwards = [x for x, _ in every], [y for _, y in every]
    right, bottom = WIDTH - _RIGHT, HEIGHT - _BELOW
    x = log_axis(across, start=_LEFT, end=right)
    if plot.across is HorizontalAxis.FRAGMENTS and max(across) <= 64:
        x = Axis(0.0, max(across) + 1.0, _LEFT, right, is_log=False)
    y = log_axis(upwards, start=bottom, end=_TOP)
    is_narrow = max(upwards) < 8.0 * min(upwards)
    if plot.upwards is not VerticalAxis.EXCESS and is_narrow:
        room = 0.06 * (max(upwards) - min(upwards)) or 0.05 * max(upwards)
        y = Axis(max(min(upwards) - room, 1e-9), max(upwards) + room, bottom, _TOP, is_log=False)
    return Frame(x, y)


def _x_ticks(plot: CurvesPlot, axis: Axis) -> list[Tick]:
    maximum = max_labels(axis)
    if plot.across in (HorizontalAxis.MESSAGE, HorizontalAxis.THRESHOLD, HorizontalAxis.PULSE):
        return size_ticks(axis, maximum)
    if plot.across is HorizontalAxis.RATIO:
        return _decades(axis)
    if axis.is_log:
        return burst_ticks(axis, maximum)
    step = max(1, round(nice_above(axis.maximum / maximum)))
    return [Tick(float(count), str(count)) for count in range(step, int(axis.maximum) + 1, step)]


def _y_ticks(plot: CurvesPlot, axis: Axis) -> list[Tick]:
    if plot.upwards in (VerticalAxis.LATENCY, VerticalAxis.TIME):
        return time_ticks(axis, 6) if axis.is_log else _even_ticks(axis, format_given_time)
    if plot.upwards in _FACTORS:
        return _decades(axis) if axis.is_log else _even_ticks(axis, lambda one: f"{one:g}")
    powers = [10.0**power for power in range(-6, 7)]
    minimum = plot.floor or 0.0
    labels = ((one, f"{'≤ ' * (one <= minimum)}{100 * one:g} %") for one in powers)
    return [Tick(one, label) for one, label in labels if axis.holds(one)]


def _decades(axis: Axis) -> list[Tick]:
    """Powers of ten; those between them too where there are few."""
    every = [step * 10.0**power for power in range(-15, 16) for step in (1.0, 2.0, 5.0)]
    held = [one for one in every if axis.holds(one)]
    step = -(-len(held) // 8)
    return [Tick(one, f"{one:g}") for one in held[:: step if step < 3 else 3 * -(-step // 3)]]


def _even_ticks(axis: Axis, label: Callable[[float], str]) -> list[Tick]:
    step = nice_above((axis.maximum - axis.minimum) / 7)
    first = int(axis.minimum / step) + 1
    values = [float(f"{place * step:.10g}") for place in range(first, first + 10)]
    return [Tick(value, label(value)) for value in values if axis.holds(value)]


# --- curves ---------------------------------------------------------------------------------------


def _drawn(curve: Curve, place: int, frame: Frame) -> str:
    points = [frame.point(x, y) for x, y in curve.points]
    title, class_ = tag("title", safe(curve.name)), f"c{place % _NUMBER}"
    if curve.is_mark:
        rings = (tag("circle", cx=x, cy=y, r=5.0, class_=f"mark {class_}") for x, y in points)
        return group([title, *rings])
    dash = _DASHES[place % len(_DASHES)]
    more = {"stroke_dasharray": dash} if dash else {}
    return tag("path", title, d=path_of(points), class_=f"curve {class_}", **more)


def _legend(curves: Sequence[Curve]) -> tuple[list[str], int]:
    """Return the entries, and in how many rows they stand."""
    parts, x, row = [], _LEFT, 0
    for place, curve in enumerate(curves):
        width = 30.0 + text_width(curve.name, _LEGEND_PX) + 16.0
        if x + width > WIDTH and x > _LEFT:
            x, row = _LEFT, row + 1
        where = f"translate({number(x)} {number(_LEGEND_ROW * row)})"
        parts.append(group(_entry(curve, place), transform=where))
        x += width
    return parts, row + 1


def _entry(curve: Curve, place: int) -> Iterator[str]:
    class_ = f"c{place % _NUMBER}"
    if curve.is_mark:
        yield tag("circle", cx=11.0, cy=8.0, r=5.0, class_=f"mark {class_}")
    else:
        dash = _DASHES[place % len(_DASHES)]
        line = line_at(0, 8, 22, 8, f"curve {class_}")
        yield group([line], stroke_dasharray=dash) if dash else line
    yield text_at(28, 12, curve.name)
