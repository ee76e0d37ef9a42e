"""The report of a stored answer: one HTML file that stands alone, with further analyses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from analysis import explore
from app.plots.curves_svg import Curve, CurvesPlot, HorizontalAxis, VerticalAxis, curves_element
from app.schemas.answers import read_answer, with_unique_names
from app.text.numbers import format_cost, format_count, format_percent
from app.text.units import PROVEN_BOUND, format_given_time, format_time
from app.ui.pages import FOLDER, Pages
from app.verbs.optimize.page.question import json_lines, whole_question_of
from app.verbs.optimize.page.set_this import SetThis, set_this_of
from app.verbs.optimize.page.surroundings import (
    CountsData,
    SizesData,
    alternatives_of,
    alternatives_remarks,
    counts_chart,
    sizes_chart,
    surroundings_of,
)
from app.verbs.optimize.page.view import Alternative, AnswerView
from app.verbs.optimize.page.why import WhyView
from app.verbs.optimize.show import latency_unit
from contract.optimize import OptimizeOut
from contract.pipeline import StageOut
from domain.units import format_byte_range, format_bytes

if TYPE_CHECKING:
    from analysis.explanation import Explanation, PathShare
    from app.plots.timeline_plan import DrawnSchedule
    from models.records import AnswerSummary


MIN_SHOWN = 1e-4  # of what lies above the best known
_COUNTS_S, _SIZES_S, _ALTERNATIVES_S = (
    0.4,
    0.9,
    0.6,
)  # less than on the page, where each comes by itself


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Two pictures as markup, the table of strategies, and remarks on them."""

    counts_svg: str
    sizes_svg: str
    alternatives: tuple[Alternative, ...]
    alternative_remarks: tuple[str, ...]
    remarks: tuple[str, ...]

    @classmethod
    def from_answer(cls, answer: OptimizeOut, fragment_cap: int) -> Surroundings:
        """Analyse an answer; each part has a time of its own."""
        asked = surroundings_of(answer, fragment_cap=fragment_cap)
        points = explore.counts(asked, time_limit_s=min(_COUNTS_S, explore.COUNTS_LIMIT_S))
        counts = counts_chart(answer, points)
        sizes = sizes_chart(
            answer, explore.sizes(asked, time_limit_s=min(_SIZES_S, explore.SIZES_LIMIT_S))
        )
        alternatives = explore.alternatives(
            asked, time_limit_s=min(_ALTERNATIVES_S, explore.ALTERNATIVES_LIMIT_S)
        )
        return cls(
            curves_element(counts_plot(counts.data)),
            curves_element(sizes_plot(sizes.data)),
            alternatives_of(answer, alternatives)
            if alternatives
            else AnswerView.from_answer(answer).alternatives,
            alternatives_remarks(answer, alternatives),
            (*counts.remarks, *sizes.remarks),
        )


def counts_plot(data: CountsData) -> CurvesPlot:
    """Draw latency against the number of fragments, with the proven bound."""
    curves = [
        Curve(name, _pairs(data.fragments, upwards))
        for name, upwards in (
            ("equal fragments", data.equal_us),
            ("best sizes", data.best_us),
            (PROVEN_BOUND, data.bound_us),
        )
    ]
    marks = (("this answer", data.answer), ("best fixed size", data.fixed))
    curves += [
        Curve(name, _pairs([point[0]], [point[1]]), is_mark=True) for name, point in marks if point
    ]
    title = f"Latency by number of fragments, with the {PROVEN_BOUND}"
    return CurvesPlot(title, HorizontalAxis.FRAGMENTS, VerticalAxis.LATENCY, tuple(curves))


def sizes_plot(data: SizesData) -> CurvesPlot:
    """Draw how far each strategy is above the best known, by message size."""
    curves = tuple(
        Curve(line.name, _excesses(data.messages, line.latency_us, data.best_us))
        for line in data.lines
    )
    title = "Latency above the best known, by size of the message, for every strategy"
    return CurvesPlot(title, HorizontalAxis.MESSAGE, VerticalAxis.EXCESS, curves, floor=MIN_SHOWN)


