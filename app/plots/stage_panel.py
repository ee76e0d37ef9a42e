"""One fitted stage: samples and lines over size, both logarithmic, and residuals below."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf

from app.plots.svg import (
    ABOVE_PX,
    BETWEEN_PX,
    LEFT,
    RIGHT,
    SCATTER_PX,
    STRIP_PX,
    Axis,
    Frame,
    Head,
    Tick,
    dots_of,
    group,
    line_at,
    log_axis,
    max_labels,
    nice_above,
    number,
    path_of,
    quantile_of,
    size_ticks,
    tag,
    text_at,
    text_width,
    time_ticks,
)
from app.text.numbers import format_estimate, format_percent, format_signed_percent
from domain.fit import LineFit, Verdict
from domain.fit_plot import PlotRole, StagePlot
from domain.units import format_bytes

ROLE_SAYS = {
    PlotRole.STAGE: "",
    PlotRole.TOTAL: "latencies of messages",
    PlotRole.BOTTLENECK: "inter-arrival times",
}
_MAX_MEDIANS = 80
_BEYOND = 8.0  # how far the time axis follows lines beyond the samples
_MIN_STRIP, _MAX_STRIP = 0.001, 1e6  # relative residuals
_LABEL_PX = 11.0  # minimum distance of two labels
_LABEL_ROWS = 3  # of ends of ranges, above the frame
_CELL_PX = 0.5  # dots closer than this fall on each other


@dataclass(frozen=True, slots=True)
class StagePanel:
    """The panel of one stage."""

    plot: StagePlot

    @property
    def head(self) -> Head:
        """Return name, number of samples, and the estimates of every range."""
        return Head(
            heading=self.plot.name,
            about=" · ".join(self._about()),
            titles=("sizes", "overhead, 95 % interval", "cost per byte, 95 % interval"),
            rows=tuple(_estimates(self.plot)),
            description=self._description(),
        )

    def chart(self, ident: str, *, width: float, top: float) -> Iterator[str]:
        """Draw the scatter and the residual strip."""
        scatter, strip = _frames(self.plot, width, top)
        x_ticks = size_ticks(scatter.x, max_labels(scatter.x))
        yield tag("defs", scatter.clip(f"{ident}-upper"), strip.clip(f"{ident}-lower"))
        yield scatter.grid(x_ticks, time_ticks(scatter.y, 8), labels="y")
        yield strip.grid(x_ticks, _strip_ticks(strip.y))
        yield text_at(0, scatter.y.end - 8, "time", "axis")
        yield text_at(0, strip.y.end - 11, "residual, relative to the line", "axis")
        yield text_at(
            (scatter.x.start + scatter.x.end) / 2, strip.y.start + 31, "size", "axis middle"
        )
        yield from _range_ends(self.plot, scatter, strip)
        yield group(_curves(self.plot, scatter), clip_path=f"url(#{ident}-upper)", class_="band-of")
        yield group(_samples(self.plot, scatter), clip_path=f"url(#{ident}-upper)")
        yield group(_lines(self.plot, scatter), clip_path=f"url(#{ident}-upper)")
        yield from _zero_times(self.plot, scatter)
        yield group(_residuals(self.plot, strip), clip_path=f"url(#{ident}-lower)")
        yield from _beyond(self.plot, strip)

    def _about(self) -> Iterator[str]:
        plot, fit = self.plot, self.plot.fit
        if ROLE_SAYS[plot.role]:
            yield ROLE_SAYS[plot.role]
        shown = len(plot.points)
        if plot.shows_medians:
            yield f"medians of {_count(shown, 'size')}"
        elif shown < plot.num_samples:
            yield f"{shown} of {plot.num_samples} samples shown"
        else:
            yield _count(plot.num_samples, "sample")
        yield _count(fit.outliers, "outlier")
        yield f"residuals {format_percent(fit.relative_residual_std)}"
        yield f"R² {fit.r_squared:.4f}"

    def _description(self) -> str:
        rows = "; ".join(
            f"{sizes}: overhead {overhead}, cost per byte {cost}"
            for sizes, overhead, cost in _estimates(self.plot)
        )
        sizes = self.plot.points.message_bytes
        span = (
            f"Time over size, {format_bytes(sizes[0])} to {format_bytes(sizes[-1])}, both "
            if (sizes)
            else "Time over size, both "
        )
        return f"{span}logarithmic; residuals below. {', '.join(self._about())}. {rows}."


def _count(number_of: int, noun: str) -> str:
    return f"{number_of} {noun}" if number_of == 1 else f"{number_of} {noun}s"


# --- estimates ------------------------------------------------------------------------------------


def _estimates(plot: StagePlot) -> Iterator[tuple[str, str, str]]:
    """Yield sizes, overhead and cost per byte of each range."""
    for line in plot.fit.lines:
        yield (
            _sizes_of(line, plot),
            _estimate(line, "overhead_us", "µs", line.overhead_verdict),
            _estimate(line, "ns_per_byte", "ns", line.ns_per_byte_verdict),
        )


def _sizes_of(line: LineFit, plot: StagePlot) -> str:
    if len(plot.fit.lines) == 1:
        return "all sizes"
    return "larger" if line.up_to_bytes is None else f"to {format_bytes(line.up_to_bytes)}"


def _estimate(line: LineFit, name: str, unit: str, verdict: Verdict) -> str:
    stated = format_estimate(getattr(line, name), getattr(line, f"{name}_interval"), unit)
    if verdict is not Verdict.SUPPORTED:
        return f"{stated}, {verdict}"
    return f"{stated}, set to 0" if name in line.clipped else stated


# --- frames ---------------------------------------------------------------------------------------


def _frames(plot: StagePlot, width: float, top: float) -> tuple[Frame, Frame]:
    sizes = [*plot.points.message_bytes, plot.fit.lines[0].from_bytes, plot.fit.lines[-1].to_bytes]
    x = log_axis(map(float, sizes), start=LEFT, end=width - RIGHT)
    upper = top + ABOVE_PX
    y = log_axis(_times_shown(plot), start=upper + SCATTER_PX, end=upper)
    lower = upper + SCATTER_PX + BETWEEN_PX
    reach = _reach(plot)
    return Frame(x, y), Frame(
        x, Axis(-min(1.0, reach), reach, lower + STRIP_PX, lower, is_log=False)
    )


def _times_shown(plot: StagePlot) -> list[float]:
    """Return all samples, and the lines as far as they stay near them."""
    samples = [time for time in plot.points.time_us if time > 0.0]
    lines = [time for piece in plot.pieces for time in piece.time_us if time > 0.0]
    if not samples:
        return lines
    minimum, maximum = min(samples) / _BEYOND, max(samples) * _BEYOND
    return [*samples, *(min(max(time, minimum), maximum) for time in lines)]


def _reach(plot: StagePlot) -> float:
    """Return how far the strip extends: to the last quantile of samples that are no outliers."""
    points = plot.points
    plain = [
        abs(residual)
        for residual, outlier in zip(points.relative_residual, points.is_outlier, strict=True)
        if residual is not None and not outlier
    ]
    if not plain:
        return 1.0
    wanted = 1.15 * quantile_of(plain, 0.98)
    return nice_above(min(_MAX_STRIP, max(_MIN_STRIP, wanted)))


def _strip_ticks(axis: Axis) -> list[Tick]:
    """Return ticks at ends, middles and 0; no time is further below its line than 100 %."""
    below = [axis.minimum / 2, axis.minimum] if axis.minimum == -axis.maximum else [axis.minimum]
    if axis.place(axis.minimum) - axis.place(0.0) < _LABEL_PX:
        below = []
    values = (*below, 0.0, axis.maximum / 2, axis.maximum)
    return [Tick(value, format_signed_percent(value)) for value in values]


# --- marks ----------------------------------------------------------------------------------------


def _curves(plot: StagePlot, frame: Frame) -> Iterator[str]:
    """Yield the confidence bands."""
    for piece in plot.pieces:
        upper = [
            frame.point(*pair) for pair in zip(piece.message_bytes, piece.high_us, strict=True)
        ]
        lower = [frame.point(*pair) for pair in zip(piece.message_bytes, piece.low_us, strict=True)]
        yield tag("path", d=path_of([*upper, *reversed(lower)]) + "Z", class_="band")


def _lines(plot: StagePlot, frame: Frame) -> Iterator[str]:
    for piece in plot.pieces:
        pairs = list(zip(piece.message_bytes, piece.time_us, strict=True))
        if len(pairs) == 1:
            (x, y) = frame.point(*pairs[0])
            yield tag("path", d=path_of([(x - 5, y), (x + 5, y)]), class_="fitted")
        else:
            yield tag("path", d=path_of(frame.point(*pair) for pair in pairs), class_="fitted")


def _samples(plot: StagePlot, frame: Frame) -> Iterator[str]:
    points = plot.points
    rows = zip(points.message_bytes, points.time_us, points.is_outlier, points.is_used, strict=True)
    placed = [
        (frame.point(size, time), outlier, used) for size, time, outlier, used in rows if time > 0.0
    ]
    if not plot.shows_medians:
        yield from _marks(placed, dotted="sample")
    if _has_medians(plot):
        medians = [
            frame.point(size.message_bytes, size.median_us)
            for size in plot.fit.sizes
            if size.median_us > 0.0
        ]
        yield _dashes(medians)


def _residuals(plot: StagePlot, frame: Frame) -> Iterator[str]:
    points = plot.points
    rows = zip(
        points.message_bytes,
        points.relative_residual,
        points.is_outlier,
        points.is_used,
        strict=True,
    )
    placed = [
        (frame.point(size, residual), outlier, used)
        for size, residual, outlier, used in rows
        if residual is not None and frame.y.holds(residual)
    ]
    yield line_at(frame.x.start, frame.y.place(0.0), frame.x.end, frame.y.place(0.0), "level")
    if not plot.shows_medians:
        yield from _marks(placed, dotted="residual")
    if _has_medians(plot):
        yield _dashes(
            frame.point(size.message_bytes, size.relative_residual)
            for size in plot.fit.sizes
            if frame.y.holds(size.relative_residual)
        )


def _has_medians(plot: StagePlot) -> bool:
    """Return whether medians are drawn: all there is, or few enough to be distinguished."""
    return plot.shows_medians or len(plot.fit.sizes) <= _MAX_MEDIANS


Placed = tuple[tuple[float, float], bool, bool]


def _marks(placed: Iterable[Placed], *, dotted: str) -> Iterator[str]:
    """Yield dots for samples, darker where several coincide, and rings for outliers."""
    cells = Counter[tuple[tuple[int, int], bool, bool]]()
    for (x, y), outlier, used in placed:
        cells[(round(x / _CELL_PX), round(y / _CELL_PX)), outlier, used] += 1
    few, some, many, unused, rings = [list[tuple[float, float]]() for _ in range(5)]
    for (cell, outlier, used), count in sorted(cells.items()):
        into = (few, some, many)[(count > 1) + (count > 3)]
        into = unused if not used else rings if outlier else into
        into.append((cell[0] * _CELL_PX, cell[1] * _CELL_PX))
    for class_, dots in (("few", few), ("some", some), ("many", many), ("unused", unused)):
        if dots:
            yield tag("path", d=dots_of(dots), class_=f"dot {class_} {dotted}")
    for x, y in rings:
        yield tag("circle", cx=x, cy=y, r=2.4, class_=f"outlier {dotted}")


def _dashes(points: Iterable[tuple[float, float]]) -> str:
    path = "".join(f"M{number(x - 4)} {number(y)}h8" for x, y in points)
    return tag("path", d=path, class_="median") if path else ""


def _zero_times(plot: StagePlot, frame: Frame) -> Iterator[str]:
    """Yield times of 0 on the floor of the log axis, which has no place for them, with a note."""
    zeros = [
        size
        for size, time in zip(plot.points.message_bytes, plot.points.time_us, strict=True)
        if time <= 0.0
    ]
    if not zeros:
        return
    floor = frame.y.start
    marks = "".join(
        f"M{number(x - 3.5)} {number(floor - 7)}h7l-3.5 6z"
        for x in dict.fromkeys(frame.x.place(size) for size in zeros)
    )
    yield tag("path", d=marks, class_="zero")
    stated = f"▾ {_count(len(zeros), 'sample')} of 0 µs, on the floor of the axis"
    yield text_at(frame.x.end - 6, floor - 12, stated, "small end muted")


def _beyond(plot: StagePlot, frame: Frame) -> Iterator[str]:
    """Yield the number of samples outside the strip, and marks at its edges."""
    pairs = [
        (size, residual)
        for size, residual in zip(
            plot.points.message_bytes, plot.points.relative_residual, strict=True
        )
        if residual is not None and not frame.y.holds(residual)
    ]
    above = [size for size, residual in pairs if residual > 0.0]
    below = [size for size, residual in pairs if residual < 0.0]
    for sizes, edge, step in ((above, frame.y.end, -4), (below, frame.y.start, 4)):
        marks = "".join(
            f"M{number(x - 3)} {number(edge - step * 0.25)}h6l-3 {number(step)}z"
            for x in dict.fromkeys(frame.x.place(size) for size in sizes)
        )
        if marks:
            yield tag("path", d=marks, class_="beyond")
    if pairs:
        stated = f"beyond: {len(above)} above, {len(below)} below"
        if len(plot.points) < plot.num_samples and not plot.shows_medians:
            stated += " of those shown"
        yield text_at(frame.x.end, frame.y.end - 11, stated, "small end muted")


# --- ends of ranges -------------------------------------------------------------------------------


def _shown_ends(plot: StagePlot) -> list[int]:
    ends = [piece.up_to_bytes for piece in plot.pieces[:-1]]
    return [end for end in ends if end is not None]


def _range_ends(plot: StagePlot, scatter: Frame, strip: Frame) -> Iterator[str]:
    """Yield dashed verticals through both frames, labelled with the last size of the range.

    Where ends are so close that labels fill all rows, the others are in the table alone.
    """
    labels = []
    for end, row in zip(_shown_ends(plot), _label_rows(plot, scatter.x), strict=True):
        x, y = scatter.x.place(end), scatter.y.end - 5 - 13 * (row or 0)
        yield line_at(x, scatter.y.end if row is None else y + 3, x, scatter.y.start, "range-end")
        yield line_at(x, strip.y.end, x, strip.y.start, "range-end")
        if row is not None:
            labels.append(text_at(x, y, f"≤ {format_bytes(end)}", "tick middle on-lines"))
    yield from labels


def _label_rows(plot: StagePlot, axis: Axis) -> Iterator[int | None]:
    """Yield for each label the lowest row, from 0, in which it touches none before it; or None."""
    until = [-inf] * _LABEL_ROWS
    for end in _shown_ends(plot):
        half = text_width(f"≤ {format_bytes(end)}", 11.0) / 2
        begin = axis.place(end) - half - 4
        row = next((row for row, used in enumerate(until) if begin >= used), None)
        if row is not None:
            until[row] = begin + 2 * half + 4
        yield row
