"""The plot of a fit as one stand-alone SVG document.

    render_fit_svg(fit, plot) -> str

No script, no font and no address from elsewhere; the same fit gives the same bytes. Colours follow
the reader's preference for light or dark. All text is text, and every panel has title and
description for readers who cannot see it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from app.plots.stage_panel import StagePanel
from app.plots.svg import (
    ABOVE_PX,
    BELOW_PX,
    CHART_PX,
    LEFT,
    STYLE,
    Frame,
    Head,
    Panel,
    burst_ticks,
    dots_of,
    draw_panel,
    group,
    line_at,
    log_axis,
    max_labels,
    number,
    panel_height,
    path_of,
    safe,
    shortened,
    size_ticks,
    tag,
    text_at,
    text_width,
    time_ticks,
    wrapped,
)
from app.text.numbers import DIGITS, format_estimate, format_figure
from app.text.units import format_given_time
from domain.fit import TraceFit
from domain.fit_plot import FitPlot, SignatureCurve, SignaturePlot
from domain.loggp import Estimate, LogGPFit, LogGPParameters
from domain.measurement import TraceKind
from domain.units import format_bytes

SERIES = (
    ("send_overhead_us", "send overhead"),
    ("receive_overhead_us", "receive overhead"),
    ("message_gap_us", "message gap"),
    ("wire_latency_us", "wire latency"),
    ("round_trip_us", "round trip"),
)
_LABELS_PX = 104.0  # right of a frame, for what its curves are
_MAX_ROWS = 10
_LINE_PX = 13.0  # minimum distance of two labels
_BEYOND = 10.0  # how far the time axis follows intervals beyond the estimates


@dataclass(frozen=True, slots=True)
class SignaturePanel:
    """The signature at one message size, with the levels that were found in it."""

    plot: SignaturePlot
    parameters: LogGPParameters | None

    @property
    def head(self) -> Head:
        """Return size, what is drawn, and the parameters."""
        rows = tuple(_found(self.parameters)) if self.parameters else ()
        stated = "; ".join(f"{name}: {estimate}" for name, estimate in rows)
        return Head(
            heading=f"signature of {format_bytes(self.plot.message_bytes)} messages",
            about="mean cost of a message in a burst, by computation between two of them",
            titles=("at this size", "estimate, 95 % interval"),
            rows=rows,
            description=f"Mean cost of a message over the burst, both logarithmic. {stated}.",
        )

    def chart(self, ident: str, *, width: float, top: float) -> Iterator[str]:
        """Draw cost over burst, a curve for each computation."""
        curves = self.plot.curves
        frame = _signature_frame(curves, width, top)
        yield frame.grid(burst_ticks(frame.x, max_labels(frame.x)), time_ticks(frame.y, 8))
        yield text_at(0, frame.y.end - 8, "cost of a message", "axis")
        middle = (frame.x.start + frame.x.end) / 2
        yield text_at(middle, frame.y.start + 31, "messages in a burst", "axis middle")
        content = [part for curve in curves for part in _curve(curve, frame)]
        yield tag("defs", frame.clip(f"{ident}-clip"))
        yield group(content, clip_path=f"url(#{ident}-clip)")
        yield group(_levels(self.parameters, frame), class_="levels")
        yield from _curve_labels(curves, frame)


def _found(parameters: LogGPParameters) -> Iterator[tuple[str, str]]:
    for name, label in SERIES:
        estimate: Estimate | None = getattr(parameters, name)
        if estimate is not None:
            yield label, format_estimate(estimate.value, estimate.interval, "µs")


def _signature_frame(curves: tuple[SignatureCurve, ...], width: float, top: float) -> Frame:
    bursts = [float(burst) for curve in curves for burst in curve.bursts]
    costs = [cost for curve in curves for cost in curve.cost_us]
    bottom = top + CHART_PX - BELOW_PX
    x = log_axis(bursts, start=LEFT, end=width - _LABELS_PX)
    return Frame(x, log_axis(costs, start=bottom, end=top + ABOVE_PX))


def _curve(curve: SignatureCurve, frame: Frame) -> Iterator[str]:
    points = [frame.point(*pair) for pair in zip(curve.bursts, curve.cost_us, strict=True)]
    yield tag("path", d=path_of(points), class_="curve")
    yield tag("path", d=dots_of(points), class_="dot many sample")


def _curve_labels(curves: tuple[SignatureCurve, ...], frame: Frame) -> Iterator[str]:
    """Yield labels behind the curves' last points, moved where they touch; all that fit."""
    places = [(frame.y.place(curve.cost_us[-1]), curve.computation_us) for curve in curves]
    lowest = frame.y.end - _LINE_PX
    for place, computation_us in sorted(places, key=lambda one: (round(one[0] / 4), -one[1])):
        lowest = max(min(place, frame.y.start), lowest + _LINE_PX)
        if lowest > frame.y.start + 8:
            return
        label = "no computation" if computation_us == 0.0 else f"{_time(computation_us)} between"
        yield text_at(frame.x.end + 6, lowest + 4, label, "tick")


