"""SVG as text: elements, styles, axes with their ticks, and panels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import ceil, floor, isfinite, log2, log10
from types import MappingProxyType
from typing import Protocol, TypeAlias

from app.text.units import format_given_time, printable, width_of
from domain.units import format_bytes

_MEAN_WIDTH = 0.57  # of a character, in font sizes: on the safe side for what browsers put in
_FARTHEST = 1e6  # pixels; renderers are not held to more


def number(value: float) -> str:
    """Return a coordinate to 0.01 px, as short as possible. Raises ValueError for NaN."""
    if not isfinite(value) or abs(value) > _FARTHEST:
        raise ValueError("a coordinate is no number, or far outside the picture")
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def safe(text: str) -> str:
    """Return text for content or attribute: only characters that XML allows, marks escaped."""
    return escape(printable(text))


def tag(name: str, *content: str, **attributes: float | str) -> str:
    """Return an element with markup `content`; `class_` is class, `_` in a name a hyphen."""
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="'
        f'{safe(value) if isinstance(value, str) else number(value)}"'
        for key, value in attributes.items()
    )
    inner = "".join(content)
    return f"<{name}{pairs}>{inner}</{name}>" if inner else f"<{name}{pairs}/>"


def group(content: Iterable[str], **attributes: float | str) -> str:
    """Return a <g> with its elements on lines of their own."""
    return tag("g", "\n", *(f"{part}\n" for part in content if part), **attributes)


def text_at(x: float, y: float, text: str, class_: str = "", **attributes: float | str) -> str:
    """Return a line of text; the class names its size, colour and alignment."""
    named: dict[str, float | str] = {"class_": class_} if class_ else {}
    return tag("text", safe(text), x=x, y=y, **named, **attributes)


def line_at(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    """Return a straight line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def path_of(points: Iterable[tuple[float, float]]) -> str:
    """Return path data through these points."""
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)


def dots_of(points: Iterable[tuple[float, float]]) -> str:
    """Return path data of dots: lines of no length, which round ends turn into discs."""
    return "".join(f"M{number(x)} {number(y)}h0" for x, y in points)


def text_width(text: str, font_px: float) -> float:
    """Return about how wide a text is, in pixels."""
    return width_of(text) * font_px * _MEAN_WIDTH


def shortened(text: str, room_px: float, font_px: float) -> str:
    """Return the text, cut with a mark where it is wider than this many pixels."""
    text = printable(text)
    if text_width(text, font_px) <= room_px:
        return text
    while text and text_width(text + "…", font_px) > room_px:
        text = text[:-1]
    return text + "…"


def wrapped(text: str, room_px: float, font_px: float) -> list[str]:
    """Return the text in lines that fit; a word that is longer than a line is cut."""
    lines = [""]
    for word in printable(text).split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if text_width(joined, font_px) <= room_px:
            lines[-1] = joined
        elif lines[-1]:
            lines.append(shortened(word, room_px, font_px))
        else:
            lines[-1] = shortened(word, room_px, font_px)
    return lines


# --- colours, lines and letters, for light and dark paper -----------------------------------------


Colours: TypeAlias = Mapping[str, tuple[str, str]]  # by name: on light paper, on dark paper
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
_COLOUR = re.compile(r"\$([a-z0-9-]+)")


def in_colours(rules: str, colours: Colours, *, dark: str = "(prefers-color-scheme:dark)") -> str:
    """Return CSS rules in which `$name` is a colour, and after them what changes on `dark` media.

    The colours stand in the rules themselves: programs that show drawings and are no browsers know
    no variables of CSS, and draw in black what they cannot read.
    """
    anew = [
        f"{selector.strip()}{{{';'.join(part for part in body.split(';') if '$' in part)}}}"
        for selector, body in _RULE.findall(rules)
        if "$" in body
    ]
    on_light = _COLOUR.sub(lambda found: colours[found[1]][0], rules)
    on_dark = _COLOUR.sub(lambda found: colours[found[1]][1], "".join(anew))
    return f"{on_light}@media {dark}{{{on_dark}}}\n"


