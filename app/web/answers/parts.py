"""Parts of an answer's page: its schedule as CSV, arrivals, timelines, and parts by themselves.

The CSV (RFC 4180) has one row a fragment: its number from 1, its offset and its size, and when it
enters and leaves each stage, µs from the start of the message; the constant delay that may follow
is in no stage. Where stages cut differently there is one row a fragment of each stage. Of an
aggregate sizes alone are known. Where there are very many blocks, the stages between the first and
the last are left out.
"""

from __future__ import annotations

import secrets
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar
from urllib.parse import urlencode

import orjson
from fastapi import Request, Response

from analysis.size_curve import ChangedCost, size_curve, with_cost
from app.http.call_threads import Requester
from app.http.dependencies import READER_COOKIE, client_of, cookie_rules, service_of
from app.schemas.optimize import read_answer
from app.schemas.stages import limits_of, stored_model
from app.text.numbers import format_percent, format_size
from app.text.units import TimeUnit
from app.ui.pages import page
from app.web.answers.around import NOT_REPEATED, Chart, drawable
from app.web.answers.view import latency_unit
from contract.optimize import OptimizeOut
from domain.errors import Infeasible, Overloaded, StrategyDeclined
from domain.pipeline import Pipeline
from domain.problem import problem_of

if TYPE_CHECKING:
    from app.schemas.optimize import read_answer
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
    timed = list(enumerate(timeline.stages, start=1))
    ends = [(number, stage, end) for number, stage in timed for end in ("start", "end")]
    if leaves_out:
        ends = [ends[0], ends[-1]]
    names = [f"stage {number} {cell_of(stage.stage.name)} {end}_us" for number, stage, end in ends]
    yield ",".join((*_SIZES, *names))
    columns = (stage.start_us if end == "start" else stage.exit_us for _, stage, end in ends)
    yield from _joined((*_cut_columns(timeline.stages[0].fragment_bytes), *map(_numbers, columns)))


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


# --- arrivals: how much of the message is there by when -------------------------------------------


MAX_CELLS = 100_000  # fragments times stages of all answers: some 100 ms
MAX_POINTS = 400  # of a curve: more cannot be distinguished
_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
_NOT_KNOWN = "Of a pipeline seen from outside it is not known when which fragment arrives."
_TOO_MANY = "These answers have more fragments than are followed here."