def _pairs(
    across: Sequence[float], upwards: Sequence[float | None]
) -> tuple[tuple[float, float], ...]:
    pairs = zip(across, upwards, strict=True)
    return tuple((float(x), y) for x, y in pairs if y is not None)


def _excesses(
    messages: Sequence[float], latencies: Sequence[float | None], best: Sequence[float | None]
) -> tuple[tuple[float, float], ...]:
    rows = zip(messages, latencies, best, strict=True)
    return tuple((float(x), us / best_us - 1.0) for x, us, best_us in rows if us and best_us)


# --- the report -----------------------------------------------------------------------------------


MAX_ROWS = 60  # of the table of fragments; equal neighbours are one
MAX_DRAWN_CELLS = 1_000_000  # fragments times stages of a timeline


@dataclass(frozen=True, slots=True)
class StageLine:
    """A stage, or one fit range of it: `sizes` says which. All are texts."""

    number: str
    name: str
    sizes: str
    overhead: str
    per_byte: str
    busy: str
    share: str
    is_binding: bool
    is_bottleneck: bool


@dataclass(frozen=True, slots=True)
class FragmentLine:
    """Fragments of one size, neighbours; `offset` is of the first."""

    numbers: str
    offset: str
    size: str


@dataclass(frozen=True, slots=True)
class Report:
    """What templates/report.html is given, as far as it follows from the answer alone."""

    view: AnswerView
    set_this: SetThis
    message: str
    delay: str
    stages: tuple[StageLine, ...]
    fragments: tuple[FragmentLine, ...]
    fragments_left_out: str
    why: WhyView | None
    alternatives: tuple[Alternative, ...]
    alternative_remarks: tuple[str, ...]
    unit: str
    timeline_svg: str
    no_timeline: str
    counts_svg: str
    sizes_svg: str
    remarks: tuple[str, ...]
    source: str
    question: str


def report_of(body: bytes, *, fragment_cap: int) -> Report:
    """Return the report of a stored answer. Solves what surrounds it, for up to two seconds.

    Raises UnreadableRecord.
    """
    answer = with_unique_names(read_answer(body))
    drawn, no_timeline = _drawn(answer)
    explained = _explained(answer, fragment_cap) if drawn else None
    lines = tuple(_fragment_lines(answer))
    around = Surroundings.from_answer(answer, fragment_cap)
    return Report(
        view=AnswerView.from_answer(answer),
        set_this=set_this_of(answer, fragment_cap=fragment_cap),
        message=format_bytes(answer.message_bytes),
        delay=_delay(answer),
        stages=tuple(_stage_lines(answer, drawn, explained)),
        fragments=lines[:MAX_ROWS],
        fragments_left_out=format_count(len(lines) - MAX_ROWS) if len(lines) > MAX_ROWS else "",
        why=WhyView.from_explanation(explained) if explained else None,
        alternatives=around.alternatives,
        alternative_remarks=around.alternative_remarks,
        unit=latency_unit(answer).name,
        counts_svg=around.counts_svg,
        sizes_svg=around.sizes_svg,
        remarks=around.remarks,
        timeline_svg=_timeline(drawn),
        no_timeline=no_timeline,
        source=_source(answer),
        question=json_lines(whole_question_of(answer)),
    )


# --- the picture ----------------------------------------------------------------------------------


def _drawn(answer: OptimizeOut) -> tuple[list[DrawnSchedule], str]:
    """Return pictures of the answer and the best fixed size, or why they are not drawn."""
    if answer.pipeline is None:
        return [], (
            "The pipeline is known from outside, by its total and its slowest stage: which "
            "fragment is in which stage at what time is not known."
        )
    from app.operations.fits import answer_schedules

    cells = answer.cells
    if cells > MAX_DRAWN_CELLS:
        return [], f"{format_count(cells)} blocks are more than a report shows."
    return list(answer_schedules(answer)), ""


