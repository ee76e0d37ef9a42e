# app/web/profiles/curves.py
"""The curve of a profile, as a page."""

from __future__ import annotations

import json
from functools import partial

from fastapi import Request, Response

from app.http.dependencies import client_of, own_router, service_of
from app.operations.curves import CurveIn, curve_operation
from app.web.pages import page, says_refusals

router = own_router(include_in_schema=False)


@router.get("/ui/profiles/{name}/curve")
@says_refusals
async def curve(request: Request, name: str) -> Response:
    """Latencies up to a mebibyte."""
    service, asked = service_of(request), CurveIn(profile=name, max_message_bytes=2**20)
    make = partial(curve_operation, asked, settings=service.context.settings)
    performed = await service.perform(make, client_of(request))
    rows = json.loads(performed.outcome.document)["latencies_us"]
    return page(request, "curve.html", section="Profiles", name=name, rows=rows)
