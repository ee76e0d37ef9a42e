"""The pictures of docs/plots, drawn from the stored results: time against k n, ratios by class."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log10
from pathlib import Path
from statistics import median
from typing import Any

from app.plots.svg import (
    COLOURS,
    STYLE,
    Axis,
    Frame,
    Tick,
    dots_of,
    group,
    in_colours,
    line_at,
    number,
    path_of,
    safe,
    tag,
    text_at,
)
from bench.hardness import CLASSES

TIME, RATIOS = "exact-time.svg", "exact-ratios.svg"
_WIDTH, _HEIGHT = 760.0, 470.0
_LEFT, _TOP, _BOTTOM = 66.0, 78.0, 46.0
_NAMES_PX = 190.0  # right of the first picture, for the names of its lines
_NAME_PX = 19.0  # a line of them
_OWN = {"native": ("sluice, native", "s0"), "numpy": ("sluice, NumPy", "s2")}
_SIDES = {
    ".s0": "s0",
    ".s2": "s2",
    "[class^=of-cbc]": "s1",
    "[class^=of-clp]": "s3",
    "[class^=of-glop]": "s4",
    "[class^=of-highs]": "end",
}
_OWN_RULES = """
.line{fill:none;stroke:$muted;stroke-width:1.6;stroke-linejoin:round}
.faint{stroke-width:1.1;stroke-opacity:.5}
.dots{fill:none;stroke:$muted;stroke-width:5.5;stroke-linecap:round}
.faint.dots{stroke-width:5;stroke-opacity:.55}
.bar{stroke-width:3;stroke-linecap:round}
.target{stroke:$line;stroke-width:1.3;stroke-dasharray:5 4}
.named{fill:$muted;font-size:12px;font-weight:600}
.of-highs-interior .line{stroke-dasharray:5 4}
""" + "".join(
    f"{side} .line,{side} .dots,{side} .bar{{stroke:${colour}}}{side} .named{{fill:${colour}}}"
    for side, colour in _SIDES.items()
)


@dataclass(frozen=True, slots=True)
class _Series:
    """A line of the first picture: who it is, and (k n, ms) where a time is known."""

    side: str
    problem: str
    points: tuple[tuple[float, float], ...]

    @property
    def name(self) -> str:
        """As it stands beside the line."""
        return _OWN[self.side][0] if self.side in _OWN else self.side.partition(" (")[0]

    @property
    def colour(self) -> str:
        """The class of its colour."""
        if self.side in _OWN:
            return _OWN[self.side][1]
        return "-".join(["of", *self.name.lower().split()[:2]])


def write_plots(results: Path, folder: Path) -> list[Path]:
    """Draw what the stored results have figures for; returns what was written."""
    drawn = {TIME: ("scaling", time_svg), RATIOS: ("structured", ratios_svg)}
    written = []
    for name, (case, draw) in drawn.items():
        stored = results / f"{case}.json"
        if stored.exists():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(draw(json.loads(stored.read_text())))
            written.append(folder / name)
    return written


# ---- time against k n ----------------------------------------------------------------------------


def time_svg(found: dict[str, Any]) -> str:
    """One solve against k n on two logarithmic axes, a line for every side and problem."""
    series = list(_series_of(found))
    cells = [point[0] for one in series for point in one.points]
    times = [point[1] for one in series for point in one.points]
    frame = Frame(
        _decades(cells, start=_LEFT, end=_WIDTH - _NAMES_PX),
        _decades(times, start=_HEIGHT - _BOTTOM, end=_TOP),
    )
    content = [
        frame.grid(_labelled(_ticks(frame.x, _count_label)), _ticks(frame.y, _time_label)),
        *(_line(one, frame) for one in sorted(series, key=lambda one: one.side in _OWN)),
        *_names(series, frame),
        text_at((frame.x.start + frame.x.end) / 2, _HEIGHT - 10, "k × n", "axis middle"),
    ]
    title = "One exact solve: time against fragments × stages"
    about = "8 stages, one core; where the optimum was reached. Ours: a line for every problem"
    return _svg(title, about, content)


def _series_of(found: dict[str, Any]) -> Iterator[_Series]:
    table = next(one for one in found["tables"] if "ms" in one["columns"])
    at = {name: table["columns"].index(name) for name in ("side", "problem", "k n", "ms", "ended")}
    rows = table["rows"]
    for side, problem in dict.fromkeys((row[at["side"]], row[at["problem"]]) for row in rows):
        points = tuple(
            (float(row[at["k n"]]), float(row[at["ms"]]))
            for row in rows
            if (row[at["side"]], row[at["problem"]]) == (side, problem)
            and row[at["ms"]] is not None
            and row[at["ended"]] in ("certified", "optimal")
        )
        if points:
            yield _Series(side, problem, points)


def _line(one: _Series, frame: Frame) -> str:
    places = [frame.point(*point) for point in one.points]
    faint = "faint " if one.side in _OWN else ""
    return group(
        [
            tag("title", safe(f"{one.name}, {one.problem}")),
            tag("path", d=path_of(places), class_=f"{faint}line"),
            tag("path", d=dots_of(places), class_=f"{faint}dots"),
        ],
        class_=one.colour,
    )


def _names(series: list[_Series], frame: Frame) -> Iterator[str]:
    """Every side once, under each other in the margin, with a piece of its line."""
    x, y = frame.x.end + 16, frame.y.end + 6
    for one in {one.name: one for one in series}.values():
        faint = "faint " if one.side in _OWN else ""
        swatch = line_at(x, y, x + 20, y, f"{faint}line")
        dot = tag("path", d=dots_of([(x + 10, y)]), class_=f"{faint}dots")
        yield group([swatch, dot, text_at(x + 28, y + 4, one.name, "named")], class_=one.colour)
        y += _NAME_PX


# ---- ratios by class -----------------------------------------------------------------------------


def ratios_svg(found: dict[str, Any]) -> str:
    """The fastest other's time over ours, a dot for every problem and a bar at each median."""
    ratios = dict(_ratios_of(found))
    every = [value for values in ratios.values() for value in values]
    asked = _asked(found)
    axis = _decades([*every, *asked.values()], start=_HEIGHT - _BOTTOM, end=_TOP)
    frame = Frame(Axis(0.0, len(CLASSES), _LEFT, _WIDTH - 20.0, is_log=False), axis)
    content = [
        frame.grid([], _ticks(axis, _ratio_label)),
        *(part for place in range(len(CLASSES)) for part in _class(place, ratios, asked, frame)),
        *_legend(),
    ]
    title = "How many times faster than the fastest general solver"
    about = (
        "500 fragments × 8 stages; of CBC, CLP, GLOP and HiGHS the fastest that reached the optimum"
    )
    return _svg(title, about, content)


