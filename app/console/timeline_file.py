"""The timeline of an answer, written to a file: whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from app.console.whole_files import check_target, write_whole
from app.schemas.optimize import with_unique_names
from domain.errors import LimitReached, StrategyDeclined

if TYPE_CHECKING:
    from app.plots.timeline_words import DrawnSchedule
    from app.schemas.optimize import OptimizeOut

MAX_BLOCKS = 8_000_000  # of one schedule; 64 stages times 100 000 fragments is within it
_FIELD = "timeline"
_NOUN = "the timeline"


def check_timeline_file(name: str) -> None:
    """Refuse what cannot become a file before any work is done. Raises InvalidInput."""
    check_target(name, field=_FIELD, noun=_NOUN, example="schedule.svg")


def write_timeline(name: str, answer: OptimizeOut) -> None:
    """Draw an answer into this file, in place of what it held: its schedule above, the
    best fixed size below it. Raises InvalidInput, StrategyDeclined for an aggregate, LimitReached.
    """
    from app.plots.timeline_svg import render_timeline_svg

    if answer.pipeline is None:
        raise StrategyDeclined(
            "a timeline shows every stage, and an aggregate does not know their times", field=_FIELD
        )
    schedules = list(answer_schedules(answer))
    write_whole(name, render_timeline_svg(schedules).encode(), field=_FIELD, noun=_NOUN)


def answer_schedules(answer: OptimizeOut) -> Iterator[DrawnSchedule]:
    """Yield the answer's schedule, and the best fixed size where that is another cut.

    Raises StrategyDeclined for an aggregate, and LimitReached.
    """
    from app.plots.timeline_words import DrawnSchedule
    from domain.course import course_of, nested_course_of
    from domain.nested import NestedSchedule

    named = with_unique_names(answer).pipeline
    if named is None:
        raise StrategyDeclined("an aggregate does not know when a fragment is in which stage")
    pipeline, bound_us = named.to_domain(), answer.lower_bound_us
    cut, levels = answer.fragment_bytes, answer.levels
    _check_blocks(sum(map(len, levels)) if levels else len(cut) * len(pipeline))
    if levels:
        course = nested_course_of(pipeline, NestedSchedule(levels))
    else:
        course = course_of(pipeline, cut)
    yield DrawnSchedule(answer.strategy, course, bound_us)
    fixed = _fixed_cut(answer)
    if fixed and (levels or fixed != cut) and len(fixed) * len(pipeline) <= MAX_BLOCKS:
        yield DrawnSchedule("best fixed size", course_of(pipeline, fixed), bound_us)


def _fixed_cut(answer: OptimizeOut) -> tuple[int, ...]:
    """The best fixed size repeated, the rest of the message last; empty where there is none."""
    best = answer.best_fixed
    if best is None:
        return ()
    whole, rest = divmod(answer.message_bytes, best.size_bytes)
    return (best.size_bytes,) * whole + ((rest,) if rest else ())


def _check_blocks(blocks: int) -> None:
    if blocks > MAX_BLOCKS:
        raise LimitReached(
            f"expected fragments x stages <= {MAX_BLOCKS} in a timeline, got {blocks}", field=_FIELD
        )
