"""The page of hiding: the form, the parts of its answer, and the pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import Request, Response

from app.http.dependencies import own_router
from app.schemas.base import read_output
from app.text.numbers import format_figure
from app.ui.form_page import asked_page, embedded
from app.ui.forms import RequestForm
from app.ui.html import as_html
from app.ui.pages import says_refusals
from app.ui.parts import noted
from app.verbs.hide import show
from app.verbs.hide.operation import operation
from contract.hide import HideIn, StoredHideOut

router = own_router(include_in_schema=False)
FORM = RequestForm(
    HideIn, "hide", always={"time_limit_s": 5.0}, begins_with={"profile": "myrinet-gam"}
)


@router.get("/ui/hiding")
@says_refusals
async def hiding(request: Request) -> Response:
    """Show the form, and where it is filled in what hiding gains."""
    return await asked_page(request, FORM, operation, _view, "hiding.html")


def _view(asked: HideIn, document: bytes, texts: Mapping[str, str]) -> Mapping[str, Any]:
    found = read_output(StoredHideOut, document)
    return {
        "gain": format_figure(found.gain),
        "parts": as_html([*show.figures(found), *noted(found.warnings)]),
        "counts": as_html([show.counts(found)] if found.counts else []),
        "pictures": [(words, embedded(drawn)) for words, drawn in show.pictures(found)],
        "profile": found.profile,
    }