def _ratios_of(found: dict[str, Any]) -> Iterator[tuple[tuple[str, str], list[float]]]:
    """By (class, own side): the ratios of its problems."""
    table = next(one for one in found["tables"] if one["columns"][0] == "problem")
    for side, column in (("native", "native ratio"), ("numpy", "NumPy ratio")):
        at = table["columns"].index(column)
        for hardness in CLASSES:
            own = [row[at] for row in table["rows"] if row[0].startswith(hardness.letter)]
            yield (hardness.letter, side), [float(value) for value in own if value is not None]


def _asked(found: dict[str, Any]) -> dict[str, float]:
    """By class: what was asked for of its native median."""
    limits = {check["what"]: check["limit"] for check in found["checks"]}
    return {
        hardness.letter: limit
        for hardness in CLASSES
        for what, limit in limits.items()
        if what.endswith(f"median of class {hardness.letter}")
    }


def _class(
    place: int,
    ratios: dict[tuple[str, str], list[float]],
    asked: dict[str, float],
    frame: Frame,
) -> Iterator[str]:
    hardness = CLASSES[place]
    bottom = frame.y.start
    middle = frame.x.place(place + 0.5)
    yield text_at(middle, bottom + 17, f"{hardness.letter}: {hardness.name}", "axis middle")
    if place:
        x = frame.x.place(place)
        yield line_at(x, bottom, x, frame.y.end, "grid")
    if hardness.letter in asked:
        y = frame.y.place(asked[hardness.letter])
        yield line_at(frame.x.place(place) + 6, y, frame.x.place(place + 1) - 6, y, "target")
    for side, share in (("native", 0.18), ("numpy", 0.63)):
        values = ratios[hardness.letter, side]
        if values:
            yield _strip(values, frame, x=frame.x.place(place + share), side=side)


