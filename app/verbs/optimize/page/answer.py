"""A stored answer: the page at once, and its slower parts by themselves."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

from fastapi import Query, Request, Response

from analysis import explore
from analysis.explain import MAX_CELLS, explain
from app.http.dependencies import base_url_of, client_of, own_router, service_of
from app.operations.fits import Draw
from app.questions.answers import describe_answer, get_answer
from app.schemas.answers import (
    current_of,
    read_answer,
    read_items_answer,
    with_unique_names,
)
from app.schemas.base import dump_json, parse_json, problem_out
from app.schemas.explanation import explained_of
from app.ui.addresses import here_of
from app.ui.fields import size_in
from app.ui.html import as_html
from app.ui.pages import is_htmx, moved, page, says_refusals
from app.ui.panel.asking import answer_address, operation_of, passing_answer
from app.ui.panel.choices import ShownUnits
from app.ui.panel.page import panel_page
from app.ui.panel.state import InputState
from app.verbs.optimize.page.change import Change, change_between
from app.verbs.optimize.page.cost_sweep import sweep_chart
from app.verbs.optimize.page.libraries import library_named, library_of
from app.verbs.optimize.page.queued_parts import Part, part_of, with_reader
from app.verbs.optimize.page.set_this import set_this, set_this_of
from app.verbs.optimize.page.snippets import take_away_of
from app.verbs.optimize.page.surroundings import (
    alternatives_of,
    alternatives_remarks,
    counts_chart,
    curve_of,
    fragments_chart,
    sizes_chart,
    surroundings_of,
)
from app.verbs.optimize.page.timelines import (
    AT_ONCE_CELLS,
    EXPLORED_CELLS,
    IN_THREAD_CELLS,
    Drawing,
    DrawnBelow,
    TimelineDrawing,
    drawn_cells,
    timeline_of,
    window_of,
)
from app.verbs.optimize.page.view import AnswerView
from app.verbs.optimize.page.what_if import changed_costs, changed_question, what_if
from app.verbs.optimize.page.why import UnexplainedAnswer, WhyView, advice_of
from app.verbs.optimize.show import count_parts, format_path, latency_unit
from app.web.forms import sent_fields
from contract.optimize import ItemsOptimizeOut, OptimizeIn, OptimizeOut
from domain.errors import (
    LimitReached,
    NeedsPlainStages,
    SluiceError,
    StrategyDeclined,
    UnreadableRecord,
)
from models.records import AnswerRecord

if TYPE_CHECKING:
    from models.session import Store


router = own_router(include_in_schema=False)

SECTION = "Workbench"
_CHEAPER_BY = 0.1
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_TIMELINE = Part("timeline", "timeline", "Timeline", "answer_timeline.html")
_WHY = Part("why", "why", "Why", "answer_why.html")
_LIBRARY = Part("library", "library", "Into my library", "answer_library.html")
_SWEEP = Part("sweep", "sweep", "One cost from a quarter to four times", "answer_sweep.html")
_FRAGMENTS = Part(
    "fragments", "by-fragment", "Latency against fragment size", "answer_fragments.html"
)
_COUNTS = Part(
    "counts", "by-count", "Latency against the number of fragments", "answer_counts.html"
)
_SIZES = Part("sizes", "by-size", "Latency against the size of the message", "answer_sizes.html")
_LANES = Part("lanes", "by-lanes", "Size and time by lanes or places", "answer_lanes.html")
_CAPS = Part("caps", "by-cap", "Latency against the cap", "answer_caps.html")
_ALTERNATIVES = Part("alternatives", "alternatives-table", "Strategies", "answer_alternatives.html")


@router.get("/ui/answers/{id}")
@says_refusals
async def answer(
    request: Request,
    id: str,
    beside: Annotated[str, Query()] = "",
    sizes: Annotated[str, Query()] = "",
) -> Response:
    """Show the answer as it is stored; `beside=fixed` draws the best fixed size below it, and
    `sizes=latency` has the curves over messages show times instead of ratios. The question is shown
    in the units of the address.
    """
    return await answer_page(
        request,
        id,
        ShownUnits.from_texts(request.query_params),
        beside=_beside(beside),
        shown=_shown(sizes),
    )


async def answer_page(
    request: Request,
    id: str,
    units: ShownUnits,
    *,
    beside: DrawnBelow = DrawnBelow.NOTHING,
    shown: str = "ratio",
) -> Response:
    """Return the page of a stored answer. Raises NotFound."""
    service, base_url, cap = service_of(request), base_url_of(request), _fragment_cap(request)
    given = dict(units.kept).get("current", "")

    def made() -> Response:
        record = get_answer(service.context.store, id)
        # Thousands of ranges or fragments make a page that takes a while to write as well.
        try:
            stored = read_answer(record.body, items=True)
        except UnreadableRecord as refusal:
            return _stored_earlier(request, record, refusal, units)
        if isinstance(stored, ItemsOptimizeOut):
            return _of_items(request, record, stored, units, beside)
        values = _values(service.context.store, stored, beside, base_url)
        entry = InputState.of_answer(stored).in_units(units).keeping(units.kept)
        current = _current_bytes(stored, given)
        values |= {"library": library_named(request.query_params.get("library", "")).name}
        values["is_local"] = request.url.hostname in LOOPBACK
        values |= {"section": SECTION, "shown": shown, "units": units}
        values |= {"name": record.name or "", "note": record.note or ""}
        found = set_this_of(stored, fragment_cap=cap, current_bytes=current)
        values |= {"set_this": found, "what_if": what_if(stored)}
        values["change"] = _change_since(service.context.store, stored, units, cap, current)
        return with_reader(request, panel_page(request, "answer.html", entry, **values))

    return await service.call(made)


@router.post("/ui/answers/{id}")
@says_refusals
async def describe(request: Request, id: str) -> Response:
    """Give the answer a name and a note, where the form has them, and show it again."""
    fields = await sent_fields(request)
    service = service_of(request)
    name, note = fields.get("name"), fields.get("note")
    await service.write(lambda: describe_answer(service.context.store, id, name=name, note=note))
    return moved(request, here_of(request))


@router.get("/ui/answers/{id}/parts/timeline")
@says_refusals
async def timeline(
    request: Request,
    id: str,
    beside: Annotated[str, Query()] = "",
    from_us: Annotated[str, Query()] = "",
    to_us: Annotated[str, Query()] = "",
) -> Response:
    """Show the timeline of an answer with many fragments, or of a stretch of its time."""
    body, units = await _body(request, id), ShownUnits.from_texts(request.query_params)
    service, wanted = service_of(request), Drawing(_beside(beside), window_of(from_us, to_us))
    answer = await service.call(lambda: read_answer(body, items=True))
    cells = 0 if answer.pipeline is None else drawn_cells(answer)
    if cells <= IN_THREAD_CELLS:
        drawn = await service.call(lambda: timeline_of(answer, wanted))
    elif cells <= EXPLORED_CELLS:
        work = lambda: {"timeline": timeline_of(answer, wanted)}  # noqa: E731
        query = units.onto(wanted.query)
        return await part_of(request, id, _TIMELINE, work, query=query, answer_id=id, units=units)
    else:
        drawn = await service.run(Draw(TimelineDrawing(body, wanted)), client_of(request))
    return page(request, _TIMELINE.template, timeline=drawn, answer_id=id, units=units)


@router.get("/ui/answers/{id}/parts/cut")
@says_refusals
async def cut(request: Request, id: str) -> Response:
    """Show every size of a long cut."""
    body = await _body(request, id)

    def made() -> Response:
        return page(request, "answer_cut.html", sizes=read_answer(body).fragment_bytes)

    return await service_of(request).call(made)


@router.get("/ui/answers/{id}/parts/why")
@says_refusals
async def why(request: Request, id: str) -> Response:
    """Show the critical path by stage, and what cheaper costs would save."""
    body, cap = await _body(request, id), _fragment_cap(request)
    units = ShownUnits.from_texts(request.query_params)

    def explained() -> dict[str, Any]:
        answer = with_unique_names(read_answer(body))
        try:
            asked = explained_of(answer, cheaper_by=_CHEAPER_BY, fragment_cap=cap)
        except NeedsPlainStages as refusal:
            unexplained = UnexplainedAnswer.of_machine(answer, refusal)
            return {"why": None, "advice": "", "unexplained": unexplained}
        if asked.cells > MAX_CELLS:
            unexplained = UnexplainedAnswer.from_answer(answer, asked.cells, MAX_CELLS)
            return {"why": None, "advice": "", "unexplained": unexplained}
        found = explain(asked)
        advice = advice_of(found, answer.pipeline, units) if answer.pipeline else ""
        return {"why": WhyView.from_explanation(found), "advice": advice}

    return await part_of(request, id, _WHY, explained, query=units.asked)


@router.get("/ui/answers/{id}/parts/library")
@says_refusals
async def library(request: Request, id: str, target: Annotated[str, Query()] = "") -> Response:
    """Show the size to set as a library takes it: its exact text, and what makes it a bad idea."""
    body, service = await _body(request, id), service_of(request)
    settings, store = service.context.settings, service.context.store
    units, wanted = ShownUnits.from_texts(request.query_params), library_named(target)

    def written() -> dict[str, Any]:
        answer = read_answer(body)
        current = _current_bytes(answer, dict(units.kept).get("current", ""))
        found = set_this_of(answer, fragment_cap=settings.max_fragments, current_bytes=current)
        return {"library": library_of(store, settings, answer, found.size_bytes, wanted)}

    query = f"?target={wanted.name}{units.also}"
    return await part_of(request, id, _LIBRARY, written, query=query, answer_id=id, units=units)


@router.post("/ui/answers/{id}/what-if")
@says_refusals
async def changed_cost(request: Request, id: str) -> Response:
    """Ask the same with other costs, and lead to the answer.

    A script gets what they change, and nothing is stored: a slider passes many.
    """
    factors, units = (
        changed_costs(await sent_fields(request)),
        ShownUnits.from_texts(request.query_params),
    )
    record, service = await _record(request, id), service_of(request)
    is_in_place = is_htmx(request)
    if is_in_place and not factors:
        return page(request, "answer_what_if.html", change=None, is_asked=False)
    answer = await service.call(lambda: read_answer(record.body))
    asked = parse_json(OptimizeIn, dump_json(changed_question(answer, factors, units)))
    if not is_in_place:
        return moved(request, units.after(id).onto(await answer_address(request, asked)))
    now, cap = (
        await passing_answer(request, await operation_of(request, asked)),
        _fragment_cap(request),
    )

    def compared() -> Response:
        current = _current_bytes(answer, dict(units.kept).get("current", ""))
        change = None if now is None else _change(record, now, cap, current_bytes=current)
        return page(request, "answer_what_if.html", change=change, is_asked=True)

    return await service.call(compared)


@router.get("/ui/answers/{id}/parts/sweep")
@says_refusals
async def sweep(request: Request, id: str, cost: Annotated[str, Query()] = "") -> Response:
    """Show the latency against one cost, from a quarter of it to four times as much."""
    body, cap = await _body(request, id), _fragment_cap(request)
    units = ShownUnits.from_texts(request.query_params)

    def drawn() -> dict[str, Any]:
        answer = with_unique_names(read_answer(body))
        current = _current_bytes(answer, dict(units.kept).get("current", ""))
        found = set_this_of(answer, fragment_cap=cap, current_bytes=current)
        sizes = (found.size_bytes, current)
        chart, costs, chosen = sweep_chart(answer, cost, sizes=sizes, fragment_cap=cap)
        words = f"Latency against one cost, {_about(answer)}"
        return {"sweep": chart, "costs": costs, "chosen": chosen, "words": words}

    query = f"?{urlencode({'cost': cost[:20]})}{units.also}"
    return await part_of(request, id, _SWEEP, drawn, query=query, answer_id=id, units=units)


@router.get("/ui/answers/{id}/parts/fragments")
@says_refusals
async def fragment_sizes(request: Request, id: str) -> Response:
    """Show latency against the size that is repeated."""
    body, cap = await _body(request, id), _fragment_cap(request)
    units = ShownUnits.from_texts(request.query_params)

    def drawn() -> dict[str, Any]:
        answer = read_answer(body)
        current = _current_bytes(answer, dict(units.kept).get("current", ""))
        curve = curve_of(answer, fragment_cap=cap, current_bytes=current)
        found = set_this(answer, curve, current_bytes=current)
        chart = fragments_chart(answer, curve, found.size_bytes, has_current=bool(current))
        return {"fragments": chart, "words": f"Latency by fragment size, {_about(answer)}"}

    return await part_of(request, id, _FRAGMENTS, drawn, query=units.asked)


@router.get("/ui/answers/{id}/parts/counts")
@says_refusals
async def counts(request: Request, id: str) -> Response:
    """Show latency against the number of fragments."""
    body, cap = await _body(request, id), _fragment_cap(request)

    def drawn() -> dict[str, Any]:
        answer = read_answer(body)
        asked = surroundings_of(answer, fragment_cap=cap)
        chart = counts_chart(answer, explore.counts(asked, time_limit_s=explore.COUNTS_LIMIT_S))
        return {"counts": chart, "words": f"Latency by number of fragments, {_about(answer)}"}

    return await part_of(request, id, _COUNTS, drawn)


@router.get("/ui/answers/{id}/parts/lanes")
@says_refusals
async def lanes(request: Request, id: str) -> Response:
    """Show the best size and its time by the lanes or places of a machine."""
    body, cap = await _body(request, id), _fragment_cap(request)

    def solved() -> dict[str, Any]:
        return {"counts": as_html(count_parts(read_answer(body), fragment_cap=cap))}

    return await part_of(request, id, _LANES, solved)


@router.get("/ui/answers/{id}/parts/sizes")
@says_refusals
async def sizes(
    request: Request, id: str, shown: Annotated[str, Query(alias="as")] = ""
) -> Response:
    """Show latency against the size of the message, for every strategy."""
    body, cap = await _body(request, id), _fragment_cap(request)

    def drawn() -> dict[str, Any]:
        answer = read_answer(body)
        asked = surroundings_of(answer, fragment_cap=cap)
        lines = explore.sizes(asked, time_limit_s=explore.SIZES_LIMIT_S)
        chart = sizes_chart(answer, lines)
        return {"sizes": chart, "words": f"Latency by size of the message, {_about(answer)}"}

    chosen = _shown(shown)
    return await part_of(request, id, _SIZES, drawn, query=f"?as={chosen}", shown=chosen)


@router.get("/ui/answers/{id}/parts/caps")
@says_refusals
async def caps(request: Request, id: str) -> Response:
    """Show the latency of items against the cap that fills fragments."""
    from analysis.item_caps import CURVE_LIMIT_S, cap_curve
    from app.schemas.items import stored_fill, stored_problem
    from app.verbs.optimize.page.items import caps_chart

    body, cap = await _body(request, id), _fragment_cap(request)

    def drawn() -> dict[str, Any]:
        answer = read_items_answer(body)
        problem = stored_problem(answer, fragment_cap=cap)
        curve = cap_curve(problem, stored_fill(answer), time_limit_s=CURVE_LIMIT_S)
        return {"caps": caps_chart(answer, curve), "words": f"Latency by cap, {_about(answer)}"}

    return await part_of(request, id, _CAPS, drawn)


@router.get("/ui/answers/{id}/parts/alternatives")
@says_refusals
async def alternatives(request: Request, id: str) -> Response:
    """Show every strategy on the answer's message."""
    body, cap = await _body(request, id), _fragment_cap(request)

    def priced() -> dict[str, Any]:
        answer = read_answer(body)
        asked = surroundings_of(answer, fragment_cap=cap)
        lines = explore.alternatives(asked, time_limit_s=explore.ALTERNATIVES_LIMIT_S)
        unit = latency_unit(answer).name
        remarks = alternatives_remarks(answer, lines)
        return {"alternatives": alternatives_of(answer, lines), "unit": unit, "remarks": remarks}

    caption = "The answer beside every strategy and the default settings"
    return await part_of(request, id, _ALTERNATIVES, priced, caption=caption, comes_from="")