SERIES_COLOURS = ("s0", "s1", "s2", "s3", "s4")
COLOURS: Colours = MappingProxyType(
    {
        "paper": ("#fff", "#14181e"),
        "ink": ("#1c2128", "#e8ebef"),
        "muted": ("#59636e", "#9aa5b1"),
        "grid": ("#e3e7ec", "#29313a"),
        "edge": ("#b6bec8", "#4a5561"),
        "data": ("#2f6db3", "#79b4f2"),
        "line": ("#c2410c", "#ff9a5c"),
        "band": ("#f59e0b", "#f5b942"),
        "end": ("#6b46a8", "#c3a6f5"),
        "s0": ("#0072b2", "#5cb8f0"),
        "s1": ("#d55e00", "#ff9a5c"),
        "s2": ("#00855f", "#3ecf9e"),
        "s3": ("#a3497f", "#e59cc6"),
        "s4": ("#7a6a00", "#e0cf5a"),
    }
)
_RULES = """
svg{color:$ink;font:12px system-ui,-apple-system,"Segoe UI","Noto Sans",sans-serif}
.paper{fill:$paper}
text{fill:$ink;font-variant-numeric:tabular-nums}
.title{font-size:21px;font-weight:650}.heading{font-size:15px;font-weight:650}.strong{font-weight:650}
.muted{fill:$muted}.small,.tick,.figures{font-size:11px}.tick{fill:$muted}
.axis{font-size:11px;font-weight:600}.middle{text-anchor:middle}.end{text-anchor:end}
.frame{fill:none;stroke:$edge}.grid{stroke:$grid}.minor{stroke:$edge}
.on-lines{paint-order:stroke;stroke:$paper;stroke-width:3px;stroke-linejoin:round}
path,line,circle{fill:none}
.dot{stroke:$data;stroke-width:4;stroke-linecap:round}
.few{stroke-opacity:.38}.some{stroke-opacity:.62}.many{stroke-opacity:.9}
.unused{stroke:$muted;stroke-opacity:.35}
.outlier{stroke:$data;stroke-width:1}
.median{stroke:$ink;stroke-width:1.5}
.fitted{stroke:$line;stroke-width:2;stroke-linejoin:round}
.level{stroke:$line;stroke-width:1.5}
.band{fill:$band;fill-opacity:.32}
.range-end{stroke:$end;stroke-width:1.2;stroke-dasharray:4 3}
.zero,.beyond{fill:$data}
.curve{stroke:$data;stroke-width:1.5;stroke-opacity:.75}
.whisker{stroke-width:1.3}
""" + "".join(
    f".{one} .curve,.{one} .whisker{{stroke:${one}}}.{one} .mark,.mark.{one}{{fill:${one}}}"
    for one in SERIES_COLOURS
)
STYLE = in_colours(_RULES, COLOURS)


# --- axes: places of values, ticks and their labels -----------------------------------------------


_ROOM = 0.05  # of an axis' length is left free at either end
_MIN_US, _MAX_US = 1e-300, 1e300  # ends of any logarithmic axis
_OUTSIDE = 0.5  # of its length beyond an axis everything is drawn at the same place, out of sight
_SIZE_STEPS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 48)


@dataclass(frozen=True, slots=True)
class Axis:
    """Values from `minimum` to `maximum` on pixels from `start` to `end`."""

    minimum: float
    maximum: float
    start: float
    end: float
    is_log: bool = True

    def place(self, value: float) -> float:
        """Return where a value is drawn, also one beyond the axis, and 0 on a log axis."""
        share = (self._scaled(value) - self._scaled(self.minimum)) / self._length
        return self.start + (self.end - self.start) * min(1 + _OUTSIDE, max(-_OUTSIDE, share))

    def holds(self, value: float) -> bool:
        """Return whether a value lies on the axis."""
        return self.minimum <= value <= self.maximum

    @property
    def _length(self) -> float:
        return self._scaled(self.maximum) - self._scaled(self.minimum)

    def _scaled(self, value: float) -> float:
        return log10(max(value, _MIN_US)) if self.is_log else value


