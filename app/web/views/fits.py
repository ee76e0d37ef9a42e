"""Fits: made from a file that is sent, and shown."""

from __future__ import annotations

from functools import partial
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from app.asked_traces import asked_traces
from app.deps import service_of, trace_rules
from app.schemas.queries import FitQuery
from app.trace_bodies import arriving_trace
from app.web.kept_fits import kept_fit
from app.web.pages import moved

router = APIRouter(include_in_schema=False)


class SentQuery(FitQuery):
    """How to fit, and the message that the page goes on with."""

    message: Annotated[str, Field(max_length=40)] = ""


@router.post("/ui/fits")
async def fit(request: Request, query: Annotated[SentQuery, Query()]) -> Response:
    """Fit the file of measurements that is the body, and go to the fit."""
    async with arriving_trace(request, **trace_rules(request)) as body:
        wanted = query.to_request()
        unpack = partial(asked_traces, request, body, wanted)
        traces, asked = await service_of(request).call(unpack)
        address = await kept_fit(request, traces, asked)
    return moved(request, address + with_message(query.message))


def with_message(message: str) -> str:
    """The query of a fit's address that carries the message on."""
    return f"?{urlencode({'bytes': message})}" if message else ""