def _fragment_cap(request: Request) -> int:
    return service_of(request).context.settings.max_fragments


def _about(answer: OptimizeOut) -> str:
    return f"{format_path(answer)}; the table below has the numbers"


async def _record(request: Request, id: str) -> AnswerRecord:
    service = service_of(request)
    return await service.call(lambda: get_answer(service.context.store, id))


async def _body(request: Request, id: str) -> bytes:
    return (await _record(request, id)).body


def _stored_earlier(
    request: Request, record: AnswerRecord, refusal: UnreadableRecord, units: ShownUnits
) -> Response:
    """Show the question of an answer that cannot be read, to be asked again."""
    problem = problem_out(refusal)
    return panel_page(
        request,
        "stored_earlier.html",
        InputState.of_record(record).in_units(units),
        status=problem.status,
        section=SECTION,
        refusal=problem,
        answer_id=record.id,
    )


def _of_items(
    request: Request,
    record: AnswerRecord,
    answer: ItemsOptimizeOut,
    units: ShownUnits,
    beside: DrawnBelow,
) -> Response:
    """Show an answer about items."""
    from app.verbs.optimize.page.items import ItemsView

    entry = InputState.of_items(answer).in_units(units).keeping(units.kept)
    values = _drawing(answer, beside)
    response = panel_page(
        request,
        "answer_items.html",
        entry,
        section=SECTION,
        view=ItemsView.from_answer(answer),
        units=units,
        is_local=request.url.hostname in LOOPBACK,
        name=record.name or "",
        note=record.note or "",
        **values,
    )
    return with_reader(request, response)


