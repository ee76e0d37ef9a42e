"""A body of measurements as the files that it holds: one as it is, or JSON with several."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from fastapi import Request

from app.flows.fit_trace import held_measurements
from app.flows.held_trace import HeldTrace
from app.schemas.base import load_json, parse_json
from app.schemas.fit_requests import FitIn
from app.trace_bodies import is_json
from domain.errors import BodyTooLarge, InconsistentInput
from models.records import FitRequest

_SEVERAL = re.compile(rb'\s*\{\s*"measurements"\s*:')
_HEAD_BYTES = 1024


def asked_traces(
    request: Request, body: HeldTrace, asked: FitRequest
) -> tuple[Sequence[HeldTrace], FitRequest]:
    """The files in the body, and the request with the kinds that are said there. Blocks.

    Raises BodyTooLarge, NotJson and InvalidInput.
    """
    if not is_json(request):
        return (body,), asked
    limit = request.app.state.settings.max_body_bytes
    if body.content_bytes > limit:
        if _SEVERAL.match(next(iter(body.pieces()))[:_HEAD_BYTES]):
            raise BodyTooLarge(f"expected JSON with several files of at most {limit} bytes")
        return (body,), asked
    content = body.content()
    document = load_json(content)
    if not isinstance(document, dict) or "measurements" not in document:
        return (body,), asked
    if asked.kinds != (None,):
        raise InconsistentInput("each of several files says its own kind", field="kind")
    given = parse_json(FitIn, content)
    traces, kinds = held_measurements(given.to_domain())
    excluded = (*asked.options.excluded, *given.left_out())
    return traces, replace(asked, kinds=kinds, options=replace(asked.options, excluded=excluded))
