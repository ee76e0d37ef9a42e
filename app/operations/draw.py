"""Draw what is too long to be drawn in this process: timelines, overlays, reports, sheets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from app.operations.operation import OperationDefaults, OperationKind, Outcome, Report

if TYPE_CHECKING:
    from models.session import UnitOfWork

TIME_LIMIT_S = 120.0

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Drawing(Protocol[T_co]):
    """Something to draw, all of its data at hand. Picklable; `noun` names it in refusals."""

    @property
    def noun(self) -> str: ...

    def draw(self) -> T_co:
        """Draw. Raises SluiceError."""
        ...


@dataclass(frozen=True, slots=True)
class Draw(OperationDefaults[T], Generic[T]):
    """One drawing."""

    drawing: Drawing[T]

    @property
    def kind(self) -> OperationKind:
        """Of one picture or document."""
        return OperationKind.DRAW

    @property
    def noun(self) -> str:
        """As the drawing says."""
        return self.drawing.noun

    @property
    def time_s(self) -> float:
        """Millions of blocks may take so long."""
        return TIME_LIMIT_S

    @property
    def request(self) -> bytes:
        """None: drawings are no jobs."""
        return b""

    @property
    def digest(self) -> str:
        """None: drawings are not found again."""
        return ""

    @property
    def work(self) -> Draw[T]:
        """All of it."""
        return self

    def run(self, report: Report) -> T:
        """Draw. Raises SluiceError."""
        return self.drawing.draw()

    def keep(self, unit: UnitOfWork, result: T) -> Outcome:
        """Store nothing."""
        return Outcome(b"")
