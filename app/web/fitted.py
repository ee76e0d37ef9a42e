"""Fits that pages make: each is stored without a profile, so that it has an address."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from fastapi import Request

from app.http.dependencies import client_of, service_of
from app.operations.fits import FitTraces
from app.questions.fits import FittedTrace, GivenFit, keep_fit, keep_given
from app.questions.traces import LoadedTrace
from app.schemas.fit_documents import may_be_fit, read_fit
from models.records import FitRequest


def with_message(message: str, current: str = "", *, before: str = "") -> str:
    """Return the query of a fit's address: the message, the setting in use, and the fit that it was
    made from.
    """
    given = {"bytes": message, "current": current, "before": before}
    kept = {name: value for name, value in given.items() if value}
    return f"?{urlencode(kept)}" if kept else ""


async def fit_and_store(request: Request, traces: Sequence[LoadedTrace], asked: FitRequest) -> str:
    """Fit and store; return the fit's address. A fit in the place of the file is stored as it is.

    Raises what `Service.fit` does, and `read_fit`.
    """
    service = service_of(request)
    limit = service.context.settings.max_body_bytes
    given = await service.call(lambda: _given(traces, limit))
    fitted = None if given is not None else await fitted_now(request, traces, asked)

    def keep() -> str:
        with service.context.store.unit_of_work() as unit:
            if given is not None:
                return keep_given(unit, given)
            assert fitted is not None
            return keep_fit(unit, fitted)

    return f"/ui/fits/{await service.write(keep)}"


async def fitted_now(
    request: Request, traces: Sequence[LoadedTrace], asked: FitRequest
) -> FittedTrace:
    """Return the fit of these files, which is not stored. Raises what `Service.fit` does."""
    service = service_of(request)
    operation = FitTraces(tuple(traces), asked, service.context.settings.max_fragments)
    return operation.fitted(await service.fit(operation, client_of(request)))


def _given(traces: Sequence[LoadedTrace], limit: int) -> GivenFit | None:
    """The fit that the one file is; None where it is measurements."""
    if len(traces) != 1 or traces[0].content_bytes > limit:
        return None
    content = traces[0].content()
    return read_fit(content) if may_be_fit(content) else None
