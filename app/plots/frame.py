"""What all panels share: their measures, the head with its rows, and a frame with axes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from app.plots.scales import Axis, Tick
from app.plots.svg import group, line_at, safe, shortened, tag, text_at

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
        """The chart below `top`, CHART_PX high; `ident` is unique in the document."""


@dataclass(frozen=True, slots=True)
class Head:
    """A panel's heading, a line about it, rows of (label, value, value), and it all in words."""

    heading: str
    about: str
    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    description: str


def panel_height(rows: int) -> float:
    """Of a panel whose head has so many rows."""
    return _ROWS_AT + ROW_PX * rows + CHART_PX


def draw_panel(panel: Panel, ident: str, *, x: float, y: float, width: float, rows: int) -> str:
    """A panel at this place; its head is given room for so many rows."""
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
            said = shortened(cell, end - x - 4, SMALL_PX)
            yield text_at(x, _ROWS_AT + ROW_PX * place, said, class_)


@dataclass(frozen=True, slots=True)
class Frame:
    """Two axes; y.start is the bottom in pixels."""

    x: Axis
    y: Axis

    def point(self, x: float, y: float) -> tuple[float, float]:
        """Where a pair of values is drawn."""
        return self.x.place(x), self.y.place(y)

    def clip(self, ident: str) -> str:
        """The definition that keeps what refers to it inside the frame."""
        left, right, top, bottom = self.x.start, self.x.end, self.y.end, self.y.start
        box = tag("rect", x=left, y=top - 1, width=right - left, height=bottom - top + 2)
        return tag("clipPath", box, id=ident)

    def grid(
        self, x_ticks: Sequence[Tick], y_ticks: Sequence[Tick], *, labels: Iterable[str] = "xy"
    ) -> str:
        """Grid lines at labelled ticks, short ones at the others, and their labels."""
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


def most_labels(axis: Axis) -> int:
    """How many labels find room along a horizontal axis."""
    return max(2, int(abs(axis.end - axis.start) / _PIXELS_A_LABEL))