def _time(time_us: float) -> str:
    return format_given_time(time_us, DIGITS)


def _levels(parameters: LogGPParameters | None, frame: Frame) -> Iterator[str]:
    """Yield dashed lines at the overhead of sending and the message gap."""
    for name, label in SERIES[:3:2]:
        estimate: Estimate | None = getattr(parameters, name, None)
        if estimate is not None and frame.y.holds(estimate.value):
            y = frame.y.place(estimate.value)
            yield line_at(frame.x.start, y, frame.x.end, y, "range-end")
            yield text_at(frame.x.start + 6, y - 4, label, "tick on-lines")


@dataclass(frozen=True, slots=True)
class ParametersPanel:
    """LogP's parameters over message size, with their intervals."""

    fit: LogGPFit

    @property
    def head(self) -> Head:
        """Return what is drawn, and the estimates at each size."""
        rows = tuple(self._rows())
        assumed = " ".join(self.fit.assumptions)
        stated = "; ".join(": ".join(row) for row in rows)
        return Head(
            heading="LogP parameters by message size",
            about=self._per_byte(),
            titles=("size", "send, receive overhead", "message gap, wire latency"),
            rows=rows[:_MAX_ROWS],
            description=f"Parameters over message size, both logarithmic. {stated}. {assumed}",
        )

    def chart(self, ident: str, *, width: float, top: float) -> Iterator[str]:
        """Draw a series of marks for each parameter."""
        sizes = [float(size.message_bytes) for size in self.fit.sizes]
        bottom = top + CHART_PX - BELOW_PX
        x = log_axis(sizes, start=LEFT, end=width - _LABELS_PX)
        frame = Frame(x, log_axis(self._times(), start=bottom, end=top + ABOVE_PX))
        yield tag("defs", frame.clip(f"{ident}-clip"))
        yield frame.grid(size_ticks(x, max_labels(x)), time_ticks(frame.y, 7))
        yield text_at(0, frame.y.end - 8, "time", "axis")
        yield text_at((x.start + x.end) / 2, frame.y.start + 31, "size", "axis middle")
        place = 0
        for index, (name, label) in enumerate(SERIES):
            known = [(size.message_bytes, getattr(size, name)) for size in self.fit.sizes]
            pairs = [(size, estimate) for size, estimate in known if estimate is not None]
            if pairs:
                content = _series(pairs, frame, index)
                yield group(content, class_=f"series s{index}", clip_path=f"url(#{ident}-clip)")
                y = frame.y.end + 14 + 17 * place
                yield tag("path", d=_shape(index, x.end + 12, y - 4), class_=f"mark s{index}")
                yield text_at(x.end + 21, y, label, "tick")
                place += 1

    def _per_byte(self) -> str:
        if self.fit.byte_gap_ns is None:
            return "estimates and 95 % intervals"
        per_byte = self.fit.byte_gap_ns
        stated = format_estimate(per_byte.value, per_byte.interval, "ns")
        return f"time per byte of long messages {stated}"

    def _rows(self) -> Iterator[tuple[str, str, str]]:
        for size in self.fit.sizes:
            yield (
                format_bytes(size.message_bytes),
                _pair(size.send_overhead_us, size.receive_overhead_us),
                _pair(size.message_gap_us, size.wire_latency_us),
            )

    def _times(self) -> list[float]:
        """Return every estimate, and the intervals as far as they stay near them."""
        found = [
            estimate
            for size in self.fit.sizes
            for name, _ in SERIES
            if (estimate := getattr(size, name)) is not None
        ]
        values = [estimate.value for estimate in found if estimate.value > 0.0]
        minimum, maximum = min(values, default=1.0) / _BEYOND, max(values, default=1.0) * _BEYOND
        ends = [end for estimate in found for end in estimate.interval if end > 0.0]
        return [*values, *(min(max(end, minimum), maximum) for end in ends)]


