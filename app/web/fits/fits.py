"""Pages of fits: made from a file, shown, made again without some samples, and used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, TypeAlias
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from app.errors import kind_of
from app.http.bodies import arriving_trace, asked_traces, media_type
from app.http.dependencies import client_of, service_of, trace_rules
from app.plots.fit_svg import render_fit_svg
from app.questions.fits import get_fit, name_fit, utf8
from app.questions.question import LoadedTrace
from app.schemas.queries import FitQuery
from app.schemas.stages import given_model
from app.web.fits.again import FitChanges, asked_again, fit_again, fit_and_store, fit_changes
from app.web.fits.view import chart_views, fit_beside, fit_view, parameters_data, signature_views
from app.web.forms import FORM, asked_document, read_form
from app.web.jobs.jobs import answer_address
from app.web.pages import is_htmx, moved, page, says_refusals
from domain.errors import InvalidInput, SluiceError
from domain.profile import check_profile_name
from domain.trace_formats import UnreadableRows, UnrecognisedTrace
from domain.units import parse_bytes
from models.records import FitRecord, FitRequest

router = APIRouter(include_in_schema=False)
DEFAULT_MESSAGE = "64 KiB"
Keep: TypeAlias = Callable[[Sequence[LoadedTrace], FitRequest], Awaitable[str]]


class SentQuery(FitQuery):
    """How to fit, and the message that the page goes on with."""

    message: Annotated[str, Field(max_length=40)] = ""


@router.post("/ui/fits")
async def fit(request: Request, query: Annotated[SentQuery, Query()]) -> Response:
    """Fit the file of measurements that is the body, and go to the fit."""
    return await _of_body(
        request, query.to_request(), partial(fit_and_store, request), query.message
    )


@router.post("/ui/fits/{fit_id}/beside")
@says_refusals
async def beside(
    request: Request, fit_id: str, message: Annotated[str, Query(max_length=40)] = ""
) -> Response:
    """Fit the measurements of a fit together with a further file: the body, or a pasted text."""
    record = await stored_fit(request, fit_id)
    together = partial(fit_beside, request, record)
    if media_type(request)[0] != FORM:
        return await _of_body(request, FitRequest(kinds=(None,)), together, message)
    pairs = dict(await read_form(request))
    text, message = pairs.get("trace", ""), pairs.get("message", "")
    try:
        address = await together((LoadedTrace.of(utf8(text)),), FitRequest(kinds=(None,)))
    except SluiceError as refusal:
        marked = {"trace": ""}
        return await _mistaken(request, fit_id, refusal, marked, message=message, trace=text)
    return moved(request, address + with_message(message))


async def _of_body(request: Request, wanted: FitRequest, keep: Keep, message: str) -> Response:
    """Have the files that are the body fitted and kept, and go to the fit."""
    async with arriving_trace(request, **trace_rules(request)) as body:
        unpack = partial(asked_traces, request, body, wanted)
        traces, asked = await service_of(request).call(unpack)
        try:
            address = await keep(traces, asked)
        except (UnrecognisedTrace, UnreadableRows) as refusal:
            if not is_htmx(request):
                raise
            return page(request, "trace_refused.html", status=422, refusal=refusal)
    return moved(request, address + with_message(message))


@router.get("/ui/fits/{fit_id}")
@says_refusals
async def shown(request: Request, fit_id: str) -> Response:
    """Show a stored fit, and with `before` what has changed since that one."""
    return await _page(request, fit_id, message=request.query_params.get("bytes", ""))


@router.get("/ui/fits/{fit_id}/parts/charts")
@says_refusals
async def charts(request: Request, fit_id: str) -> Response:
    """Show its charts and its samples, for which its measurements are read again."""
    plot = await service_of(request).plot(fit_id, client_of(request))
    fit = (await stored_fit(request, fit_id)).fit
    return page(
        request,
        "fit_charts.html",
        charts=chart_views(plot),
        signatures=signature_views(plot, fit.loggp),
        parameters=parameters_data(fit.loggp) if fit.loggp and fit.loggp.sizes else None,
    )


@router.get("/ui/fits/{fit_id}/plot.svg")
@says_refusals
async def drawn(request: Request, fit_id: str) -> Response:
    """Show all its plots as one drawing, the same that the command line writes."""
    service = service_of(request)
    record = await stored_fit(request, fit_id)
    plot = await service.plot(fit_id, client_of(request))
    svg = await service.call(lambda: render_fit_svg(record.fit, plot))
    headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
    return Response(svg, headers=headers, media_type="image/svg+xml")


@router.post("/ui/fits/{fit_id}/again")
@says_refusals
async def again(request: Request, fit_id: str) -> Response:
    """Fit in another way, or without some samples: a fit with an address of its own."""
    pairs = await read_form(request)
    record = await stored_fit(request, fit_id)
    message = dict(pairs).get("message", "")
    try:
        address = await fit_again(request, record, asked_again(record, pairs))
    except SluiceError as refusal:
        place = refusal.field if refusal.field in ("join", "max_ranges", "as_stage") else "again"
        return await _mistaken(request, fit_id, refusal, {place: ""}, message=message)
    return moved(request, address + with_message(message, before=fit_id))


@router.post("/ui/fits/{fit_id}/optimize")
@says_refusals
async def optimize(request: Request, fit_id: str) -> Response:
    """Cut a message by what was fitted."""
    message = dict(await read_form(request)).get("message", "")
    model = (await stored_fit(request, fit_id)).fit.to_model()
    try:
        document = {"message_bytes": parse_bytes(message), **given_model(model)}
        return moved(request, await answer_address(request, asked_document(document)))
    except SluiceError as refusal:
        return await _mistaken(request, fit_id, refusal, {"message": message}, message=message)


@router.post("/ui/fits/{fit_id}/profile")
@says_refusals
async def save(request: Request, fit_id: str) -> Response:
    """Make what was fitted a profile's current revision."""
    service = service_of(request)
    name = dict(await read_form(request)).get("name", "").strip()

    def named() -> str:
        check_profile_name(name)
        with service.context.store.unit_of_work() as unit:
            return name_fit(unit, fit_id, name=name).profile.name

    try:
        return moved(request, f"/ui/profiles/{await service.write(named)}")
    except InvalidInput as refusal:
        return await _mistaken(request, fit_id, refusal, {"name": name}, name=name)