def log_axis(values: Iterable[float], *, start: float, end: float) -> Axis:
    """Return a log axis that holds these values, those above 0, with a margin at either end."""
    positive = [value for value in values if value > _MIN_US]
    minimum, maximum = min(positive, default=1.0), max(positive, default=10.0)
    room = max(_ROOM * (log10(maximum) - log10(minimum)), 0.06)
    if minimum == maximum:
        room = 0.3
    return Axis(max(_MIN_US, minimum * 10.0**-room), min(_MAX_US, maximum * 10.0**room), start, end)


@dataclass(frozen=True, slots=True)
class Tick:
    """A marked value; minor ones have no label."""

    value: float
    label: str = ""


def size_ticks(axis: Axis, maximum: int) -> list[Tick]:
    """Return powers of two, or the ends of the axis where it holds fewer than two of them."""
    first, last = ceil(log2(axis.minimum)), floor(log2(axis.maximum))
    for step in _SIZE_STEPS:
        powers = [power for power in range(max(0, first), last + 1) if power % step == 0]
        if len(powers) <= maximum:
            break
    if len(powers) >= 2:
        return [Tick(2.0**power, format_bytes(2**power)) for power in powers]
    ends = sorted({ceil(axis.minimum), floor(axis.maximum)})
    return [Tick(float(end), format_bytes(end)) for end in ends if axis.holds(end)]


def time_ticks(axis: Axis, maximum: int) -> list[Tick]:
    """Return powers of ten with minor ticks; 1, 2 and 5; or equal steps, by the axis' length."""
    decades = log10(axis.maximum) - log10(axis.minimum)
    if decades < 0.8:
        return [Tick(value, format_given_time(value)) for value in _equal_steps(axis, maximum)]
    first, last = floor(log10(axis.minimum)), ceil(log10(axis.maximum))
    step = max(1, ceil(decades / maximum))
    labelled = (1, 2, 5) if decades * 3 <= maximum + 1 else (1,)
    ticks = []
    for power in range(first, last + 1):
        for digit in range(1, 10) if step == 1 else (1,):
            value = float(f"{digit}e{power}")
            is_major = digit in labelled and power % step == 0
            if axis.holds(value):
                ticks.append(Tick(value, format_given_time(value) if is_major else ""))
    return ticks


def burst_ticks(axis: Axis, maximum: int) -> list[Tick]:
    """Return powers of two as plain numbers, not more than fit."""
    ticks = [Tick(2.0**power, str(2**power)) for power in range(63)]
    held = [tick for tick in ticks if axis.holds(tick.value)]
    return held[:: max(1, ceil(len(held) / maximum))]


def _equal_steps(axis: Axis, maximum: int) -> list[float]:
    raw = (axis.maximum - axis.minimum) / maximum
    unit = 10.0 ** floor(log10(raw))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= raw * (1 - 1e-9))
    first, last = ceil(axis.minimum / step), floor(axis.maximum / step)
    return [float(f"{place * step:.12g}") for place in range(first, last + 1)]