def _pair(first: Estimate | None, second: Estimate | None) -> str:
    return ", ".join(
        f"{format_figure(one.value)} µs" if one else "not known" for one in (first, second)
    )


def _series(pairs: list[tuple[int, Estimate]], frame: Frame, index: int) -> Iterator[str]:
    points = [frame.point(size, estimate.value) for size, estimate in pairs]
    yield tag("path", d=path_of(points), class_="curve")
    for (x, y), (_, estimate) in zip(points, pairs, strict=True):
        low, high = (frame.y.place(end) for end in estimate.interval)
        yield line_at(x, low, x, high, "whisker")
        yield tag("path", d=_shape(index, x, y), class_="mark")


def _shape(index: int, x: float, y: float) -> str:
    """Return disc, square, triangle, diamond or inverted triangle: distinct without colours."""
    start = {
        0: (x - 3.5, y, "a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z"),
        1: (x - 3, y - 3, "h6v6h-6z"),
        2: (x - 4, y + 3, "h8l-4-7z"),
        3: (x - 4, y, "l4-4l4 4l-4 4z"),
        4: (x - 4, y - 3, "h8l-4 7z"),
    }[index]
    return f"M{number(start[0])} {number(start[1])}{start[2]}"


TITLES = {
    TraceKind.DIRECT: "Fit of every stage, measured directly",
    TraceKind.INDIRECT: "Fit from outside: latencies and inter-arrival times",
    TraceKind.END_TO_END: "Fit of end-to-end latencies",
    TraceKind.LOGP: "Fit of LogP signatures",
}
_MARGIN, _BETWEEN_X, _BETWEEN_Y = 32.0, 40.0, 40.0
_ONE_WIDE, _TWO_WIDE = 820.0, 560.0
_HEADER_PX = 118.0
_MAX_NOTICES, _MAX_LINES = 40, 4
_REPORTED = ("format", "rows", "sizes", "time_is", "statistic")
_PX, _SMALL_PX, _LINE_PX = 12.0, 11.0, 16.0

Mark: TypeAlias = Callable[[float, float], str]


@dataclass(frozen=True, slots=True)
class _Layout:
    """Columns of panels of one width, and the height and head rows of each line of them."""

    columns: int
    panel_width: float
    rows: tuple[int, ...]

    @property
    def width(self) -> float:
        """Of the document."""
        between = (self.columns - 1) * _BETWEEN_X
        return 2 * _MARGIN + self.columns * self.panel_width + between

    def top(self, line: int) -> float:
        """Return where a line of panels begins."""
        above = sum(panel_height(rows) + _BETWEEN_Y for rows in self.rows[:line])
        return _HEADER_PX + above


def render_fit_svg(fit: TraceFit, plot: FitPlot) -> str:
    """Return the document, beginning with the XML declaration."""
    panels = _panels(fit, plot)
    layout = _layout(panels)
    footer_at = layout.top(len(layout.rows))
    footer = list(_footer(fit, footer_at, layout.width))
    height = footer_at + _LINE_PX * len(footer) + _MARGIN / 2
    parts = [
        tag("title", safe(TITLES[fit.kind]), id="plot-title"),
        tag("desc", safe(_description(fit, panels)), id="plot-desc"),
        f"<style>{STYLE}</style>",
        tag("rect", width=layout.width, height=height, class_="paper"),
        *_header(fit, plot, layout.width),
        *_drawn(panels, layout),
        group(footer, class_="notices"),
    ]
    size = f'width="{number(layout.width)}" height="{number(height)}"'
    box = f'viewBox="0 0 {number(layout.width)} {number(height)}"'
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} '
        'role="graphics-document" aria-labelledby="plot-title plot-desc">'
    )
    body = "\n".join(part for part in parts if part)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{opening}\n{body}\n</svg>\n'


def _panels(fit: TraceFit, plot: FitPlot) -> list[Panel]:
    panels: list[Panel] = []
    if fit.loggp is not None:
        found = {size.message_bytes: size for size in fit.loggp.sizes}
        panels += [
            SignaturePanel(signature, found.get(signature.message_bytes))
            for signature in plot.signatures
            if signature.curves
        ]
        if fit.loggp.sizes:
            panels.append(ParametersPanel(fit.loggp))
    panels += [StagePanel(stage) for stage in plot.stages if stage.fit.lines]
    return panels


