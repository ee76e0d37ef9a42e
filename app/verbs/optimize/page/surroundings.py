"""What surrounds an answer, as charts and tables: other counts, messages and strategies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from typing import Generic, Literal, TypeVar

from analysis.explore import Line, Point, Surroundings
from analysis.size_curve import SizeCurve, SizePoint, size_curve
from app.schemas.answers import current_of
from app.schemas.stages import limits_of, stored_model
from app.schemas.uncertainty import repeats_bytes
from app.text.notices import capitalised
from app.text.numbers import format_count, format_excess, format_gap, format_size
from app.text.units import PROVEN_BOUND, TimeUnit, format_repeated, format_setting_name, format_time
from app.verbs.optimize.page.view import Alternative
from app.verbs.optimize.show import latency_unit
from contract.optimize import BaselineOut, OptimizeOut
from domain.default_sizes import CURRENT, DefaultSize
from domain.errors import Infeasible, StrategyDeclined
from domain.pipeline import Pipeline
from domain.problem import problem_of
from domain.solution import Strategy, relative_excess
from domain.units import format_bytes
from solvers.count_points import CountPoint

Data = TypeVar("Data")
_NESTED = (Strategy.HIERARCHICAL, Strategy.HIERARCHICAL_RAMP)
_STAR = "\N{NO-BREAK SPACE}*"
_SAME = 1e-9  # relative: latencies that differ by less are equal
MAX_SERIES = 5  # of one picture
_SEPARATE_UP_TO = 48  # counts on an axis with even steps
_KNOWN_SIZES = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsData:
    """Latencies by number of fragments, µs; null where an axis cannot place one."""

    kind: Literal["counts"] = "counts"
    unit: str
    us: float
    fragments: list[int]
    equal_us: list[float | None]
    best_us: list[float | None]
    bound_us: list[float | None]
    answer: tuple[int, float | None]
    answer_text: str
    fixed: tuple[int, float | None] | None
    has_steps: bool


@dataclass(frozen=True, slots=True)
class SizesLine:
    """A strategy or a static size on every message of the chart."""

    name: str
    is_static: bool
    latency_us: list[float | None]
    is_partial: list[bool]
    fragments: list[int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizesData:
    """Latencies by size of the message, µs. `own` is the place of the answer's message."""

    kind: Literal["sizes"] = "sizes"
    messages: list[int]
    labels: list[str]
    own: int | None
    best_us: list[float | None]
    lines: list[SizesLine]