def _strip(values: list[float], frame: Frame, *, x: float, side: str) -> str:
    """Dots side by side in their order, and the median in words."""
    step = 6.0
    first = x - step * (len(values) - 1) / 2.0
    places = [(first + step * i, frame.y.place(value)) for i, value in enumerate(values)]
    middle = median(values)
    y = frame.y.place(middle)
    return group(
        [
            tag("path", d=dots_of(places), class_="faint dots"),
            line_at(x - 17, y, x + 17, y, "bar"),
            text_at(x + 21, y + 4, _ratio_label(float(f"{middle:.2g}")), "named on-lines"),
        ],
        class_=_OWN[side][1],
    )


def _legend() -> Iterator[str]:
    x = _LEFT
    for name, colour in _OWN.values():
        yield group(
            [tag("path", d=dots_of([(x + 4, 62)]), class_="dots"), text_at(x + 14, 66, name)],
            class_=colour,
        )
        x += 120.0
    yield line_at(x, 62, x + 26, 62, "target")
    yield text_at(x + 34, 66, "asked for, of the native median")


# ---- what both share -----------------------------------------------------------------------------


def _svg(title: str, about: str, content: Iterable[str]) -> str:
    """The document; colours, letters and lines are those of the project's other plots."""
    parts = [
        tag("title", safe(title)),
        tag("style", STYLE + in_colours(_OWN_RULES, COLOURS)),
        tag("rect", width=_WIDTH, height=_HEIGHT, class_="paper"),
        text_at(16, 28, title, "heading"),
        text_at(16, 46, about, "muted small"),
        *content,
    ]
    inner = "\n".join(parts)
    size = f'width="{number(_WIDTH)}" height="{number(_HEIGHT)}"'
    box = f'viewBox="0 0 {number(_WIDTH)} {number(_HEIGHT)}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} role="img">'
    return f"{head}\n{inner}\n</svg>\n"


def _decades(values: Iterable[float], *, start: float, end: float) -> Axis:
    """A logarithmic axis from a power of ten to another, or half of one where that is enough."""
    positive = [value for value in values if value > 0.0]
    minimum, maximum = log10(min(positive)), log10(max(positive))
    return Axis(10.0 ** (floor(minimum * 2) / 2), 10.0 ** (ceil(maximum * 2) / 2), start, end)


def _ticks(axis: Axis, label: Callable[[float], str]) -> list[Tick]:
    """Every power of ten with its label, and marks between them."""
    powers = range(floor(log10(axis.minimum)), ceil(log10(axis.maximum)) + 1)
    marks = [Tick(10.0**power, label(10.0**power)) for power in powers]
    marks += [Tick(low.value * digit) for low, _ in pairwise(marks) for digit in range(2, 10)]
    return [mark for mark in marks if axis.holds(mark.value)]


def _labelled(ticks: list[Tick]) -> list[Tick]:
    return [tick for tick in ticks if tick.label]


def _count_label(value: float) -> str:
    return f"{value:,.0f}"


def _ratio_label(value: float) -> str:
    return f"{value:,.0f}×" if value >= 1.0 else f"{value:g}×"


def _time_label(value_ms: float) -> str:
    if value_ms >= 1000.0:
        return f"{value_ms / 1000.0:,.0f} s"
    return f"{value_ms:g} ms" if value_ms >= 1.0 else f"{value_ms * 1000.0:g} µs"