async def stored_fit(request: Request, fit_id: str) -> FitRecord:
    """Return the stored fit. Raises NotFound."""
    service = service_of(request)
    return await service.call(lambda: get_fit(service.context.store, fit_id))


def with_message(message: str, *, before: str = "") -> str:
    """Return the query of a fit's address: the message, and the fit that it was made from."""
    given = {"bytes": message, "before": before}
    kept = {name: value for name, value in given.items() if value}
    return f"?{urlencode(kept)}" if kept else ""


async def _page(
    request: Request,
    fit_id: str,
    *,
    message: str = "",
    name: str = "",
    trace: str = "",
    refusal: SluiceError | None = None,
    status: int = 200,
    mistakes: Mapping[str, str] | None = None,
) -> Response:
    record = await stored_fit(request, fit_id)
    values: dict[str, Any] = {
        "section": "Workbench",
        "view": fit_view(record),
        "changes": await _changes(request, record),
        "message": message[:40] or DEFAULT_MESSAGE,
        "name": name[:100],
        "trace": trace,
        "unread": refusal if isinstance(refusal, UnrecognisedTrace | UnreadableRows) else None,
        "mistakes": mistakes or {},
    }
    return page(request, "fit.html", status=status, **values)


async def _changes(request: Request, record: FitRecord) -> FitChanges | None:
    """Return what is new since the fit that the address names; None without one of these data."""
    before = request.query_params.get("before", "")
    if not before or before == record.id:
        return None
    earlier = await stored_fit(request, before)
    if earlier.trace_digests != record.trace_digests:
        raise InvalidInput("expected an earlier fit of the same measurements", field="before")
    return fit_changes(earlier, record)


async def _mistaken(
    request: Request, fit_id: str, refusal: SluiceError, typed: Mapping[str, str], **more: str
) -> Response:
    """Show the page again, with what was typed and what is wrong with it."""
    status = kind_of(refusal.code).status
    if status >= 500:
        raise refusal
    mistakes = dict.fromkeys(typed, refusal.detail)
    return await _page(request, fit_id, status=status, mistakes=mistakes, refusal=refusal, **more)