def nice_above(value: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten not below the value (above 0)."""
    unit = 10.0 ** floor(log10(value))
    return next(
        (unit * factor for factor in (1, 2, 5) if unit * factor >= value * (1 - 1e-9)), unit * 10
    )


def quantile_of(values: Sequence[float], share: float) -> float:
    """Return the value that this share of them does not exceed, by rank; there is at least one."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


# --- panels: measures, the head with its rows, and a frame with axes ------------------------------


LEFT, RIGHT = 58.0, 14.0  # what labels need beside a frame
HEADING_PX, SMALL_PX = 15.0, 11.0
ROW_PX = 15.0
_ROWS_AT = 52.0
SCATTER_PX, BETWEEN_PX, STRIP_PX = 240.0, 34.0, 84.0
ABOVE_PX, BELOW_PX = 54.0, 36.0
CHART_PX = ABOVE_PX + SCATTER_PX + BETWEEN_PX + STRIP_PX + BELOW_PX
_PIXELS_A_LABEL = 58.0


class Panel(Protocol):
    """One of the small multiples."""

    @property
    def head(self) -> Head:
        """What stands above its chart."""

    def chart(self, ident: str, *, width: float, top: float) -> Iterator[str]:
        """Return the chart below `top`, CHART_PX high; `ident` is unique in the document."""


@dataclass(frozen=True, slots=True)
class Head:
    """A panel's heading, a line about it, rows of (label, value, value), and it all in words."""

    heading: str
    about: str
    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    description: str


def panel_height(rows: int) -> float:
    """Return the height of a panel whose head has so many rows."""
    return _ROWS_AT + ROW_PX * rows + CHART_PX


def draw_panel(panel: Panel, ident: str, *, x: float, y: float, width: float, rows: int) -> str:
    """Draw a panel at this place, with space in its head for so many rows."""
    head = panel.head
    content = [
        tag("title", safe(head.heading), id=f"{ident}-title"),
        tag("desc", safe(head.description), id=f"{ident}-desc"),
        text_at(0, 16, shortened(head.heading, width, HEADING_PX), "heading"),
        text_at(0, 34, shortened(head.about, width, SMALL_PX), "muted small"),
        *_rows(head, width),
        *panel.chart(ident, width=width, top=_ROWS_AT + ROW_PX * rows),
    ]
    return group(
        content,
        class_="panel",
        transform=f"translate({x:g} {y:g})",
        role="group",
        aria_labelledby=f"{ident}-title {ident}-desc",
    )


def _rows(head: Head, width: float) -> Iterator[str]:
    columns = (0.0, 0.19 * width, 0.59 * width, width)
    for place, row in enumerate((head.titles, *head.rows)):
        class_ = "figures muted" if place == 0 else "figures"
        for (x, end), cell in zip(pairwise(columns), row, strict=False):
            stated = shortened(cell, end - x - 4, SMALL_PX)
            yield text_at(x, _ROWS_AT + ROW_PX * place, stated, class_)


@dataclass(frozen=True, slots=True)
class Frame:
    """Two axes; y.start is the bottom in pixels."""

    x: Axis
    y: Axis

    def point(self, x: float, y: float) -> tuple[float, float]:
        """Return where a pair of values is drawn."""
        return self.x.place(x), self.y.place(y)

    def clip(self, ident: str) -> str:
        """Return the definition that keeps what refers to it inside the frame."""
        left, right, top, bottom = self.x.start, self.x.end, self.y.end, self.y.start
        box = tag("rect", x=left, y=top - 1, width=right - left, height=bottom - top + 2)
        return tag("clipPath", box, id=ident)

    def grid(
        self, x_ticks: Sequence[Tick], y_ticks: Sequence[Tick], *, labels: Iterable[str] = "xy"
    ) -> str:
        """Return grid lines at labelled ticks, short ones at the others, and their labels."""
        return group(
            [
                tag(
                    "rect",
                    x=self.x.start,
                    y=self.y.end,
                    width=self.x.end - self.x.start,
                    height=self.y.start - self.y.end,
                    class_="frame",
                ),
                *self._x_marks(x_ticks, is_labelled="x" in labels),
                *self._y_marks(y_ticks, is_labelled="y" in labels),
            ],
            class_="axes",
        )

    def _x_marks(self, ticks: Sequence[Tick], *, is_labelled: bool) -> Iterator[str]:
        for tick in ticks:
            x = self.x.place(tick.value)
            yield line_at(x, self.y.start, x, self.y.end, "grid")
            if is_labelled:
                yield text_at(x, self.y.start + 15, tick.label, "tick middle")

    def _y_marks(self, ticks: Sequence[Tick], *, is_labelled: bool) -> Iterator[str]:
        for tick in ticks:
            y = self.y.place(tick.value)
            if not tick.label:
                yield line_at(self.x.start, y, self.x.start + 4, y, "minor")
                continue
            yield line_at(self.x.start, y, self.x.end, y, "grid")
            if is_labelled:
                yield text_at(self.x.start - 7, y + 4, tick.label, "tick end")


def max_labels(axis: Axis) -> int:
    """Return how many labels fit along a horizontal axis."""
    return max(2, int(abs(axis.end - axis.start) / _PIXELS_A_LABEL))
