"""A stored answer: the page at once, and the parts of it that take a while by themselves."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import APIRouter, Query, Request, Response

from app.deps import gone, service_of
from app.flows import explore
from app.flows.answers import get_answer
from app.flows.explain_answer import explain
from app.schemas.explanations import explained_of
from app.web.input_state import InputState
from app.web.pages import page
from app.web.refusals import says_refusals
from app.web.snippets import base_url_of, take_away_of
from app.web.views.answer_around import (
    counts_chart,
    rivals_of,
    rivals_remark,
    sizes_chart,
    surroundings_of,
)
from app.web.views.answer_timeline import (
    AT_ONCE_CELLS,
    IN_THREAD_CELLS,
    Beside,
    Timeline,
    TimelineTask,
    cells_of,
    timeline_of,
)
from app.web.views.answer_view import AnswerView
from app.web.views.answer_why import WhyView
from app.web.views.answer_words import Document, TimeUnit, through_words

if TYPE_CHECKING:
    from models.session import Store

router = APIRouter(include_in_schema=False)

SECTION = "Workbench"
_CHEAPER_BY = 0.1
# A stored answer never changes, and going back to it shall not compute its parts again.
_KEPT = {"Cache-Control": "private, max-age=600"}

T = TypeVar("T")


@router.get("/ui/answers/{id}")
@says_refusals
async def answer(
    request: Request,
    id: str,
    beside: Annotated[str, Query()] = "",
    sizes: Annotated[str, Query()] = "",
) -> Response:
    """The answer as it is stored; `beside=fixed` draws the best fixed size below it, and
    `sizes=latency` has the curves over messages show times instead of ratios.
    """
    body = await _body(request, id)
    wanted = _beside(beside)
    service, base_url = service_of(request), base_url_of(request)

    def made() -> Response:
        # Thousands of ranges or fragments make a page that takes a while to write as well.
        values = _values(service.context.store, body, wanted, base_url)
        return page(request, "answer.html", section=SECTION, shown=_shown(sizes), **values)

    return await service.call(made)


@router.get("/ui/answers/{id}/parts/timeline")
@says_refusals
async def timeline(request: Request, id: str, beside: Annotated[str, Query()] = "") -> Response:
    """The timeline of an answer with many fragments."""
    body = await _body(request, id)
    drawn = await _drawn(request, body, _beside(beside))
    return page(request, "answer_timeline.html", timeline=drawn, answer_id=id)


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
    """The critical path by stage, and what cheaper costs would save."""
    body, cap = await _body(request, id), _fragment_cap(request)
    asked = explained_of(body, cheaper_by=_CHEAPER_BY, fragment_cap=cap)
    found = await _explored(request, lambda: WhyView.of(explain(asked)))
    return page(request, "answer_why.html", headers=_KEPT, why=found)


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

    values = await _explored(request, drawn)
    return page(request, "answer_counts.html", headers=_KEPT, **values)


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

    values = await _explored(request, drawn)
    return page(request, "answer_sizes.html", headers=_KEPT, shown=_shown(shown), **values)


@router.get("/ui/answers/{id}/parts/rivals")
@says_refusals
async def rivals(request: Request, id: str) -> Response:
    """Every strategy on the answer's message."""
    body, cap = await _body(request, id), _fragment_cap(request)

    def priced() -> dict[str, Any]:
        document = json.loads(body)
        asked = surroundings_of(document, fragment_cap=cap)
        lines = explore.rivals(asked, time_limit_s=explore.RIVALS_LIMIT_S)
        unit = TimeUnit.of(document["latency_us"]).name
        remark = rivals_remark(document)
        return {"rivals": rivals_of(document, lines), "unit": unit, "remark": remark}

    values = await _explored(request, priced)
    caption = "The answer beside every strategy and the usual sizes"
    return page(request, "answer_rivals.html", headers=_KEPT, caption=caption, **values)


async def _explored(request: Request, work: Callable[[], T]) -> T:
    return await service_of(request).explorer.run(work, gone(request))


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
        "view": AnswerView.of(document),
        "entry": InputState.of_answer(document),
        "timeline": timeline_of(document, beside) if is_drawn else None,
        "answer_id": document["id"],
        "beside": beside,
        "take_away": take_away_of(store, document, base_url),
    }


async def _drawn(request: Request, body: bytes, beside: Beside) -> Timeline:
    service = service_of(request)
    document = await service.call(lambda: json.loads(body))
    if document["pipeline"] is None or cells_of(document) <= IN_THREAD_CELLS:
        return await service.call(lambda: timeline_of(document, beside))
    from app.apart import Apart

    task = TimelineTask(body, beside)
    memory_bytes = service.context.settings.worker_memory_bytes
    return await service.apart(Apart(task, memory_bytes=memory_bytes), gone(request))
