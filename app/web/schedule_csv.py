"""A stored answer's schedule as CSV (RFC 4180), for spreadsheets and scripts.

One row a fragment: its number from 1, its offset and its size, and when it enters and leaves each
stage, µs from the start of the message; the constant delay that may follow is in no stage. Where
stages cut differently there is one row a fragment of each stage. Of an aggregate sizes alone are
known.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from domain.course import Course, StageCourse

Document = Mapping[str, Any]
Row = Sequence[str | int | float]

_SIZES = ("fragment", "offset_bytes", "fragment_bytes")
_FORMULA = ("=", "+", "-", "@")
_SEPARATORS = str.maketrans(dict.fromkeys(";,|\t\r\n\"'", " "))


def schedule_csv(document: Document) -> bytes:
    """The file of an OptimizeOut, in UTF-8. Raises LimitReached for one with too many intervals."""
    text = io.StringIO()
    csv.writer(text).writerows(_rows(document))
    return text.getvalue().encode()


def cell_of(text: str) -> str:
    """A text of others as a cell that no spreadsheet takes for a formula, or for several cells."""
    plain = "".join(mark if mark.isprintable() else " " for mark in text.translate(_SEPARATORS))
    return f"'{plain}" if plain.lstrip().startswith(_FORMULA) else plain


def _rows(document: Document) -> Iterator[Row]:
    if document["pipeline"] is None:
        yield _SIZES
        yield from _cut_rows(document["fragment_bytes"])
        return
    course = _course_of(document)
    if len({stage.fragment_bytes for stage in course.stages}) == 1:
        yield from _shared_rows(course)
    else:
        yield ("stage", "stage_name", *_SIZES, "start_us", "end_us")
        for number, stage in enumerate(course.stages, start=1):
            yield from _stage_rows(number, stage)


def _course_of(document: Document) -> Course:
    from app.console.timeline_file import answer_schedules

    return next(answer_schedules(dict(document))).course


def _shared_rows(course: Course) -> Iterator[Row]:
    names = (
        f"stage {number} {cell_of(stage.stage.name)} {end}_us"
        for number, stage in enumerate(course.stages, start=1)
        for end in ("start", "end")
    )
    yield (*_SIZES, *names)
    columns = [times for stage in course.stages for times in (stage.start_us, stage.exit_us)]
    sizes = _cut_rows(course.stages[0].fragment_bytes)
    for cut, *times in zip(sizes, *columns, strict=True):
        yield (*cut, *times)


def _stage_rows(number: int, stage: StageCourse) -> Iterator[Row]:
    name = cell_of(stage.stage.name)
    times = zip(stage.start_us, stage.exit_us, strict=True)
    for cut, (start_us, exit_us) in zip(_cut_rows(stage.fragment_bytes), times, strict=True):
        yield (number, name, *cut, start_us, exit_us)


def _cut_rows(sizes: Iterable[int]) -> Iterator[tuple[int, int, int]]:
    cut = tuple(sizes)
    offsets = accumulate(cut[:-1], initial=0)
    for number, (offset, size) in enumerate(zip(offsets, cut, strict=True), start=1):
        yield number, offset, size
