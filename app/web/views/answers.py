"""A stored answer: the page at once, and the parts of it that take a while by themselves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from analysis import explore
from analysis.explain import MAX_CELLS, explain
from app.deps import client_of, service_of
from app.flows.answers import get_answer
from app.operations.draw import Draw
from app.schemas.explanations import explained_of
from app.text.names import body_with_unique_names, with_unique_names
from app.web.input_state import InputState
from app.web.pages import page
from app.web.refusals import says_refusals
from app.web.shown_units import ShownUnits
from app.web.snippets import base_url_of, take_away_of
from app.web.views.answer_advice import advice_of
from app.web.views.answer_around import (
    counts_chart,
    rivals_of,
    rivals_remarks,
    sizes_chart,
    surroundings_of,
)
from app.web.views.answer_parts import Part, part_of, with_reader
from app.web.views.answer_timeline import (
    AT_ONCE_CELLS,
    EXPLORED_CELLS,
    IN_THREAD_CELLS,
    Beside,
    Drawing,
    TimelineDrawing,
    cells_of,
    timeline_of,
    window_of,
)
from app.web.views.answer_view import AnswerView
from app.web.views.answer_why import UntoldWhy, WhyView
from app.web.views.answer_words import Document, latency_unit, through_words

if TYPE_CHECKING:
    from models.session import Store

router = APIRouter(include_in_schema=False)

SECTION = "Workbench"
_CHEAPER_BY = 0.1
_TIMELINE = Part("timeline", "timeline", "Timeline", "answer_timeline.html")
_WHY = Part("why", "why", "Why", "answer_why.html")
_COUNTS = Part(
    "counts", "by-count", "Latency against the number of fragments", "answer_counts.html"
)
_SIZES = Part("sizes", "by-size", "Latency against the size of the message", "answer_sizes.html")
_RIVALS = Part("rivals", "rivals-table", "Strategies", "answer_rivals.html")


@router.get("/ui/answers/{id}")
@says_refusals
async def answer(
    request: Request,
    id: str,
    beside: Annotated[str, Query()] = "",
    sizes: Annotated[str, Query()] = "",
) -> Response:
    """The answer as it is stored; `beside=fixed` draws the best fixed size below it, and
    `sizes=latency` has the curves over messages show times instead of ratios. The question is shown
    in the units of the address.
    """
    body = await _body(request, id)
    wanted, units = _beside(beside), ShownUnits.of(request.query_params)
    service, base_url = service_of(request), base_url_of(request)

    def made() -> Response:
        # Thousands of ranges or fragments make a page that takes a while to write as well.
        values = _values(service.context.store, body, wanted, base_url)
        values |= {"entry": values["entry"].in_units(units), "units": units}
        made = page(request, "answer.html", section=SECTION, shown=_shown(sizes), **values)
        return with_reader(request, made)

    return await service.call(made)


@router.get("/ui/answers/{id}/parts/timeline")
@says_refusals
async def timeline(
    request: Request,
    id: str,
    beside: Annotated[str, Query()] = "",
    from_us: Annotated[str, Query()] = "",
    to_us: Annotated[str, Query()] = "",
) -> Response:
    """The timeline of an answer with many fragments, or of a stretch of its time."""
    body, units = await _body(request, id), ShownUnits.of(request.query_params)
    service, wanted = service_of(request), Drawing(_beside(beside), window_of(from_us, to_us))
    document = await service.call(lambda: json.loads(body))
    cells = 0 if document["pipeline"] is None else cells_of(document)
    if cells <= IN_THREAD_CELLS:
        drawn = await service.call(lambda: timeline_of(document, wanted))
    elif cells <= EXPLORED_CELLS:
        work = lambda: {"timeline": timeline_of(document, wanted)}  # noqa: E731
        query = units.onto(wanted.query)
        return await part_of(request, id, _TIMELINE, work, query=query, answer_id=id, units=units)
    else:
        drawn = await service.run(Draw(TimelineDrawing(body, wanted)), client_of(request))
    return page(request, _TIMELINE.template, timeline=drawn, answer_id=id, units=units)


@router.get("/ui/answers/{id}/parts/cut")
@says_refusals
async def cut(request: Request, id: str) -> Response:
    """Every size of a long cut."""
    body = await _body(request, id)

    def made() -> Response:
        return page(request, "answer_cut.html", sizes=json.loads(body)["fragment_bytes"])

    return await service_of(request).call(made)


@router.get("/ui/answers/{id}/parts/why")
@says_refusals
async def why(request: Request, id: str) -> Response:
    """The critical path by stage, and what cheaper costs would save: the most in one sentence."""
    body, cap = await _body(request, id), _fragment_cap(request)
    units = ShownUnits.of(request.query_params)

    def explained() -> dict[str, Any]:
        told = body_with_unique_names(body)
        asked = explained_of(told, cheaper_by=_CHEAPER_BY, fragment_cap=cap)
        document = json.loads(told)
        if asked.cells > MAX_CELLS:
            untold = UntoldWhy.of(document, asked.cells, MAX_CELLS)
            return {"why": None, "advice": "", "untold": untold}
        found = explain(asked)
        advice = advice_of(found, document["pipeline"], units)
        return {"why": WhyView.of(found), "advice": advice}

    return await part_of(request, id, _WHY, explained, query=units.asked)


@router.get("/ui/answers/{id}/parts/counts")
@says_refusals
async def counts(request: Request, id: str) -> Response:
    """Latency against the number of fragments."""
    body, cap = await _body(request, id), _fragment_cap(request)

    def drawn() -> dict[str, Any]:
        document = json.loads(body)
        asked = surroundings_of(document, fragment_cap=cap)
        chart = counts_chart(document, explore.counts(asked, time_limit_s=explore.COUNTS_LIMIT_S))
        return {"counts": chart, "words": f"Latency by number of fragments, {_about(document)}"}

    return await part_of(request, id, _COUNTS, drawn)


@router.get("/ui/answers/{id}/parts/sizes")
@says_refusals
async def sizes(
    request: Request, id: str, shown: Annotated[str, Query(alias="as")] = ""
) -> Response:
    """Latency against the size of the message, for every strategy."""
    body, cap = await _body(request, id), _fragment_cap(request)

    def drawn() -> dict[str, Any]:
        document = json.loads(body)
        asked = surroundings_of(document, fragment_cap=cap)
        lines = explore.sizes(asked, time_limit_s=explore.SIZES_LIMIT_S)
        chart = sizes_chart(document, lines)
        return {"sizes": chart, "words": f"Latency by size of the message, {_about(document)}"}

    chosen = _shown(shown)
    return await part_of(request, id, _SIZES, drawn, query=f"?as={chosen}", shown=chosen)


@router.get("/ui/answers/{id}/parts/rivals")
@says_refusals
async def rivals(request: Request, id: str) -> Response:
    """Every strategy on the answer's message."""
    body, cap = await _body(request, id), _fragment_cap(request)

    def priced() -> dict[str, Any]:
        document = json.loads(body)
        asked = surroundings_of(document, fragment_cap=cap)
        lines = explore.rivals(asked, time_limit_s=explore.RIVALS_LIMIT_S)
        unit = latency_unit(document).name
        remarks = rivals_remarks(document, lines)
        return {"rivals": rivals_of(document, lines), "unit": unit, "remarks": remarks}

    caption = "The answer beside every strategy and the usual sizes"
    return await part_of(request, id, _RIVALS, priced, caption=caption, comes_from="")


def _fragment_cap(request: Request) -> int:
    return service_of(request).context.settings.max_fragments


def _about(document: Document) -> str:
    return f"{through_words(document)}; the table below has the numbers"


async def _body(request: Request, id: str) -> bytes:
    service = service_of(request)
    record = await service.call(lambda: get_answer(service.context.store, id))
    return record.body


def _beside(given: str) -> Beside:
    """What a page never sends counts as nothing."""
    return Beside.FIXED if given == Beside.FIXED else Beside.NOTHING


def _shown(given: str) -> str:
    """What the axis of the curves over messages shows."""
    return "latency" if given == "latency" else "ratio"


def _values(store: Store, body: bytes, beside: Beside, base_url: str) -> dict[str, Any]:
    document = json.loads(body)
    is_drawn = document["pipeline"] is not None and cells_of(document) <= AT_ONCE_CELLS
    return {
        "view": AnswerView.of(with_unique_names(document)),
        "entry": InputState.of_answer(document),
        "timeline": timeline_of(document, Drawing(beside)) if is_drawn else None,
        "answer_id": document["id"],
        "beside": beside,
        "take_away": take_away_of(store, document, base_url),
    }
