"""What is made of a stored answer for its files, in a thread or by a worker."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from app.schemas.base import read_output
from app.schemas.optimize import OptimizeOut
from domain.errors import StrategyDeclined

if TYPE_CHECKING:
    from app.web.report import Report

IN_THREAD_CELLS = 60_000  # fragments times stages: some 100 ms
EXPLORED_CELLS = 1_000_000  # beyond, a worker makes them


class FileKind(StrEnum):
    """How a file's name ends."""

    CSV = "csv"
    SVG = "svg"


@dataclass(frozen=True, slots=True)
class FileTask:
    """The CSV or the picture of the answer whose JSON is `body`."""

    body: bytes
    kind: FileKind

    @property
    def noun(self) -> str:
        """In refusals."""
        return f"{self.kind} file"

    def draw(self) -> bytes:
        """The file. Raises StrategyDeclined for a picture of an aggregate, and LimitReached."""
        answer = read_output(OptimizeOut, self.body)
        if self.kind is FileKind.SVG:
            return _picture(answer)
        from app.web.schedule_csv import schedule_csv

        return schedule_csv(answer)


@dataclass(frozen=True, slots=True)
class ReportTask:
    """What a report shows of the answer whose JSON is `body`."""

    body: bytes
    fragment_cap: int

    @property
    def noun(self) -> str:
        """In refusals."""
        return "report"

    def draw(self) -> Report:
        """All of it. Raises LimitReached."""
        from app.web.report import report_of

        return report_of(self.body, fragment_cap=self.fragment_cap)


def _picture(answer: OptimizeOut) -> bytes:
    from app.console.timeline_file import answer_schedules
    from app.plots.timeline_svg import render_timeline_svg

    if answer.pipeline is None:
        raise StrategyDeclined(
            "a timeline shows every stage, and an aggregate does not know their times"
        )
    return render_timeline_svg(list(answer_schedules(answer))).encode()
