"""Pictures of models as stand-alone SVG documents: hiding, thresholds, a messaging layer's work.

Curves of hiding and of thresholds are those of the figures of Strumpen94 and of Yocum97 sec. 4. Of
a layer: bars by service for both ends, with the software as it is and on a network with the
features asked about (Karamcheti94 Fig. 6), and the overhead's share by packet size (Fig. 8, right),
all in instructions: shares of cycles are other numbers, and do not belong on the same axis.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from analysis.layer_answer import LayerAnswer, MessageCosts
from analysis.layer_cost import overhead_share
from app.plots.curves_svg import (
    Curve,
    CurvesPlot,
    HorizontalAxis,
    VerticalAxis,
    curves_element,
)
from app.plots.svg import (
    COLOURS,
    SERIES_COLOURS,
    Axis,
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
    shortened,
    tag,
    text_at,
    text_width,
)
from app.text.numbers import format_percent
from domain.delivery import DeliveryRule
from domain.errors import InconsistentInput
from domain.hiding import Activity, BestProcesses, Overlap, ProcessPoint
from domain.messaging_layer import End, Service
from domain.units import format_bytes

WIDTH = 720.0
MAX_MESSAGES = 6
_LEFT, _RIGHT = 176.0, 96.0
_BAR, _BAR_GAP, _MESSAGE_GAP = 16.0, 5.0, 26.0
_CURVES_PX, _ABOVE, _BELOW = 250.0, 44.0, 52.0
_SMALL_PX = 11.0

_RULES = """
svg{color:$ink;font:12px system-ui,-apple-system,"Segoe UI","Noto Sans",sans-serif}
.paper{fill:$paper}
text{fill:$ink;font-variant-numeric:tabular-nums}
.title{font-size:18px;font-weight:650}.heading{font-size:14px;font-weight:650}
.muted{fill:$muted}.small,.tick{font-size:11px}.tick{fill:$muted}
.axis{font-size:11px;font-weight:600}.middle{text-anchor:middle}.end{text-anchor:end}
.frame{fill:none;stroke:$edge}.grid{stroke:$grid}.zero{stroke:$edge}
.curve{fill:none;stroke-width:2;stroke-linejoin:round}
""" + "".join(
    f".bar.{one}{{fill:${one}}}.curve.{one}{{stroke:${one}}}.dot.{one}{{fill:${one}}}"
    for one in SERIES_COLOURS
)
STYLE = in_colours(_RULES, COLOURS)


def render_layer_svg(answer: LayerAnswer) -> str:
    """Return the drawing of an answer: of its first messages, and curves where other packet sizes
    were asked about.
    """
    messages = answer.messages[:MAX_MESSAGES]
    ident = f"layer-{hashlib.sha256(repr(answer.question).encode()).hexdigest()[:10]}"
    layer = answer.question.layer
    bars, bottom = _bars(answer, messages)
    has_curves = len(answer.question.packet_words) > 1
    height = bottom + (_CURVES_PX if has_curves else 12.0)
    parts = [
        tag("title", safe(f"Work of {layer.name} by service"), id=f"{ident}-title"),
        tag("desc", safe(_description(messages)), id=f"{ident}-desc"),
        f"<style>{STYLE}</style>",
        tag("rect", width=WIDTH, height=height, class_="paper"),
        text_at(16, 30, shortened(f"Work of {layer.name}", WIDTH - 32, 18), "title"),
        text_at(16, 50, shortened(_about(answer), WIDTH - 32, _SMALL_PX), "muted small"),
        *_legend(layer.services, y=66.0),
        *bars,
    ]
    if has_curves:
        parts += _curves(messages, top=bottom)
    size = f'width="{number(WIDTH)}" height="{number(height)}"'
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} '
        f'viewBox="0 0 {number(WIDTH)} {number(height)}" role="img" '
        f'aria-labelledby="{ident}-title" aria-describedby="{ident}-desc">'
    )
    return "\n".join([opening, *parts, "</svg>"])


def _about(answer: LayerAnswer) -> str:
    more = len(answer.messages) - MAX_MESSAGES
    rest = f"; {more} more messages are not drawn" if more > 0 else ""
    words = answer.question.layer.packet_words
    packets = f" in packets of {words} words" if words > 1 else ""
    return f"instructions{packets}{rest}"


def _description(messages: Sequence[MessageCosts]) -> str:
    """Everything that the bars show, in words."""
    sentences = []
    for one in messages:
        work = one.work
        ends = "; ".join(
            f"{end}: "
            + ", ".join(
                f"{cell.service} {_count(float(cell.counts.total))}"
                for cell in work.cells
                if cell.end is end
            )
            for end in End
        )
        size = format_bytes(work.units.message_bytes)
        sentences.append(f"{size}, {_count(float(work.counts.total))} instructions: {ends}.")
    return " ".join(sentences)


def _count(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:g}"


def _colour(service: Service) -> str:
    return SERIES_COLOURS[[*Service].index(service)]


def _legend(services: Sequence[Service], *, y: float) -> Iterator[str]:
    x = 16.0
    for service in services:
        yield tag("rect", x=x, y=y, width=12.0, height=12.0, class_=f"bar {_colour(service)}")
        yield text_at(x + 17, y + 10, service.value, "small")
        x += 17.0 + text_width(service.value, _SMALL_PX) + 18.0


# --- bars -----------------------------------------------------------------------------------------


def _bars(answer: LayerAnswer, messages: Sequence[MessageCosts]) -> tuple[list[str], float]:
    """Return the bars, and where they end."""
    parts, y = [], 96.0
    features = answer.question.features
    removed = {feature.removes for feature in features}
    with_words = f"with {features[0]}" if len(features) == 1 else "with these features"
    for message in messages:
        work = message.work
        longest = max(float(work.of(end=end).total) for end in End) or 1.0
        axis = Axis(0.0, longest, _LEFT, WIDTH - _RIGHT, is_log=False)
        total = _count(float(work.counts.total))
        heading = f"{format_bytes(work.units.message_bytes)}: {total} instructions"
        parts.append(text_at(16, y + 8, heading, "heading"))
        y += 18.0
        top = y
        for end in End:
            for without, about in ((set[Service](), end.value), (removed, with_words)):
                if about == with_words and not features:
                    continue
                lengths = [
                    (cell.service, float(cell.counts.total))
                    for cell in work.cells
                    if cell.end is end and cell.service not in without
                ]
                label = shortened(about, _LEFT - 26, _SMALL_PX)
                class_ = "small end" if about == end.value else "small end muted"
                parts.append(text_at(_LEFT - 8, y + 12, label, class_))
                parts += _bar(lengths, axis, y)
                y += _BAR + _BAR_GAP
        parts.append(line_at(_LEFT, top - 2, _LEFT, y, "zero"))
        y += _MESSAGE_GAP
    return parts, y


def _bar(lengths: Sequence[tuple[Service, float]], axis: Axis, y: float) -> Iterator[str]:
    reached = 0.0
    for service, length in lengths:
        if length <= 0.0:
            continue
        start, end = axis.place(reached), axis.place(reached + length)
        about = tag("title", safe(f"{service}: {_count(length)} instructions"))
        class_ = f"bar {_colour(service)}"
        width = max(0.5, end - start)
        yield tag("rect", about, x=start, y=y, width=width, height=_BAR, class_=class_)
        reached += length
    yield text_at(axis.place(reached) + 6, y + 12, _count(reached), "small")


# --- the overhead's share by packet size ----------------------------------------------------------


def _curves(messages: Sequence[MessageCosts], *, top: float) -> Iterator[str]:
    shown = messages[: len(SERIES_COLOURS)]
    every = [point for one in shown for point in one.packet_sizes]
    sizes = [float(point.units.packet_words) for point in every]
    shares = [float(overhead_share(point)) for point in every]
    bottom = top + _CURVES_PX - _BELOW
    across = log_axis(sizes, start=64.0, end=WIDTH - 20.0)
    above = min(1.0, 5 * nice_above(max(max(shares), 1e-6) / 5))
    frame = Frame(across, Axis(0.0, above, bottom, top + _ABOVE, is_log=False))
    ticks = [Tick(above * place / 5, format_percent(above * place / 5)) for place in range(6)]
    yield text_at(16, top + 8, "Overhead by packet size", "heading")
    yield text_at(16, top + 30, "all but the base, of the instructions", "axis")
    yield frame.grid(burst_ticks(across, max_labels(across)), ticks)
    yield text_at((across.start + across.end) / 2, bottom + 32, "words a packet", "axis middle")
    x = 300.0
    for colour, message in zip(SERIES_COLOURS, shown, strict=False):
        name = format_bytes(message.work.units.message_bytes)
        ordered = sorted(message.packet_sizes, key=lambda point: point.units.packet_words)
        points = [
            frame.point(float(one.units.packet_words), float(overhead_share(one)))
            for one in ordered
        ]
        title = tag("title", safe(name))
        dots = (tag("circle", cx=x0, cy=y0, r=2.5, class_=f"dot {colour}") for x0, y0 in points)
        yield group([tag("path", title, d=path_of(points), class_=f"curve {colour}"), *dots])
        yield line_at(x, top + 4, x + 20, top + 4, f"curve {colour}")
        yield text_at(x + 26, top + 8, name, "small")
        x += 26.0 + text_width(name, _SMALL_PX) + 18.0


_SPAN = 100.0  # how far the gain is drawn to either side of its peak, as a factor
_POINTS = 121


class Picture(StrEnum):
    """What is drawn."""

    RUN_TIME = "run_time"
    GAIN = "gain"
    SPEEDUP = "speedup"


@dataclass(frozen=True, slots=True)
class CountTimes:
    """One number of fragments: latency, the processor's part, and the run time, µs."""

    fragments: int
    latency_us: float
    host_us: float
    with_us: float


