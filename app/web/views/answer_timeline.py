"""The timeline of an answer for its page: at once where it is small, else as a part."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias
from urllib.parse import urlencode

from app.schemas.base import read_output
from app.schemas.optimize import OptimizeOut

Window: TypeAlias = tuple[float, float]

MOST_US = 1e300
AT_ONCE_CELLS = 4_000  # fragments times stages: some 10 ms
IN_THREAD_CELLS = 60_000  # some 50 ms; beyond, readers take turns
EXPLORED_CELLS = 1_000_000  # beyond, a worker draws it


class Beside(StrEnum):
    """What is drawn below the answer, on the same time scale."""

    NOTHING = ""
    FIXED = "fixed"


@dataclass(frozen=True, slots=True)
class Drawing:
    """What of an answer is drawn: `window`, from and to in µs, where it is not all of its time."""

    beside: Beside
    window: Window | None = None

    @property
    def query(self) -> str:
        """As an address has it."""
        given = [("beside", str(self.beside))] if self.beside else []
        if self.window is not None:
            given += zip(("from_us", "to_us"), map(repr, self.window), strict=True)
        return f"?{urlencode(given)}" if given else ""


@dataclass(frozen=True, slots=True)
class Timeline:
    """The picture as markup, and what a script needs to place times in it.

    It shows `from_us` to `to_us` of the time from 0 to `span_us`. `is_merged`: a closer look
    shows more blocks.
    """

    svg: str
    span_us: float
    from_us: float
    to_us: float
    is_merged: bool
    beside: Beside


@dataclass(frozen=True, slots=True)
class TimelineDrawing:
    """A timeline that a worker draws."""

    body: bytes
    drawing: Drawing

    @property
    def noun(self) -> str:
        """In refusals."""
        return "timeline"

    def draw(self) -> Timeline:
        """Draw. Raises SluiceError."""
        return timeline_of(read_output(OptimizeOut, self.body), self.drawing)


def window_of(from_us: str, to_us: str) -> Window | None:
    """A stretch of time as an address has it; what is none, a page never sends, is all of it."""
    try:
        begin_us, end_us = float(from_us), float(to_us)
    except ValueError:
        return None
    return (begin_us, end_us) if 0.0 <= begin_us < end_us < MOST_US else None


def timeline_of(answer: OptimizeOut, drawing: Drawing) -> Timeline:
    """Draw an answer. Raises StrategyDeclined for an aggregate, and LimitReached."""
    from app.console.timeline_file import answer_schedules
    from app.plots.timeline_svg import timeline_picture

    every = answer_schedules(answer)
    schedules = list(every) if drawing.beside is Beside.FIXED else [next(every)]
    picture = timeline_picture(schedules, rules="", window=drawing.window)
    return Timeline(
        picture.markup,
        picture.span_us,
        picture.from_us,
        picture.to_us,
        picture.is_merged,
        drawing.beside,
    )
