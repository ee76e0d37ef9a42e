# app/verbs/curve/page/views.py
"""The page of curves: a form of the request's words, and the parts of its answer."""

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
from app.verbs.curve.operation import operation
from app.verbs.curve.show import parts
from contract.curve import CurveIn, CurveOut

router = own_router(include_in_schema=False)
FORM = RequestForm(CurveIn, "curve", begins_with={"profile": "myrinet-gam"})


@router.get("/ui/curve")
@says_refusals
async def curve(request: Request) -> Response:
    """Show the form, and where it is filled in the curve."""
    return await asked_page(request, FORM, operation, _view, "curve.html")


def _view(asked: CurveIn, document: bytes, texts: Mapping[str, str]) -> Mapping[str, Any]:
    return {"parts": as_html(parts(read_output(CurveOut, document))), "profile": None}