def run_time_svg(counts: Sequence[CountTimes], *, hidden: int, latency_optimal: int) -> str:
    """Draw run times by number of fragments, with both optima marked. Raises InconsistentInput."""
    by_count = {one.fragments: one for one in counts}
    curves = (
        Curve("run time with hiding", tuple((one.fragments, one.with_us) for one in counts)),
        Curve("latency", tuple((one.fragments, one.latency_us) for one in counts)),
        Curve("processor", tuple((one.fragments, one.host_us) for one in counts)),
        _mark("least run time", (hidden, by_count[hidden].with_us)),
        _mark("least latency", (latency_optimal, by_count[latency_optimal].with_us)),
    )
    title = "Run time behind a calculation by number of fragments"
    return _drawn(CurvesPlot(title, HorizontalAxis.FRAGMENTS, VerticalAxis.TIME, curves))


def gain_svg(
    overlap: Overlap, *, point: tuple[float, float] | None, window: tuple[float, float] | None
) -> str:
    """Draw the gain by c / T around its peak, the `point` asked about, and the ends of the window.

    Raises InconsistentInput.
    """
    peak = 1.0 / overlap.full_at if overlap.full_at > 0.0 else 1.0
    steps = (_SPAN ** (2.0 * place / (_POINTS - 1) - 1.0) for place in range(_POINTS))
    curves = [
        Curve("gain", tuple((peak * step, overlap.gain(1.0 / (peak * step))) for step in steps))
    ]
    curves.append(_mark("greatest gain", (peak, overlap.gain(1.0 / peak))))
    if point is not None:
        curves.append(_mark("asked about", point))
    if window is not None:
        ends = tuple((end, overlap.gain(1.0 / end)) for end in window)
        curves.append(Curve("at least the gain asked for", ends))
    title = "Gain by calculation over communication"
    return _drawn(CurvesPlot(title, HorizontalAxis.RATIO, VerticalAxis.GAIN, tuple(curves)))


