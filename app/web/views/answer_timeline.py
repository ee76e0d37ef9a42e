"""The timeline of an answer for its page: at once where it is small, else as a part."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from app.apart import ReportSteps
from app.web.views.answer_words import Document
from domain.errors import StrategyDeclined

if TYPE_CHECKING:
    from app.plots.timeline_words import DrawnSchedule

AT_ONCE_CELLS = 4_000  # fragments times stages: some 50 ms
IN_THREAD_CELLS = 60_000  # beyond, it takes a process of its own


class Beside(StrEnum):
    """What is drawn below the answer, on the same time scale."""

    NOTHING = ""
    FIXED = "fixed"


@dataclass(frozen=True, slots=True)
class Timeline:
    """The picture as markup, and what a script needs to place times in it."""

    svg: str
    span_us: float
    beside: Beside


@dataclass(frozen=True, slots=True)
class TimelineTask:
    """A timeline that is drawn in a process of its own."""

    body: bytes
    beside: Beside

    @property
    def noun(self) -> str:
        """What it is called in a refusal."""
        return "timeline"

    def prepare(self) -> None:
        """Load what drawing needs."""
        import app.plots.timeline_svg  # noqa: F401

    def run(self, _: ReportSteps) -> Timeline:
        """Draw. Raises SluiceError."""
        return timeline_of(json.loads(self.body), self.beside)


def cells_of(document: Document) -> int:
    """Fragments times stages."""
    if document["levels"]:
        return sum(map(len, document["levels"]))
    return int(document["fragments"]) * len(document["pipeline"]["stages"])


def timeline_of(document: Document, beside: Beside) -> Timeline:
    """Draw an answer. Raises StrategyDeclined for an aggregate, and LimitReached."""
    from app.console.timeline_file import answer_schedules
    from app.plots.timeline_svg import timeline_element

    if document["pipeline"] is None:
        raise StrategyDeclined("an aggregate does not know when a fragment is in which stage")
    every = answer_schedules(dict(document))
    schedules = list(every) if beside is Beside.FIXED else [next(every)]
    return Timeline(timeline_element(schedules, rules=""), _span_us(schedules), beside)


def _span_us(schedules: list[DrawnSchedule]) -> float:
    """The end of the time axis, as the picture has it."""
    bounds = [one.lower_bound_us for one in schedules if one.lower_bound_us is not None]
    return max([one.course.latency_us for one in schedules] + bounds)