def _timeline(drawn: list[DrawnSchedule]) -> str:
    from app.plots.timeline_svg import timeline_element

    return timeline_element(drawn) if drawn else ""


# --- stages ---------------------------------------------------------------------------------------


def _explained(answer: OptimizeOut, fragment_cap: int) -> Explanation | None:
    from analysis.explain import explain
    from app.schemas.explanation import explained_of
    from domain.errors import InvalidInput

    try:
        return explain(explained_of(answer, cheaper_by=0.1, fragment_cap=fragment_cap))
    except InvalidInput:
        return None  # more fragments than are explained


def _stage_lines(
    answer: OptimizeOut, drawn: list[DrawnSchedule], explained: Explanation | None
) -> Iterator[StageLine]:
    if answer.aggregate is not None:
        yield from _lines_of(answer.aggregate.total, "total", "", None, is_slowest=False)
        yield from _lines_of(answer.aggregate.bottleneck, "bottleneck", "", None, is_slowest=False)
    if answer.pipeline is None:
        return
    for place, stage in enumerate(answer.pipeline.stages):
        busy = format_time(drawn[0].timeline.by_stage[place].busy_us) if drawn else ""
        part = explained.shares[place] if explained else None
        is_slowest = place == answer.bottleneck_stage
        yield from _lines_of(stage, str(place + 1), busy, part, is_slowest=is_slowest)


def _lines_of(
    stage: StageOut, number: str, busy: str, part: PathShare | None, *, is_slowest: bool
) -> Iterator[StageLine]:
    from_bytes = 1
    for place, one in enumerate(stage.parts):
        up_to, is_first = one.up_to_bytes, place == 0
        yield StageLine(
            number=number if is_first else "",
            name=stage.name if is_first else "",
            sizes=_format_message_range(from_bytes, up_to),
            overhead=format_cost(one.overhead_us),
            per_byte=format_cost(one.ns_per_byte),
            busy=busy if is_first else "",
            share=format_percent(part.share) if part and is_first else "",
            is_binding=bool(part and part.is_binding and is_first),
            is_bottleneck=is_slowest and is_first,
        )
        from_bytes = (up_to or 0) + 1


def _format_message_range(from_bytes: int, up_to_bytes: int | None) -> str:
    if up_to_bytes is None:
        return "any" if from_bytes == 1 else f"above {format_bytes(from_bytes - 1)}"
    return format_byte_range(from_bytes, up_to_bytes)


def _delay(answer: OptimizeOut) -> str:
    delay_us = answer.model.delay_us
    return format_given_time(delay_us) if delay_us else ""


# --- fragments ------------------------------------------------------------------------------------


def _fragment_lines(answer: OptimizeOut) -> Iterator[FragmentLine]:
    """Yield the cut that all stages share, or the coarsest one."""
    from app.verbs.optimize.page.view import runs_of

    offset = 0
    for run in runs_of(answer.fragment_bytes):
        numbers = f"{run.first}" if run.count == 1 else f"{run.first} to {run.last}"
        yield FragmentLine(numbers, format_count(offset), format_count(run.size_bytes))
        offset += run.count * run.size_bytes


def _source(answer: OptimizeOut) -> str:
    profile = answer.profile
    if profile is not None:
        return f"Profile {profile.name}, revision {profile.revision}"
    if answer.fit is not None:
        return "Fitted to measurements that were sent with the question"
    return "Costs as they were given with the question"


# --- the file: it has no script and loads nothing -------------------------------------------------


def report_html(
    pages: Pages, report: Report, called: AnswerSummary, *, base_url: str, version: str
) -> bytes:
    """Return the file. `base_url` is where the service is that has the answer, `called` what that
    is called there.
    """
    served = {"base_url": base_url, "version": version}
    body = pages.html("report.html", report=report, view=report.view, called=called, **served)
    sheet = (FOLDER / "report.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(report.view.title)} · Sluice</title>\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<style>\n{sheet}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    ).encode()