def speedup_svg(points: Sequence[ProcessPoint], best: BestProcesses) -> str:
    """Draw speed-ups by number of processes, both optima and the gain's peak marked.

    Raises InconsistentInput.
    """
    by_count = {one.processes: one for one in points}
    curves = (
        Curve("without hiding", tuple((one.processes, one.speedup) for one in points)),
        Curve("with hiding", tuple((one.processes, one.hidden_speedup) for one in points)),
        _mark("best without", (best.without, by_count[best.without].speedup)),
        _mark("best with", (best.hidden, by_count[best.hidden].hidden_speedup)),
        _mark("greatest gain", (best.gain, by_count[best.gain].hidden_speedup)),
    )
    title = "Speed-up by number of processes"
    return _drawn(CurvesPlot(title, HorizontalAxis.PROCESSES, VerticalAxis.SPEEDUP, curves))


@dataclass(frozen=True, slots=True)
class SizeCurve:
    """Latencies, µs, by the size in bytes of one stage; the other stages' choice names it."""

    name: str
    points: tuple[tuple[int, float], ...]


def thresholds_svg(
    curves: Sequence[SizeCurve],
    *,
    rule: DeliveryRule,
    store_and_forward_us: float,
    ideal_us: float,
    lower_bound_us: float,
    best: tuple[int, float],
) -> str:
    """Draw latencies by threshold or pulse size between store and forward and what is ideal.

    Raises InconsistentInput.
    """
    sizes = [size for curve in curves for size, _ in curve.points]
    ends = (float(min(sizes)), float(max(sizes)))
    drawn = [Curve(one.name, tuple((float(x), y) for x, y in one.points)) for one in curves]
    levels = {
        "store and forward": store_and_forward_us,
        "ideal cut-through": ideal_us,
        "lower bound, of this model": lower_bound_us,
    }
    drawn += [Curve(name, tuple((end, us) for end in ends)) for name, us in levels.items()]
    drawn.append(_mark("best", (float(best[0]), best[1])))
    is_eager = rule is DeliveryRule.EAGER
    across = HorizontalAxis.THRESHOLD if is_eager else HorizontalAxis.PULSE
    title = f"Latency by {'threshold' if is_eager else 'pulse size'}"
    return _drawn(CurvesPlot(title, across, VerticalAxis.LATENCY, tuple(drawn)))


