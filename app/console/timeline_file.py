"""The timeline of an answer, written to a file: whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from app.console.whole_files import check_target, write_whole
from app.text.names import with_unique_names
from domain.errors import LimitReached, StrategyDeclined

if TYPE_CHECKING:
    from app.plots.timeline_words import DrawnSchedule

MAX_BLOCKS = 8_000_000  # of one schedule; 64 stages times 100 000 fragments is within it
_FIELD = "timeline"
_NOUN = "the timeline"


def check_timeline_file(name: str) -> None:
    """Refuse what cannot become a file before any work is done. Raises InvalidInput."""
    check_target(name, field=_FIELD, noun=_NOUN, example="schedule.svg")


def write_timeline(name: str, body: bytes) -> None:
    """Draw an answer's document into this file, in place of what it held: its schedule above, the
    best fixed size below it. Raises InvalidInput, StrategyDeclined for an aggregate, LimitReached.
    """
    from app.plots.timeline_svg import render_timeline_svg

    document = json.loads(body)
    if document["pipeline"] is None:
        raise StrategyDeclined(
            "a timeline shows every stage, and an aggregate does not know their times", field=_FIELD
        )
    schedules = list(answer_schedules(document))
    write_whole(name, render_timeline_svg(schedules).encode(), field=_FIELD, noun=_NOUN)


def answer_schedules(document: dict[str, Any]) -> Iterator[DrawnSchedule]:
    """The answer's schedule, and the best fixed size where that is another cut."""
    from app.console.reports import pipeline_of
    from app.plots.timeline_words import DrawnSchedule
    from domain.course import course_of, nested_course_of
    from domain.nested import NestedSchedule

    pipeline = pipeline_of(with_unique_names(document)["pipeline"])
    bound_us = document["lower_bound_us"]
    cut, levels = tuple(document["fragment_bytes"]), document["levels"]
    _check_blocks(sum(map(len, levels)) if levels else len(cut) * len(pipeline))
    if levels:
        course = nested_course_of(pipeline, NestedSchedule(tuple(map(tuple, levels))))
    else:
        course = course_of(pipeline, cut)
    yield DrawnSchedule(document["strategy"], course, bound_us)
    fixed = _fixed_cut(document)
    if fixed and (levels or fixed != cut) and len(fixed) * len(pipeline) <= MAX_BLOCKS:
        yield DrawnSchedule("best fixed size", course_of(pipeline, fixed), bound_us)


def _fixed_cut(document: dict[str, Any]) -> tuple[int, ...]:
    """The best fixed size repeated, the rest of the message last; empty where there is none."""
    best = document["best_fixed"]
    if best is None:
        return ()
    size: int = best["size_bytes"]
    whole, rest = divmod(int(document["message_bytes"]), size)
    return (size,) * whole + ((rest,) if rest else ())


def _check_blocks(blocks: int) -> None:
    if blocks > MAX_BLOCKS:
        raise LimitReached(
            f"expected fragments x stages <= {MAX_BLOCKS} in a timeline, got {blocks}", field=_FIELD
        )
