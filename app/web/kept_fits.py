"""Fits that pages make: stored without a profile, so that each has an address of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fastapi import Request

from app.deps import client_of, service_of
from app.errors import kind_of
from app.flows.fit_trace import FittedTrace, get_trace, keep_fit, known_kind, utf8
from app.flows.held_trace import HeldTrace
from app.operations.fits import FitTraces
from app.web.input_form import Mistaken
from app.web.input_request import request_of
from app.web.input_state import InputState
from domain.errors import Overloaded, SluiceError
from domain.fit import FitMethod, FitOptions, FitShape
from domain.trace_formats import UnreadableRows, UnrecognisedTrace
from models.packing import PackedTrace
from models.records import FitRecord, FitRequest

_OF_THE_TRACE = ("trace", "kind")


async def kept_fit(request: Request, traces: Sequence[HeldTrace], asked: FitRequest) -> str:
    """Fit and store; the fit's address. Raises what `Service.fit` does."""
    service = service_of(request)
    fitted = await _fitted(request, traces, asked)

    def keep() -> str:
        with service.context.store.unit_of_work() as unit:
            return keep_fit(unit, fitted)

    return f"/ui/fits/{await service.write(keep)}"


async def fit_again(request: Request, record: FitRecord, wanted: FitRequest) -> str:
    """The measurements of a stored fit fitted in another way; the new fit's address.

    Raises NotFound, and what `Service.fit` does.
    """
    service = service_of(request)
    traces = await stored_traces(request, record)
    fitted = await _fitted(request, traces, wanted)

    def keep() -> str:
        with service.context.store.unit_of_work() as unit:
            return unit.fits.add(record.trace_digests, fitted.fit, wanted)

    return f"/ui/fits/{await service.write(keep)}"


async def _fitted(request: Request, traces: Sequence[HeldTrace], asked: FitRequest) -> FittedTrace:
    service = service_of(request)
    operation = FitTraces(tuple(traces), asked, service.context.settings.max_fragments)
    return operation.fitted(await service.fit(operation, client_of(request)))


async def stored_traces(request: Request, record: FitRecord) -> tuple[HeldTrace, ...]:
    """The files that a fit was made of. Raises NotFound."""
    service = service_of(request)
    store = service.context.store

    def found() -> list[PackedTrace]:
        return [get_trace(store, digest) for digest in record.trace_digests]

    packed = await service.call(found)
    return tuple(
        HeldTrace(one.digest, one.content_bytes, one.pieces, one.content) for one in packed
    )


async def fit_of_entry(request: Request, entry: InputState) -> str:
    """The same of what was pasted into the panel. Raises Mistaken for what is wrong with that."""
    read = request_of(entry)
    wrong = {name: words for name, words in read.mistakes.items() if name in _OF_THE_TRACE}
    if wrong:
        raise Mistaken(entry.with_mistakes(wrong))
    try:
        trace = HeldTrace.of(utf8(entry.trace))
        return await kept_fit(request, (trace,), fit_request_of(entry))
    except SluiceError as refusal:
        if isinstance(refusal, Overloaded) or kind_of(refusal.code).status >= 500:
            raise
        place = "kind" if refusal.field == "kind" else "trace"
        marked = entry.with_mistakes({place: refusal.detail})
        unread = refusal if isinstance(refusal, UnrecognisedTrace | UnreadableRows) else None
        raise Mistaken(replace(marked, unread=unread)) from None


def fit_request_of(entry: InputState) -> FitRequest:
    """How the panel asks to fit. Raises UnreadableTrace; a method that is none is the usual one."""
    method = entry.method if entry.method in tuple(FitMethod) else FitMethod.ROBUST
    shape = entry.shape if entry.shape == FitShape.LINE else FitShape.RANGES
    options = FitOptions(FitMethod(method), FitShape(shape))
    return FitRequest(options, None, (known_kind(entry.kind or None),))
