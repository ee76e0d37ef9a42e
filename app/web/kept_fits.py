"""Fits that pages make: stored without a profile, so that each has an address of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fastapi import Request

from app.deps import gone, service_of
from app.errors import kind_of
from app.flows.fit_trace import FittedTrace, keep_fit, known_kind, utf8
from app.flows.held_trace import HeldTrace
from app.web.input_form import Mistaken
from app.web.input_request import request_of
from app.web.input_state import InputState
from domain.errors import Overloaded, SluiceError
from domain.fit import FitMethod, FitOptions, FitShape
from domain.trace_formats import UnreadableRows, UnrecognisedTrace
from models.records import FitRecord, FitRequest

_OF_THE_TRACE = ("trace", "kind")


async def kept_fit(request: Request, traces: Sequence[HeldTrace], asked: FitRequest) -> str:
    """Fit and store; the fit's address. Raises what `Service.fit` does."""
    service = service_of(request)
    outcome = await service.fit(traces, asked, save_as=None, gone=gone(request))

    def keep(fitted: FittedTrace) -> str:
        with service.context.store.unit_of_work() as unit:
            return keep_fit(unit, fitted)

    return f"/ui/fits/{await service.call(lambda: keep(outcome.fitted))}"


async def fit_again(request: Request, record: FitRecord, wanted: FitRequest) -> str:
    """The measurements of a stored fit fitted in another way; the new fit's address.

    Raises NotFound, and what `Service.fit` does.
    """
    service = service_of(request)
    traces = await stored_traces(request, record)
    outcome = await service.fit(traces, wanted, save_as=None, gone=gone(request))

    def keep() -> str:
        with service.context.store.unit_of_work() as unit:
            return unit.fits.add(record.trace_digests, outcome.fitted.fit, wanted)

    return f"/ui/fits/{await service.call(keep)}"


async def stored_traces(request: Request, record: FitRecord) -> tuple[HeldTrace, ...]:
    """The files that a fit was made of. Raises NotFound."""
    service = service_of(request)
    packed = [await service.stored_trace(digest) for digest in record.trace_digests]
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
