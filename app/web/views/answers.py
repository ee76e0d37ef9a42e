"""A stored answer: the page at once, and the parts of it that take a while by themselves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from app.deps import gone, service_of
from app.flows.answers import get_answer
from app.web.input_state import InputState
from app.web.pages import page
from app.web.refusals import says_refusals
from app.web.snippets import base_url_of, take_away_of
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

if TYPE_CHECKING:
    from models.session import Store

router = APIRouter(include_in_schema=False)

SECTION = "Workbench"


@router.get("/ui/answers/{id}")
@says_refusals
async def answer(request: Request, id: str, beside: Annotated[str, Query()] = "") -> Response:
    """The answer as it is stored; `beside=fixed` draws the best fixed size below it."""
    body = await _body(request, id)
    wanted = _beside(beside)
    service, base_url = service_of(request), base_url_of(request)
    values = await service.call(lambda: _values(service.context.store, body, wanted, base_url))
    return page(request, "answer.html", section=SECTION, **values)


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
    sizes = await service_of(request).call(lambda: json.loads(body)["fragment_bytes"])
    return page(request, "answer_cut.html", sizes=sizes)


async def _body(request: Request, id: str) -> bytes:
    service = service_of(request)
    record = await service.call(lambda: get_answer(service.context.store, id))
    return record.body


def _beside(given: str) -> Beside:
    """What a page never sends counts as nothing."""
    return Beside.FIXED if given == Beside.FIXED else Beside.NOTHING


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
