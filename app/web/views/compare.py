"""Stored answers side by side; which ones, the address says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request, Response

from app.deps import client_of, service_of
from app.flows.answers import get_answer
from app.operations.draw import Draw
from app.schemas.base import read_output
from app.schemas.optimize import OptimizeOut
from app.web.pages import is_htmx, page
from app.web.refusals import says_refusals
from app.web.views.answer_timeline import AT_ONCE_CELLS, IN_THREAD_CELLS
from app.web.views.arrivals import arrivals_chart
from app.web.views.compare_view import MOST, PLACE, CompareView, drawn
from domain.errors import InvalidInput
from models.session import Store

router = APIRouter(include_in_schema=False)

SECTION = "Answers"


@dataclass(frozen=True, slots=True)
class Timelines:
    """Timelines that a worker draws."""

    bodies: tuple[bytes, ...]

    @property
    def noun(self) -> str:
        """In refusals."""
        return "timelines"

    def draw(self) -> str:
        """Draw. Raises SluiceError."""
        return drawn(_read(self.bodies))


@router.get(PLACE)
@says_refusals
async def compare(request: Request) -> Response:
    """Two to six answers: cuts, timelines where they can be compared, and what differs."""
    ids = _ids(request)
    shows_all = bool(request.query_params.get("all"))
    service = service_of(request)
    values = await service.call(lambda: _values(service.context.store, ids, shows_all=shows_all))
    return page(request, "compare.html", section=SECTION, **values)


@router.get(f"{PLACE}/timeline")
@says_refusals
async def timeline(request: Request) -> Response:
    """The timelines of answers with many fragments."""
    ids = _ids(request)
    service = service_of(request)
    bodies = await service.call(lambda: _bodies(service.context.store, ids))
    view = await service.call(lambda: _view(bodies, shows_all=False))
    if view.why_no_timeline:
        raise InvalidInput(view.why_no_timeline)
    if view.cells <= IN_THREAD_CELLS:
        svg = await service.call(lambda: drawn(_read(bodies)))
    else:
        svg = await service.run(Draw(Timelines(tuple(bodies))), client_of(request))
    template = "compare_timeline.html" if is_htmx(request) else "compare_alone.html"
    return page(request, template, section=SECTION, svg=svg)


def _ids(request: Request) -> tuple[str, ...]:
    """Each once, in their order."""
    ids = tuple(dict.fromkeys(request.query_params.getlist("id")))
    if not 2 <= len(ids) <= MOST:
        raise InvalidInput(f"expected two to {MOST} different answers to compare", field="id")
    return ids


def _bodies(store: Store, ids: Sequence[str]) -> list[bytes]:
    return [get_answer(store, identifier).body for identifier in ids]


def _read(bodies: Sequence[bytes]) -> list[OptimizeOut]:
    return [read_output(OptimizeOut, body) for body in bodies]


def _view(bodies: Sequence[bytes], *, shows_all: bool) -> CompareView:
    return CompareView.of(_read(bodies), shows_all=shows_all)


def _values(store: Store, ids: Sequence[str], *, shows_all: bool) -> dict[str, Any]:
    answers = _read(_bodies(store, ids))
    view = CompareView.of(answers, shows_all=shows_all)
    is_at_once = not view.why_no_timeline and view.cells <= AT_ONCE_CELLS
    svg = drawn(answers) if is_at_once else ""
    arrivals = arrivals_chart(answers, [f"{side.letter} {side.name}" for side in view.sides])
    return {"view": view, "svg": svg, "arrivals": arrivals}