# --- a calculation and messages beside it ---------------------------------------------------------

_ROWS = {"calculation": "s1", "send": "s0", "receive": "s2"}


def overlap_svg(bars: Sequence[Activity]) -> str:
    """Return the exchange's variants on one time scale, one row a process and activity.

    Raises InconsistentInput without a bar.
    """
    if not bars:
        raise InconsistentInput("there is nothing to draw")
    first, last = min(bar.begin_us for bar in bars), max(bar.end_us for bar in bars)
    axis = Axis(min(0.0, first), last, _LEFT, WIDTH - _RIGHT, is_log=False)
    parts = [text_at(16, 30, "What overlaps in an exchange", "title")]
    y, ends = 62.0, []
    for variant in dict.fromkeys(bar.variant for bar in bars):
        own = [bar for bar in bars if bar.variant == variant]
        end_us = max(bar.end_us for bar in own)
        words = variant.replace("_", " ")
        ends.append(f"{words} {end_us:.0f} µs")
        parts.append(text_at(16, y, f"{words}: {end_us:.0f} µs", "heading"))
        y += 10.0
        for process in sorted({bar.process for bar in own}):
            for row, colour in _ROWS.items():
                label = f"process {process + 1}, {row}"
                parts.append(text_at(_LEFT - 8, y + 12, label, "small end"))
                for bar in own:
                    if (bar.process, bar.row) != (process, row):
                        continue
                    x, width = axis.place(bar.begin_us), bar.end_us - bar.begin_us
                    about = tag("title", safe(f"{label}: {width:.0f} µs"))
                    width = max(0.5, axis.place(bar.end_us) - x)
                    parts.append(
                        tag(
                            "rect",
                            about,
                            x=x,
                            y=y,
                            width=width,
                            height=_BAR,
                            class_=f"bar {colour}",
                        )
                    )
                y += _BAR + _BAR_GAP
        parts.append(line_at(_LEFT, y - 2, axis.place(end_us), y - 2, "zero"))
        y += _MESSAGE_GAP
    about = "Calculation, sending and receiving of two processes: " + ", ".join(ends) + "."
    return _document("What overlaps in an exchange", about, parts, y)


def _document(title: str, about: str, parts: Sequence[str], height: float) -> str:
    ident = f"models-{hashlib.sha256(''.join(parts).encode()).hexdigest()[:10]}"
    head = [
        tag("title", safe(title), id=f"{ident}-title"),
        tag("desc", safe(about), id=f"{ident}-desc"),
        f"<style>{STYLE}</style>",
        tag("rect", width=WIDTH, height=height, class_="paper"),
    ]
    size = f'width="{number(WIDTH)}" height="{number(height)}"'
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} '
        f'viewBox="0 0 {number(WIDTH)} {number(height)}" role="img" '
        f'aria-labelledby="{ident}-title" aria-describedby="{ident}-desc">'
    )
    return "\n".join([opening, *head, *parts, "</svg>"])


def _mark(name: str, point: tuple[float, float]) -> Curve:
    return Curve(name, (point,), is_mark=True)


def _drawn(plot: CurvesPlot) -> str:
    element = curves_element(plot)
    if not element:
        raise InconsistentInput(
            "nothing of this can be drawn: all of it takes no time", field="plot"
        )
    return element + "\n"
