"""A schedule as CSV.

The CSV (RFC 4180) has one row a fragment: its number from 1, its offset and its size, and when it
enters and leaves each stage, µs from the start of the message; the constant delay that may follow
is in no stage. Where stages cut differently there is one row a fragment of each stage. Of an
aggregate sizes alone are known. Where there are very many blocks, the stages between the first and
the last are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import orjson

from contract.optimize import OptimizeOut

if TYPE_CHECKING:
    from contract.optimize import OptimizeOut
    from domain.timeline import StageTimeline, Timeline


Column = Iterable[str]

MAX_TIMED_CELLS = 1_600_000  # fragments times stages whose times are written: some 60 MB
_SIZES = ("fragment", "offset_bytes", "fragment_bytes")
_FORMULA = ("=", "+", "-", "@")
_SEPARATORS = str.maketrans(dict.fromkeys(";,|\t\r\n\"'", " "))


def schedule_csv(answer: OptimizeOut) -> bytes:
    """Return the file of an answer, in UTF-8. Raises LimitReached for too many intervals."""
    return "".join(f"{line}\r\n" for line in _lines(answer)).encode()


def cell_of(text: str) -> str:
    """Return a text as a cell that no spreadsheet takes for a formula, or for several cells."""
    plain = "".join(mark if mark.isprintable() else " " for mark in text.translate(_SEPARATORS))
    return f"'{plain}" if plain.lstrip().startswith(_FORMULA) else plain


def leaves_out_times(answer: OptimizeOut) -> bool:
    """Return whether there are too many blocks to time more than the first and the last stage."""
    if answer.pipeline is None or answer.levels:
        return False
    return answer.fragments * len(answer.pipeline.stages) > MAX_TIMED_CELLS


def _lines(answer: OptimizeOut) -> Iterator[str]:
    if answer.pipeline is None:
        yield ",".join(_SIZES)
        yield from _joined(_cut_columns(answer.fragment_bytes))
        return
    timeline = timeline_of_answer(answer)
    if timeline.is_shared:
        yield from _shared_lines(timeline, leaves_out=leaves_out_times(answer))
    else:
        yield ",".join(("stage", "stage_name", *_SIZES, "start_us", "end_us"))
        for number, stage in enumerate(timeline.stages, start=1):
            yield from _stage_lines(number, stage)


def timeline_of_answer(answer: OptimizeOut) -> Timeline:
    """Return the timeline of an answer about a pipeline."""
    from app.operations.fits import answer_schedules

    return next(answer_schedules(answer)).timeline


def _shared_lines(timeline: Timeline, *, leaves_out: bool) -> Iterator[str]:
    timed = list(enumerate(timeline.by_stage, start=1))
    ends = [(number, stage, end) for number, stage in timed for end in ("start", "end")]
    if leaves_out:
        ends = [ends[0], ends[-1]]
    names = [f"stage {number} {cell_of(stage.stage.name)} {end}_us" for number, stage, end in ends]
    yield ",".join((*_SIZES, *names))
    columns = (stage.start_us if end == "start" else stage.exit_us for _, stage, end in ends)
    yield from _joined((*_cut_columns(timeline.cuts[0]), *map(_numbers, columns)))


def _stage_lines(number: int, stage: StageTimeline) -> Iterator[str]:
    named = f"{number},{cell_of(stage.stage.name)},"
    times = _numbers(stage.start_us), _numbers(stage.exit_us)
    lines = _joined((*_cut_columns(stage.fragment_bytes), *times))
    return map(named.__add__, lines)


def _joined(columns: Iterable[Column]) -> Iterator[str]:
    return map(",".join, zip(*columns, strict=True))


def _cut_columns(sizes: Sequence[int]) -> tuple[Column, ...]:
    offsets = list(accumulate(sizes[:-1], initial=0))
    return tuple(map(_numbers, (range(1, len(sizes) + 1), offsets, sizes)))


def _numbers(values: Iterable[float]) -> list[str]:
    """Return each as JSON has it: the shortest text of the same double; written in bulk."""
    return orjson.dumps(list(values)).decode()[1:-1].split(",")
