"""LogP: signatures of an end point, and the parameters found in them by message size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.plots.svg import (
    ABOVE_PX,
    BELOW_PX,
    CHART_PX,
    LEFT,
    Frame,
    Head,
    burst_ticks,
    dots_of,
    group,
    line_at,
    log_axis,
    max_labels,
    number,
    path_of,
    size_ticks,
    tag,
    text_at,
    time_ticks,
)
from app.text.numbers import DIGITS, format_estimate, format_figure
from app.text.units import format_given_time
from domain.fit_plot import SignatureCurve, SignaturePlot
from domain.loggp import Estimate, LogGPFit, LogGPParameters
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
