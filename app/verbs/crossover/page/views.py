"""The page of crossovers: the form, the parts of the answer, and a program's setting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import Request, Response

from app.http.dependencies import own_router
from app.schemas.base import read_output
from app.ui.form_page import asked_page
from app.ui.forms import RequestForm
from app.ui.html import as_html
from app.ui.pages import says_refusals
from app.verbs.crossover import show
from app.verbs.crossover.operation import operation
from contract.crossover import CrossoverIn, CrossoverOut

PLACE = "/ui/crossover"

router = own_router(include_in_schema=False)
FORM = RequestForm(CrossoverIn, "crossover", begins_with={"a": "myrinet-gam", "b": "trapeze"})


@router.get(PLACE)
@says_refusals
async def crossover(request: Request) -> Response:
    """Show the form, and where it is filled in the sizes at which the faster path changes."""
    return await asked_page(request, FORM, operation, _view, "crossover.html")


def _view(asked: CrossoverIn, document: bytes, texts: Mapping[str, str]) -> Mapping[str, Any]:
    found = read_output(CrossoverOut, document)
    return {"parts": as_html(show.parts(found)), "setting": found.setting, "profile": None}
