"""Draw what is too long to be drawn in this process: timelines, overlays, reports, sheets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from app.operations.operation import OperationDefaults, OperationKind, Outcome, Report
from app.schemas.optimize import with_unique_names
from domain.errors import LimitReached, StrategyDeclined

if TYPE_CHECKING:
    from app.plots.timeline_plan import DrawnSchedule
    from app.schemas.optimize import OptimizeOut
    from models.session import UnitOfWork

TIME_LIMIT_S = 120.0
MAX_BLOCKS = 8_000_000  # of one schedule; 64 stages times 100 000 fragments is within it
TIMELINE_FIELD = "timeline"

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
        return OperationKind.DRAW

    @property
    def noun(self) -> str:
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
        return self

    def run(self, report: Report) -> T:
        """Draw. Raises SluiceError."""
        return self.drawing.draw()

    def keep(self, unit: UnitOfWork, result: T) -> Outcome:
        """Store nothing."""
        return Outcome(b"")


def answer_schedules(answer: OptimizeOut) -> Iterator[DrawnSchedule]:
    """Yield the answer's schedule, and the best fixed size where that is another cut.

    Raises StrategyDeclined for an aggregate, and LimitReached.
    """
    from app.plots.timeline_plan import DrawnSchedule
    from domain.nested import NestedSchedule
    from domain.timeline import nested_timeline_of, timeline_of

    named = with_unique_names(answer).pipeline
    if named is None:
        raise StrategyDeclined("an aggregate does not know when a fragment is in which stage")
    pipeline, bound_us = named.to_domain(), answer.lower_bound_us
    cut, levels = answer.fragment_bytes, answer.levels
    _check_blocks(sum(map(len, levels)) if levels else len(cut) * len(pipeline))
    if levels:
        timeline = nested_timeline_of(pipeline, NestedSchedule(levels))
    else:
        timeline = timeline_of(pipeline, cut)
    yield DrawnSchedule(answer.strategy, timeline, bound_us)
    fixed = _fixed_cut(answer)
    if fixed and (levels or fixed != cut) and len(fixed) * len(pipeline) <= MAX_BLOCKS:
        yield DrawnSchedule("best fixed size", timeline_of(pipeline, fixed), bound_us)


def _fixed_cut(answer: OptimizeOut) -> tuple[int, ...]:
    """Return the best fixed size repeated, the rest of the message last; empty where none is."""
    best = answer.best_fixed
    if best is None:
        return ()
    whole, rest = divmod(answer.message_bytes, best.size_bytes)
    return (best.size_bytes,) * whole + ((rest,) if rest else ())


def _check_blocks(blocks: int) -> None:
    if blocks > MAX_BLOCKS:
        raise LimitReached(
            f"expected fragments x stages <= {MAX_BLOCKS} in a timeline, got {blocks}",
            field=TIMELINE_FIELD,
        )