@dataclass(frozen=True, slots=True)
class Chart(Generic[Data]):
    """What a script draws (`data`, as JSON), the same as a table, and what is impossible, why."""

    data: Data
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[str, ...]
    why_empty: str = "Nothing here takes any time, so there is nothing to draw."
    impossible: tuple[tuple[str, str], ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that could be drawn."""
        return not self.rows


@dataclass(frozen=True, slots=True)
class SizeMark:
    """Sizes that stand out on the curve of fragment sizes: (bytes, µs) with a name each."""

    name: str
    points: list[tuple[int, float]]
    labels: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentsData:
    """Latencies by the size that is repeated, µs. `bands` are (share, low, high) of good sizes."""

    kind: Literal["fragments"] = "fragments"
    unit: str
    us: float
    sizes: list[int]
    latency_us: list[float]
    bands: list[tuple[float, int, int]]
    marks: list[SizeMark]


def surroundings_of(answer: OptimizeOut, *, fragment_cap: int) -> Surroundings:
    """Return the input of the analyses around a stored answer. Raises InvalidInput."""
    return Surroundings(
        model=stored_model(answer.model),
        message_bytes=answer.message_bytes,
        limits=limits_of(answer.constraints),
        fragment_cap=fragment_cap,
        allow_refragmentation=answer.allow_refragmentation,
        fragments=answer.fragments,
        lower_bound_us=answer.lower_bound_us,
        latency_us=None if answer.levels else answer.latency_us,
        current_bytes=current_of(answer),
    )


# --- latency against the size that is repeated ----------------------------------------------------


def curve_of(
    answer: OptimizeOut, *, fragment_cap: int, current_bytes: int | None
) -> SizeCurve | None:
    """Return what every repeated size takes of an answer's message; None where none is admitted,
    and for stages that hand bytes on as they move.

    Asked for are the size that is repeated today, where there is one, those of `baselines`, the
    best one of the answer, the one that its decision advises, and the one that it says to set.
    """
    model = stored_model(answer.model)
    if isinstance(model, Pipeline) and model.without_handoffs is not model:
        return None
    problem = problem_of(
        model,
        answer.message_bytes,
        limits_of(answer.constraints),
        fragment_cap=fragment_cap,
    )
    also = [one.static_bytes for one in defaults_of(answer) if one.static_bytes]
    also += [answer.best_fixed.size_bytes] if answer.best_fixed else []
    decided = repeats_bytes(answer.uncertainty) if answer.uncertainty else None
    set_this = answer.set_this.size_bytes if answer.set_this else None
    also += [size for size in (decided, set_this) if size]
    with suppress(StrategyDeclined, Infeasible):
        return size_curve(problem, also=(*([current_bytes] if current_bytes else []), *also))
    return None


def defaults_of(answer: OptimizeOut) -> list[BaselineOut]:
    """Return the systems' defaults that an answer is compared with, ascending."""
    return [one for one in answer.baselines if one.source and one.static_bytes]


_BANDS = (0.05, 0.01)
_SHADED = (
    "Shaded: sizes within 1 % and within 5 % of the best one. Each tooth is one fragment more."
)
NOT_REPEATED = "No size can be repeated here, so there is nothing to draw."


def fragments_chart(
    answer: OptimizeOut, curve: SizeCurve | None, chosen_bytes: int | None, *, has_current: bool
) -> Chart[FragmentsData]:
    """Return the curve of repeated sizes with what is good and what stands out."""
    unit = latency_unit(answer)
    if curve is None or len(curve.points) < 2:
        nothing = FragmentsData(
            unit=unit.name, us=unit.us, sizes=[], latency_us=[], bands=[], marks=[]
        )
        return Chart(nothing, (), (), (), NOT_REPEATED)
    data = FragmentsData(
        unit=unit.name,
        us=unit.us,
        sizes=[one.size_bytes for one in curve.points],
        latency_us=[one.latency_us for one in curve.points],
        bands=[
            (good.within, low, high)
            for within in _BANDS
            for good in curve.good
            if good.within == within
            for low, high in good.intervals
        ],
        marks=list(_size_marks(answer, curve, chosen_bytes, has_current=has_current)),
    )
    headings = ("Fragment size", "Fragments", f"Latency, {unit.name}", "Above the best size")
    rows = tuple(
        (
            format_size(one.size_bytes),
            format_count(one.fragments),
            unit.text(one.latency_us),
            format_excess(one.latency_us, curve.best.latency_us),
        )
        for one in curve.points
    )
    return Chart(data, headings, rows, (_SHADED,))


def _size_marks(
    answer: OptimizeOut, curve: SizeCurve, chosen_bytes: int | None, *, has_current: bool
) -> Iterator[SizeMark]:
    chosen = [one for one in curve.points if one.size_bytes == chosen_bytes]
    yield _mark("best size", [(curve.best, "best")])
    yield _mark("to set", [(one, "to set") for one in chosen[:1]])
    asked = list(curve.asked)
    if has_current:
        current = asked.pop(0)
        yield _mark("yours", [(current, "yours")] if current else [])
    named = [one.name or "" for one in defaults_of(answer)]
    known = [(one, name) for one, name in zip(asked, named, strict=False) if one is not None]
    yield _mark("systems' defaults", known)


def _mark(name: str, points: Sequence[tuple[SizePoint, str]]) -> SizeMark:
    return SizeMark(
        name,
        [(one.size_bytes, one.latency_us) for one, _ in points],
        [f"{label}, {format_size(one.size_bytes)}" for one, label in points],
    )


# --- latency against the number of fragments ------------------------------------------------------


def counts_chart(answer: OptimizeOut, points: Sequence[CountPoint]) -> Chart[CountsData]:
    """Return equal fragments, the optimum, the bound, and where the answer stands."""
    best = answer.best_fixed
    unit = latency_unit(answer)
    curves = [drawable(point.equal_us) for point in points]
    data = CountsData(
        unit=unit.name,
        us=unit.us,
        fragments=[point.fragments for point in points],
        equal_us=curves,
        best_us=[drawable(point.best_us) for point in points],
        bound_us=[drawable(point.bound_us) for point in points],
        answer=(answer.fragments, drawable(answer.latency_us)),
        answer_text=unit.named(answer.latency_us),
        fixed=(best.fragments, drawable(best.latency_us)) if best else None,
        has_steps=bool(points) and points[-1].fragments <= _SEPARATE_UP_TO,
    )
    headings = ("Fragments", *(f"{name}, {unit.name}" for name in _CURVES))
    rows = tuple(_count_row(point, unit) for point in points if any(curves))
    if len(points) == 1:
        one = "No other number of fragments is possible here, so there is nothing to compare."
        return Chart(data, headings, (), (), one)
    return Chart(data, headings, rows, tuple(_count_remarks(answer, points)))


_CURVES = ("Equal fragments", "Best sizes", capitalised(PROVEN_BOUND))


def _count_row(point: CountPoint, unit: TimeUnit) -> tuple[str, ...]:
    times = (point.equal_us, point.best_us, point.bound_us)
    return (format_count(point.fragments), *("" if us is None else unit.text(us) for us in times))


def _has_ranges(answer: OptimizeOut) -> bool:
    return answer.pipeline is not None and any(
        len(stage.parts) > 1 for stage in answer.pipeline.stages
    )


def _count_remarks(answer: OptimizeOut, points: Sequence[CountPoint]) -> Iterator[str]:
    if answer.pipeline is None:
        yield (
            "Known from outside: the most that equal fragments can take, and the bound over all "
            "numbers of fragments."
        )
        return
    yield "Curves are for sizes in fractions of a byte; the answer is in whole bytes."
    if _has_ranges(answer):
        yield (
            "Stages have several ranges here: of other numbers of fragments the best sizes are the "
            "best that were found in this time, and more of it may find less."
        )
    if answer.levels:
        yield (
            "They are for one cut that all stages share; the answer cuts anew between stages, and "
            "may lie below them."
        )
    if any(point.best_us is None for point in points):
        yield "Best sizes are drawn where they were found in time; the bound holds everywhere."


# --- latency against the size of the message ------------------------------------------------------


def sizes_chart(answer: OptimizeOut, lines: Sequence[Line]) -> Chart[SizesData]:
    """Return every strategy and static size on messages around this one."""
    drawn = [line for line in lines if any(point.latency_us for point in line.points)]
    messages = [point.message_bytes for point in lines[0].points] if lines else []
    best = [_minimum(line.points[place] for line in lines) for place in range(len(messages))]
    data = SizesData(
        messages=messages,
        labels=[about_size(message) for message in messages],
        own=messages.index(answer.message_bytes) if messages else None,
        best_us=best,
        lines=[_drawn_line(line) for line in _foremost(drawn)],
    )
    headings = ("Message", *(line_name(line) for line in drawn))
    rows = [
        (about_size(message), *(_times_best(line.points[place], best[place]) for line in drawn))
        for place, message in enumerate(messages)
    ]
    return Chart(
        data,
        headings,
        tuple(rows if drawn else ()),
        tuple(_size_remarks(drawn)),
        impossible=tuple(_impossible(line for line in lines if line not in drawn)),
    )


def _foremost(drawn: Sequence[Line]) -> list[Line]:
    """The five that a picture has room for: the optimum, yours, the best size, one piece, defaults;
    the table has all.
    """
    order = (Strategy.EXACT, Strategy.REPEAT, Strategy.SINGLE)

    def rank(line: Line) -> int:
        if line.is_current:
            return 0
        return order.index(line.strategy) if line.strategy in order else len(order)

    return sorted(drawn, key=rank)[:MAX_SERIES]


def line_name(line: Line) -> str:
    """Return the strategy, or whose size is repeated, with the size."""
    if not line.static_bytes:
        return f"{line.strategy}, your setting" if line.is_current else str(line.strategy)
    return f"{_whose(line)}, {format_bytes(line.static_bytes)}"


def _whose(line: Line) -> str:
    name = CURRENT if line.is_current or line.default is None else line.default.name
    return format_setting_name(name)


def _drawn_line(line: Line) -> SizesLine:
    return SizesLine(
        line_name(line),
        line.strategy in (Strategy.STATIC, Strategy.SINGLE),
        [drawable(point.latency_us) for point in line.points],
        [point.is_partial for point in line.points],
        [point.fragments for point in line.points],
    )


def _minimum(points: Iterable[Point]) -> float | None:
    known = [point.latency_us for point in points if point.latency_us]
    return min(known, default=None)


def _times_best(point: Point, best_us: float | None) -> str:
    if not point.latency_us:
        return "–"
    text = format_time(point.latency_us)
    if best_us and point.latency_us > best_us:
        text += f" ({format_excess(point.latency_us, best_us)})"
    return text + ("*" if point.is_partial else "")


def _size_remarks(drawn: Sequence[Line]) -> Iterator[str]:
    if any(point.is_partial for line in drawn for point in line.points):
        yield "Open marks and stars: time ended this search, and more of it may find less."


def _impossible(lines: Iterable[Line]) -> Iterator[tuple[str, str]]:
    for line in lines:
        reasons = {point.declined for point in line.points if point.declined}
        if reasons:
            yield line_name(line), min(reasons)


def about_size(message_bytes: int) -> str:
    """Return bytes in a unit, three digits where they are no whole number of it."""
    for factor, unit in _KNOWN_SIZES:
        if message_bytes >= factor:
            return f"{message_bytes / factor:.4g} {unit}"
    return f"{message_bytes} B"


# --- all strategies on this message ---------------------------------------------------------------


def alternatives_of(answer: OptimizeOut, lines: Sequence[Line]) -> tuple[Alternative, ...]:
    """Return a row for each strategy and static size, the fastest first, then those that time ended
    before they were as fast as the answer, declined ones last.
    """
    unit = latency_unit(answer)
    own = Alternative(
        answer.strategy,
        "this answer" + (_STAR if answer.status == "time_limit" else ""),
        unit.text(answer.latency_us),
        format_gap(answer.relative_gap),
        "",
        format_count(answer.fragments),
        is_answer=True,
    )
    found = [line for line in lines if not _is_answer_again(answer, line)]
    found.sort(key=lambda line: line.points[0].latency_us or float("inf"))
    priced = [line for line in found if line.points[0].latency_us is not None]
    declined = [line for line in found if line.points[0].latency_us is None]
    rows = [_alternative(answer, line, unit) for line in (*priced, *declined)]
    rows.sort(key=lambda row: (bool(row.declined), row.is_unfinished))
    return (own, *rows)


def _is_answer_again(answer: OptimizeOut, line: Line) -> bool:
    """Whether it is of the answer's own strategy and no faster; static sizes are each another."""
    latency_us = line.points[0].latency_us or answer.latency_us
    is_faster = latency_us < answer.latency_us * (1.0 - _SAME)
    return line.strategy.value == answer.strategy != "static" and not is_faster


def alternatives_remarks(answer: OptimizeOut, lines: Sequence[Line]) -> tuple[str, ...]:
    """Return what a star means, and the column of bounds where not all rows share one."""
    is_partial = any(line.points[0].is_partial for line in lines)
    is_partial = is_partial or answer.status == "time_limit"
    star = "* Time ended this search, and more of it may find less."
    return tuple(filter(None, (star if is_partial else "", _bounds_remark(answer))))


def _bounds_remark(answer: OptimizeOut) -> str:
    if answer.pipeline is None or answer.allow_refragmentation or answer.levels:
        return ""
    return (
        "The hierarchical strategies cut anew between stages. That is a wider class of schedules "
        "with a lower bound, and it is this that they are compared with."
    )


def _alternative(answer: OptimizeOut, line: Line, unit: TimeUnit) -> Alternative:
    point = line.points[0]
    how, default = _how(line), line.default or _NO_DEFAULT
    if point.latency_us is None:
        return Alternative(line.strategy, how, "", "", "", "", declined=point.declined or "")
    if point.is_partial and point.latency_us > answer.latency_us:
        return Alternative(line.strategy, how, "", "", "", "", is_unfinished=True)
    bound_us = _bound_us(answer, line, point)
    return Alternative(
        line.strategy,
        how + (_STAR if point.is_partial else ""),
        unit.text(point.latency_us),
        format_gap(relative_excess(point.latency_us, bound_us, bound_us)),
        format_excess(point.latency_us, answer.latency_us),
        format_count(point.fragments or 0),
        parameter=default.parameter or "",
        source=default.source,
    )


_NO_DEFAULT = DefaultSize("", 0, "")


def _bound_us(answer: OptimizeOut, line: Line, point: Point) -> float:
    """Return the best bound known of its class: the answer's, unless it cuts anew by itself."""
    bound_us = answer.lower_bound_us
    is_wider = line.strategy in _NESTED
    was_wider = answer.allow_refragmentation or answer.levels
    return (point.bound_us or 0.0) if is_wider and not was_wider else bound_us


def _how(line: Line) -> str:
    if line.strategy is Strategy.SINGLE:
        return "your setting: not cut" if line.is_current else "not cut"
    if line.static_bytes:
        default_bytes = line.default.default_bytes if line.default else None
        return f"{_whose(line)}: {format_repeated(line.static_bytes, default_bytes)}"
    return _HOW.get(line.strategy, "")


_HOW = {
    Strategy.FIXED: "equal fragments",
    Strategy.REPEAT: "best fixed size",
    Strategy.RAMP: "sizes rise or fall steadily",
    Strategy.RAMP_UP_DOWN: "sizes rise, then fall",
    Strategy.EXACT: "any sizes",
    Strategy.HIERARCHICAL: "stages cut anew",
    Strategy.HIERARCHICAL_RAMP: "stages cut anew, in ramps",
}


def drawable(value: float | None) -> float | None:
    """Return a number that JSON has and a logarithmic axis can place; None for any other."""
    return value if value is not None and isfinite(value) and value > 0.0 else None