@dataclass(frozen=True, slots=True)
class _Arrivals:
    """When the last stage has handed on each fragment, µs, and the bytes that are there then."""

    exit_us: Sequence[float]
    arrived_bytes: Sequence[int]

    def when_us(self, share: float) -> float:
        """Return when this share of the message is there, µs."""
        return self.exit_us[bisect_left(self.arrived_bytes, share * self.arrived_bytes[-1])]

    def points(self) -> Iterator[tuple[float, float]]:
        """Return time and per cent, from nothing at the start; of many fragments some, and the
        last.
        """
        yield 0.0, 0.0
        last, step = len(self.exit_us) - 1, -(-len(self.exit_us) // MAX_POINTS)
        for at in sorted({*range(step - 1, last, step), last}):
            yield self.exit_us[at], 100.0 * self.arrived_bytes[at] / self.arrived_bytes[-1]


@dataclass(frozen=True, slots=True)
class ArrivalsLine:
    """When how much of a message is there: points of µs and per cent."""

    name: str
    points: list[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalsData:
    """The curves of all answers, and the unit of their time axis."""

    kind: Literal["arrivals"] = "arrivals"
    unit: str
    us: float
    lines: list[ArrivalsLine]


_NO_DATA = ArrivalsData(unit="µs", us=1.0, lines=[])


def arrivals_chart(answers: Sequence[OptimizeOut], names: Sequence[str]) -> Chart[ArrivalsData]:
    """Return a curve for each of these OptimizeOut, and the times at which shares are there."""
    why_empty = _why_empty(answers)
    if why_empty:
        return Chart(_NO_DATA, (), (), (), why_empty)
    found = [_arrivals(answer) for answer in answers]
    latest_us = max(one.exit_us[-1] for one in found)
    unit = TimeUnit.of(latest_us)
    if latest_us <= 0.0:
        return Chart(_NO_DATA, (), (), ())
    curves = zip(names, found, strict=True)
    lines = [ArrivalsLine(name, list(one.points())) for name, one in curves]
    data = ArrivalsData(unit=unit.name, us=unit.us, lines=lines)
    headings = ("Arrived", *(f"{name}, {unit.name}" for name in names))
    rows = tuple(
        (format_percent(share), *(unit.text(one.when_us(share)) for one in found))
        for share in _SHARES
    )
    return Chart(data, headings, rows, ())


def _why_empty(answers: Sequence[OptimizeOut]) -> str:
    if any(answer.pipeline is None for answer in answers):
        return _NOT_KNOWN
    return _TOO_MANY if sum(answer.cells for answer in answers) > MAX_CELLS else ""


def _arrivals(answer: OptimizeOut) -> _Arrivals:
    timeline = timeline_of_answer(answer)
    last = timeline.stages[-1]
    arrived = list(accumulate(last.fragment_bytes))
    return _Arrivals([us + timeline.delay_us for us in last.exit_us], arrived)


# --- one cost from a quarter of it to four times as much ------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepData:
    """Latencies by one cost times a factor, µs; `own` is the cost as it is."""

    kind: Literal["sweep"] = "sweep"
    unit: str
    us: float
    factors: list[float]
    lines: list[tuple[str, list[float | None]]]


_FACTORS = tuple(2.0 ** (step / 4.0) for step in range(-8, 9))


def sweep_chart(
    answer: OptimizeOut, wanted: str, *, sizes: tuple[int | None, int | None], fragment_cap: int
) -> tuple[Chart[SweepData], tuple[tuple[str, str], ...], str]:
    """Return the curves, the costs to choose from with their names, and the chosen one; none for
    stages that are not known or hand bytes on. `sizes` are the one to set and today's, or None.
    """
    unit = latency_unit(answer)
    pipeline = stored_model(answer.model)
    nothing = SweepData(unit=unit.name, us=unit.us, factors=[], lines=[])
    if not isinstance(pipeline, Pipeline) or pipeline.without_handoffs is not pipeline:
        return Chart(nothing, (), (), (), NOT_REPEATED), (), ""
    costs = tuple(
        (f"{place}.{cost}", f"{stage.name}, {words}")
        for place, stage in enumerate(pipeline.stages)
        for cost, words in _COST_WORDS.items()
    )
    bottleneck = f"{answer.bottleneck_stage or 0}.{ChangedCost.PER_BYTE}"
    chosen = next((name for name, _ in costs if name == wanted), bottleneck)
    stage, _, cost = chosen.partition(".")
    shown = {name: size for name, size in zip(("to set", "yours"), sizes, strict=True) if size}
    lines: dict[str, list[float | None]] = {"best size at each cost": []}
    best, limits = [], limits_of(answer.constraints)
    for factor in _FACTORS:
        changed = with_cost(pipeline, int(stage), ChangedCost(cost), factor)
        problem = problem_of(changed, answer.message_bytes, limits, fragment_cap=fragment_cap)
        try:
            curve = size_curve(problem, also=tuple(shown.values()))
        except (StrategyDeclined, Infeasible):
            return Chart(nothing, (), (), (), NOT_REPEATED), costs, chosen
        best.append(curve.recommended)
        lines["best size at each cost"].append(drawable(curve.best.latency_us))
        for (name, size), point in zip(shown.items(), curve.asked, strict=True):
            key = f"{format_size(size)}, {name}"
            lines.setdefault(key, []).append(drawable(point.latency_us) if point else None)
    data = SweepData(unit=unit.name, us=unit.us, factors=list(_FACTORS), lines=list(lines.items()))
    headings = ("Times the cost", "Size to set", *(f"{name}, {unit.name}" for name in lines))
    rows = tuple(
        (
            f"{factor:.3g}",
            format_size(best[at].size_bytes),
            *("–" if line[at] is None else unit.text(line[at] or 0.0) for line in lines.values()),
        )
        for at, factor in enumerate(_FACTORS)
    )
    return Chart(data, headings, rows, ("The table has the size to set.",)), costs, chosen


_COST_WORDS = {
    ChangedCost.OVERHEAD: "overhead",
    ChangedCost.PER_BYTE: "cost a byte",
    ChangedCost.BOTH: "both costs",
}


# --- the timeline: at once where it is small, else as a part of the page --------------------------


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
    shows more blocks.
    """

    svg: str
    span_us: float
    from_us: float
    to_us: float
    is_merged: bool
    beside: DrawnBelow


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
        return timeline_of(read_answer(self.body), self.drawing)


def window_of(from_us: str, to_us: str) -> Window | None:
    """Return a stretch of time as an address has it; None, all of it, for any other text."""
    try:
        begin_us, end_us = float(from_us), float(to_us)
    except ValueError:
        return None
    return (begin_us, end_us) if 0.0 <= begin_us < end_us < MAX_US else None


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
    )


# --- parts by themselves, computed in the render queue --------------------------------------------


_MIN_WAIT_S, _MAX_WAIT_S = 2, 10

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the view: its name in addresses, where it stands, its heading and its template."""

    name: str
    place: str
    title: str
    template: str


def with_reader(request: Request, response: Response) -> Response:
    """Return the response, with a cookie that names this reader where the browser has none yet."""
    if not request.cookies.get(READER_COOKIE):
        reader = secrets.token_hex(8)
        response.set_cookie(READER_COOKIE, reader, samesite="lax", **cookie_rules(request))
    return response


def requester_of(request: Request, id: str) -> Requester:
    """Return the requester of a request: its address and reader, for this answer."""
    return Requester(client_of(request).name, id)


async def explored(request: Request, id: str, what: str, work: Callable[[], T]) -> T:
    """Return what the work returns, queued by reader. Raises what it raises, Overloaded, Cancelled.

    `what` distinguishes questions about the same answer.
    """
    return await service_of(request).pictures.run(
        work,
        client_of(request).wait_disconnected,
        requester=requester_of(request, id),
        question=(what, id),
    )


async def part_of(
    request: Request,
    id: str,
    part: Part,
    work: Callable[[], dict[str, Any]],
    *,
    query: str = "",
    **values: Any,
) -> Response:
    """Show the part with what the work returns; where the queue is full, one that asks again."""
    try:
        found = await explored(request, id, part.name + query, work)
    except Overloaded as refusal:
        if "json" in request.headers.get("accept", ""):
            raise
        return _busy(request, id, part, refusal, query=query)
    return page(request, part.template, headers=_KEPT, **found, **values)


# A stored answer never changes, and going back to it shall not compute its parts again.
_KEPT = {"Cache-Control": "private, max-age=600"}


def _busy(request: Request, id: str, part: Part, refusal: Overloaded, *, query: str) -> Response:
    waiting = service_of(request).pictures.waiting
    wait_s = min(_MAX_WAIT_S, _MIN_WAIT_S + waiting // 4)
    headers = {"Retry-After": str(wait_s)}
    address = f"/ui/answers/{id}/parts/{part.name}{query}"
    values = {"part": part, "address": address, "wait_s": wait_s, "words": refusal.detail}
    return page(request, "answer_busy.html", status=503, headers=headers, **values)
