"""Fits of measurements that are stored already: in another way, or with a further file beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fastapi import Request

from app.http.dependencies import service_of
from app.questions.fits import get_trace
from app.questions.traces import LoadedTrace
from app.web.fitted import fit_and_store, fitted_now
from domain.fit import FitOptions
from domain.measurement import TraceKind
from models.packing import PackedTrace
from models.records import FitRecord, FitRequest


async def fit_again(request: Request, record: FitRecord, wanted: FitRequest) -> str:
    """Fit the measurements of a stored fit in another way; return the new fit's address.

    Raises NotFound, and what `Service.fit` does.
    """
    service = service_of(request)
    traces = await stored_traces(request, record)
    fitted = await fitted_now(request, traces, wanted)

    def keep() -> str:
        with service.context.store.unit_of_work() as unit:
            return unit.fits.add(record.trace_digests, fitted.fit, wanted)

    return f"/ui/fits/{await service.write(keep)}"


async def stored_traces(request: Request, record: FitRecord) -> tuple[LoadedTrace, ...]:
    """Return the files that a fit was made of. Raises NotFound."""
    service = service_of(request)
    store = service.context.store

    def found() -> list[PackedTrace]:
        return [get_trace(store, digest) for digest in record.trace_digests]

    packed = await service.call(found)
    return tuple(
        LoadedTrace(trace.digest, trace.content_bytes, trace.pieces, trace.content)
        for trace in packed
    )


async def fit_beside(
    request: Request, record: FitRecord, more: Sequence[LoadedTrace], added: FitRequest
) -> str:
    """Fit the stored measurements and these together; return the new fit's address.

    `added` has the kinds and exclusions that came with them. Raises what `Service.fit` does.
    """
    before = record.request or FitRequest(FitOptions())
    stored = await stored_traces(request, record)
    options = before.options
    asked = replace(
        before,
        options=replace(options, excluded=(*options.excluded, *added.options.excluded)),
        kinds=(*_kinds(before.kinds, len(stored)), *_kinds(added.kinds, len(more))),
    )
    return await fit_and_store(request, (*stored, *more), asked)


def _kinds(kinds: Sequence[TraceKind | None], count: int) -> Sequence[TraceKind | None]:
    return kinds or (None,) * count
