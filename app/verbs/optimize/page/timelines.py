"""The timeline of an answer: drawn at once where it is small, else as a part of the page."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias
from urllib.parse import urlencode

from app.schemas.answers import read_answer
from contract.optimize import ItemsOptimizeOut, OptimizeOut

Window: TypeAlias = tuple[float, float]

MAX_US = 1e300
AT_ONCE_CELLS = 4_000  # fragments times stages: some 10 ms
IN_THREAD_CELLS = 60_000  # some 50 ms; beyond, readers are queued
EXPLORED_CELLS = 1_000_000  # beyond, a worker draws it


class DrawnBelow(StrEnum):
    """What is drawn below the answer, on the same time scale."""

    NOTHING = ""
    FIXED = "fixed"


@dataclass(frozen=True, slots=True)
class Drawing:
    """What of an answer is drawn: `window`, from and to in µs, where it is not all of its time."""

    beside: DrawnBelow
    window: Window | None = None

    @property
    def query(self) -> str:
        """As an address has it."""
        given = [("beside", str(self.beside))] if self.beside else []
        if self.window is not None:
            given += zip(("from_us", "to_us"), map(repr, self.window), strict=True)
        return f"?{urlencode(given)}" if given else ""


@dataclass(frozen=True, slots=True)
class TimelineView:
    """The picture as markup, and what a script needs to place times in it.

    It shows `from_us` to `to_us` of the time from 0 to `span_us`. `is_merged`: a closer look
    shows more blocks. `other` is what can be drawn below it, "" for nothing.
    """

    svg: str
    span_us: float
    from_us: float
    to_us: float
    is_merged: bool
    beside: DrawnBelow
    other: str


@dataclass(frozen=True, slots=True)
class TimelineDrawing:
    """A timeline that a worker draws."""

    body: bytes
    drawing: Drawing

    @property
    def noun(self) -> str:
        return "timeline"

    def draw(self) -> TimelineView:
        """Draw. Raises SluiceError."""
        return timeline_of(read_answer(self.body, items=True), self.drawing)


def window_of(from_us: str, to_us: str) -> Window | None:
    """Return a stretch of time as an address has it; None, all of it, for any other text."""
    try:
        begin_us, end_us = float(from_us), float(to_us)
    except ValueError:
        return None
    return (begin_us, end_us) if 0.0 <= begin_us < end_us < MAX_US else None


def drawn_cells(answer: OptimizeOut) -> int:
    """Return how much there is to draw: fragments times stages, of items the items times stages."""
    if isinstance(answer, ItemsOptimizeOut) and answer.pipeline is not None:
        return len(answer.items.bytes) * (len(answer.pipeline.stages) + 1)
    return answer.cells


def timeline_of(answer: OptimizeOut, drawing: Drawing) -> TimelineView:
    """Draw an answer. Raises StrategyDeclined for an aggregate, and LimitReached."""
    from app.operations.fits import answer_schedules
    from app.plots.timeline_svg import timeline_picture

    every = answer_schedules(answer)
    schedules = list(every) if drawing.beside is DrawnBelow.FIXED else [next(every)]
    picture = timeline_picture(schedules, rules="", window=drawing.window)
    return TimelineView(
        picture.markup,
        picture.span_us,
        picture.from_us,
        picture.to_us,
        picture.is_merged,
        drawing.beside,
        _other(answer),
    )


def _other(answer: OptimizeOut) -> str:
    if not isinstance(answer, ItemsOptimizeOut):
        return "the best fixed size"
    from app.schemas.items import compared_cap

    found = compared_cap(answer)
    return "" if found is None else found[0]