def _layout(panels: list[Panel]) -> _Layout:
    columns = min(2, max(1, len(panels)))
    rows = [len(panel.head.rows) for panel in panels]
    lines = [max(rows[start : start + columns]) for start in range(0, len(rows), columns)]
    return _Layout(columns, _ONE_WIDE if columns == 1 else _TWO_WIDE, tuple(lines))


def _drawn(panels: list[Panel], layout: _Layout) -> Iterator[str]:
    for place, panel in enumerate(panels):
        line, column = divmod(place, layout.columns)
        yield draw_panel(
            panel,
            f"panel-{place + 1}",
            x=_MARGIN + column * (layout.panel_width + _BETWEEN_X),
            y=layout.top(line),
            width=layout.panel_width,
            rows=layout.rows[line],
        )


# --- above and below the panels -------------------------------------------------------------------


def _header(fit: TraceFit, plot: FitPlot, width: float) -> Iterator[str]:
    room = width - 2 * _MARGIN
    yield text_at(_MARGIN, 40, TITLES[fit.kind], "title")
    yield text_at(_MARGIN, 61, shortened(_understood(fit), room, _PX), "muted")
    if plot.stages:
        yield group(_legend(plot), class_="legend")


def _understood(fit: TraceFit) -> str:
    """Return what was read, in a line; of several files their number and common facts."""
    stated = dict(fit.understood)
    formats = dict.fromkeys(stated[name] for name in stated if name.endswith("_format"))
    facts = [
        f"{stated[name]} rows" if name == "rows" else stated[name]
        for name in _REPORTED
        if name in stated
    ]
    return " · ".join([*facts, *formats, f"{fit.method} fit"])


def _legend(plot: FitPlot) -> Iterator[str]:
    x, y = _MARGIN, 86.0
    for label, mark in _entries(plot):
        yield mark(x + 11, y - 4)
        yield text_at(x + 28, y, label, "tick")
        x += 28 + text_width(label, _SMALL_PX) + 20


def _entries(plot: FitPlot) -> Iterator[tuple[str, Mark]]:
    """Yield what the marks mean, those that occur."""
    fits = [stage.fit for stage in plot.stages]
    if any(not stage.shows_medians for stage in plot.stages):
        yield "sample", lambda x, y: tag("path", d=_dot(x, y), class_="dot many")
    if any(True in stage.points.is_outlier for stage in plot.stages):
        yield (
            "outlier, weighted down",
            lambda x, y: tag("circle", cx=x, cy=y, r=2.6, class_="outlier"),
        )
    shown = [stage for stage in plot.stages if not stage.shows_medians]
    if any(False in stage.points.is_used for stage in shown):
        yield "not used", lambda x, y: tag("path", d=_dot(x, y), class_="dot unused")
    if any(fit.sizes for fit in fits):
        yield "median of a size", lambda x, y: _dash(x, y, 5, "median")
    yield "fitted line", lambda x, y: _dash(x, y, 9, "fitted")
    yield (
        "95 % band of the mean",
        lambda x, y: tag("rect", x=x - 9, y=y - 5, width=18, height=10, class_="band"),
    )
    if any(len(fit.lines) > 1 for fit in fits):
        yield "end of a fit range", lambda x, y: line_at(x, y - 7, x, y + 7, "range-end")


def _dot(x: float, y: float) -> str:
    return f"M{number(x)} {number(y)}h0"


def _dash(x: float, y: float, half: float, class_: str) -> str:
    return tag("path", d=f"M{number(x - half)} {number(y)}h{number(2 * half)}", class_=class_)


def _footer(fit: TraceFit, top: float, width: float) -> Iterator[str]:
    """Return the notices, a line of text each element."""
    lines = []
    for notice in fit.notices[:_MAX_NOTICES]:
        stated = wrapped(f"{notice.detail} ({notice.code})", width - 2 * _MARGIN - 16, _PX)
        kept = stated[:_MAX_LINES]
        lines += [("• " if place == 0 else "   ") + text for place, text in enumerate(kept)]
    if len(fit.notices) > _MAX_NOTICES:
        lines.append(f"… and {len(fit.notices) - _MAX_NOTICES} more")
    if lines:
        yield text_at(_MARGIN, top, "What to beware of", "strong")
    for place, line in enumerate(lines, start=1):
        yield text_at(_MARGIN, top + _LINE_PX * place, line)


def _description(fit: TraceFit, panels: list[Panel]) -> str:
    names = ", ".join(panel.head.heading for panel in panels)
    return f"{_understood(fit)}. Panels: {names}. Each has a description of its own."