def _change_since(
    store: Store, answer: OptimizeOut, units: ShownUnits, cap: int, current_bytes: int | None
) -> Change | None:
    """Return what changed against the answer before, None where none is named, or it is gone."""
    last = dict(units.kept).get("last", "")
    if not last or last == answer.id:
        return None
    with suppress(SluiceError):
        return _change(get_answer(store, last), answer, cap, current_bytes=current_bytes)
    return None


def _change(
    record: AnswerRecord, now: OptimizeOut, cap: int, *, current_bytes: int | None
) -> Change:
    """Return what changed against a stored answer. Raises UnreadableRecord."""
    before = read_answer(record.body)
    sizes = (
        set_this_of(before, fragment_cap=cap).size_bytes,
        set_this_of(now, fragment_cap=cap, current_bytes=current_bytes).size_bytes,
    )
    return change_between(before, now, sizes, name=record.name or "")


def _current_bytes(answer: OptimizeOut, given: str) -> int | None:
    """Return the size that is repeated today, of the address or else of the answer's question."""
    if given == "whole":
        return answer.message_bytes
    if given:
        with suppress(SluiceError):
            return size_in(given)
    return current_of(answer)


def _beside(given: str) -> DrawnBelow:
    """Return what to draw below; what a page never sends counts as nothing."""
    return DrawnBelow.FIXED if given == DrawnBelow.FIXED else DrawnBelow.NOTHING


def _shown(given: str) -> str:
    """Return what the axis of the curves over messages shows."""
    return "latency" if given == "latency" else "ratio"


def _values(store: Store, answer: OptimizeOut, beside: DrawnBelow, base_url: str) -> dict[str, Any]:
    return {
        "view": AnswerView.from_answer(with_unique_names(answer)),
        **_drawing(answer, beside),
        "take_away": take_away_of(store, answer, base_url),
    }


def _drawing(answer: OptimizeOut, beside: DrawnBelow) -> dict[str, Any]:
    """The timeline where it is small enough to be drawn at once."""
    is_drawn = answer.pipeline is not None and drawn_cells(answer) <= AT_ONCE_CELLS
    timeline, undrawn = None, ""
    try:
        timeline = timeline_of(answer, Drawing(beside)) if is_drawn else None
    except (StrategyDeclined, LimitReached) as refusal:  # more lanes, or orders, than are drawn
        undrawn = refusal.detail
    return {
        "timeline": timeline,
        "undrawn": undrawn,
        "fragments": answer.fragments,
        "answer_id": answer.id,
        "beside": beside,
    }
