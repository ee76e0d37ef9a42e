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

from app.plots.logp_panels import ParametersPanel, SignaturePanel
from app.plots.stage_panel import StagePanel
from app.plots.svg import (
    STYLE,
    Panel,
    draw_panel,
    group,
    line_at,
    number,
    panel_height,
    safe,
    shortened,
    tag,
    text_at,
    text_width,
    wrapped,
)
from domain.fit import TraceFit
from domain.fit_plot import FitPlot
from domain.measurement import TraceKind

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
