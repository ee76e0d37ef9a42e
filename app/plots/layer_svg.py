"""A messaging layer's work as a stand-alone SVG document.

Bars by service for both ends, with the software as it is and on a network with the features asked
about (Karamcheti94 Fig. 6), and the overhead's share by packet size (Fig. 8, right). Everything is
in instructions: shares of cycles are other numbers, and do not belong on the same axis.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from analysis.layer_answer import LayerAnswer, MessageCosts
from analysis.layer_cost import overhead_share
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
