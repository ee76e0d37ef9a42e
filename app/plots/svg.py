"""SVG as text: elements, numbers, escaped names, and how wide a text comes out."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from math import isfinite

from app.text.names import printable, width_of

_MEAN_WIDTH = 0.57  # of a character, in font sizes: on the safe side for what browsers put in
_FARTHEST = 1e6  # pixels; renderers are not held to more


def number(value: float) -> str:
    """A coordinate to a hundredth of a pixel, as short as it goes. Raises ValueError for NaN."""
    if not isfinite(value) or abs(value) > _FARTHEST:
        raise ValueError("a coordinate is no number, or far outside the picture")
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def safe(text: str) -> str:
    """Text for content or attribute: only characters that XML allows, marks escaped."""
    return escape(printable(text))


def tag(name: str, *content: str, **attributes: float | str) -> str:
    """An element; `content` is markup. `class_` gives class, and `_` inside a name a hyphen."""
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="'
        f'{safe(value) if isinstance(value, str) else number(value)}"'
        for key, value in attributes.items()
    )
    inner = "".join(content)
    return f"<{name}{pairs}>{inner}</{name}>" if inner else f"<{name}{pairs}/>"


def group(content: Iterable[str], **attributes: float | str) -> str:
    """A <g> with its elements on lines of their own."""
    return tag("g", "\n", *(f"{part}\n" for part in content if part), **attributes)


def text_at(x: float, y: float, text: str, class_: str = "", **attributes: float | str) -> str:
    """A line of text; the class names its size, colour and alignment."""
    named: dict[str, float | str] = {"class_": class_} if class_ else {}
    return tag("text", safe(text), x=x, y=y, **named, **attributes)


def line_at(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    """A straight line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def path_of(points: Iterable[tuple[float, float]]) -> str:
    """Path data through these points."""
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)


def dots_of(points: Iterable[tuple[float, float]]) -> str:
    """Path data of dots: lines of no length, which round ends turn into discs."""
    return "".join(f"M{number(x)} {number(y)}h0" for x, y in points)


def text_width(text: str, font_px: float) -> float:
    """About how wide a text is, in pixels."""
    return width_of(text) * font_px * _MEAN_WIDTH


def shortened(text: str, room_px: float, font_px: float) -> str:
    """The text, cut with a mark where it is wider than there is room."""
    text = printable(text)
    if text_width(text, font_px) <= room_px:
        return text
    while text and text_width(text + "…", font_px) > room_px:
        text = text[:-1]
    return text + "…"


def wrapped(text: str, room_px: float, font_px: float) -> list[str]:
    """The text in lines that fit; a word that is longer than a line is cut."""
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
