"""POST /fit, and the stored fits with their traces and plots."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse

from app.api.openapi import reads_traces, refuses, sends_text
from app.api.respond import json_bytes, json_document, keyed, once
from app.http.bodies import arriving_trace, asked_traces, is_json
from app.http.dependencies import client_of, own_router, service_of, trace_rules
from app.http.fastpath.responses import IMMUTABLE
from app.operations.fits import FitTraces
from app.operations.operation import Outcome
from app.questions.fits import get_fit, get_trace
from app.questions.traces import LoadedTrace
from app.schemas.fits import fit_plot_out, stored_fit_out
from app.schemas.queries import FitQuery, NoQuery
from contract.fit import FitIn, FitOut, FitPlotOut

router = own_router(tags=["fit"])
BODIES = (FitIn,)
OUTPUTS = (FitOut, FitPlotOut)

# Those that are published; less common names of the same are read too.
_TYPES = ("text/csv", "text/plain", "application/octet-stream", "application/gzip")


@router.post("/fit", **reads_traces(FitIn, _TYPES, sends=FitOut))
@keyed
async def fit(request: Request, query: Annotated[FitQuery, Query()]) -> Response:
    """Fit a measured pipeline; the body is the file of measurements, or JSON with several."""
    service = service_of(request)
    asked = query.to_request()
    async with arriving_trace(request, **trace_rules(request)) as body:
        traces: Sequence[LoadedTrace] = (body,)
        if is_json(request):
            traces, asked = await service.call(partial(asked_traces, request, body, asked))
        operation = FitTraces(
            tuple(traces),
            asked,
            service.context.settings.max_fragments,
            wants_plot=query.plot,
            save_as=query.save_as,
        )
        found = await service.fit(operation, client_of(request))
        return _sent(await service.keep(operation, found, once(request, _sent)))


def _sent(outcome: Outcome) -> Response:
    return json_bytes(outcome.document)


@router.get("/fits/{id}", **refuses(404, 422, 503, sends=FitOut))
async def stored_fit(request: Request, id: str, _: Annotated[NoQuery, Query()]) -> Response:
    """A stored fit, and the digests of the traces that it was made from."""
    service = service_of(request)
    record = await service.call(lambda: get_fit(service.context.store, id))
    return json_document(stored_fit_out(record))


@router.get("/traces/{digest}", response_class=StreamingResponse, **sends_text(404, 422, 503))
async def trace(request: Request, digest: str, _: Annotated[NoQuery, Query()]) -> Response:
    """A stored trace, byte for byte as it was measured."""
    service = service_of(request)
    packed = await service.call(lambda: get_trace(service.context.store, digest))
    # Anybody's bytes: never shown as a page of this server.
    headers = {
        "Content-Length": str(packed.content_bytes),
        "Content-Disposition": f'attachment; filename="{packed.digest}.txt"',
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": IMMUTABLE,
    }
    return StreamingResponse(packed.pieces(), media_type="text/plain", headers=headers)


# --- GET /fits/{id}/plot --------------------------------------------------------------------------


@router.get("/fits/{id}/plot", **refuses(404, 422, 503, sends=FitPlotOut))
async def fit_plot(request: Request, id: str, _: Annotated[NoQuery, Query()]) -> Response:
    """What a plot of a stored fit shows, from its stored traces."""
    return json_document(fit_plot_out(await service_of(request).plot(id, client_of(request))))
