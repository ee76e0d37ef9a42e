"""Pages of fits: made from a file, shown, made again, and used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, TypeAlias, TypedDict

from fastapi import Query, Request, Response

from app.errors import kind_of
from app.http.bodies import arriving_trace, asked_traces, media_type
from app.http.dependencies import client_of, own_router, service_of, trace_rules
from app.plots.fit_svg import render_fit_svg
from app.questions.fits import (
    get_fit,
    name_fit,
    utf8,
)
from app.questions.traces import LoadedTrace
from app.schemas.queries import FitQuery, Typed
from app.ui.pages import is_htmx, moved, page, says_refusals
from app.ui.panel.asking import answer_address
from app.ui.panel.form import InvalidForm, asked_of
from app.ui.panel.state import InputSource, InputState
from app.verbs.fit.page.changes import FitChanges, fit_changes
from app.verbs.fit.page.charts import chart_views, parameters_data, signature_views
from app.verbs.fit.page.fit_view import fit_view, view_as_typed
from app.verbs.fit.page.refit_form import FIELDS, asked_again
from app.verbs.fit.page.refits import fit_again, fit_beside
from app.web.fitted import fit_and_store, with_message
from app.web.forms import FORM, read_form
from domain.errors import InvalidInput, SluiceError
from domain.profile import check_profile_name
from domain.trace_formats import UnreadableRows, UnrecognisedTrace
from models.records import FitRecord, FitRequest

router = own_router(include_in_schema=False)
DEFAULT_MESSAGE = "64 KiB"
Keep: TypeAlias = Callable[[Sequence[LoadedTrace], FitRequest], Awaitable[str]]


class SentQuery(FitQuery):
    """How to fit, and the message and the setting in use that the page goes on with."""

    message: Typed = ""
    current: Typed = ""

    @property
    def then(self) -> str:
        """The query of the fit's address."""
        return with_message(self.message, self.current)


@router.post("/ui/fits")
async def fit(request: Request, query: Annotated[SentQuery, Query()]) -> Response:
    """Fit the file of measurements that is the body, and go to the fit."""
    return await _of_body(request, query.to_request(), partial(fit_and_store, request), query.then)


@router.post("/ui/fits/{fit_id}/beside")
@says_refusals
async def beside(
    request: Request,
    fit_id: str,
    message: Annotated[Typed, Query()] = "",
    current: Annotated[Typed, Query()] = "",
) -> Response:
    """Fit the measurements of a fit together with a further file: the body, or a pasted text."""
    record = await stored_fit(request, fit_id)
    together = partial(fit_beside, request, record)
    if media_type(request)[0] != FORM:
        then = with_message(message, current)
        return await _of_body(request, FitRequest(kinds=(None,)), together, then)
    pairs = dict(await read_form(request))
    text, asked = pairs.get("trace", ""), _asked(pairs)
    try:
        address = await together((LoadedTrace.of(utf8(text)),), FitRequest(kinds=(None,)))
    except SluiceError as refusal:
        marked = {"trace": ""}
        return await _mistaken(request, fit_id, refusal, marked, **asked, trace=text)
    return moved(request, address + with_message(**asked))


class _Asked(TypedDict):
    """The message and the setting in use, as they were typed."""

    message: str
    current: str


def _asked(pairs: Mapping[str, str]) -> _Asked:
    return _Asked(message=pairs.get("message", ""), current=pairs.get("current", ""))


async def _of_body(request: Request, wanted: FitRequest, keep: Keep, then: str) -> Response:
    """Have the files that are the body fitted and kept, and go to the fit with this query."""
    async with arriving_trace(request, **trace_rules(request)) as body:
        unpack = partial(asked_traces, request, body, wanted)
        traces, asked = await service_of(request).call(unpack)
        try:
            address = await keep(traces, asked)
        except (UnrecognisedTrace, UnreadableRows) as refusal:
            if not is_htmx(request):
                raise
            return page(request, "trace_refused.html", status=422, refusal=refusal)
    return moved(request, address + then)


@router.get("/ui/fits/{fit_id}")
@says_refusals
async def shown(request: Request, fit_id: str) -> Response:
    """Show a stored fit, and with `before` what has changed since that one."""
    given = request.query_params
    message, current = given.get("bytes", ""), given.get("current", "")
    return await _page(request, fit_id, message=message, current=current)


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
    asked = _asked(dict(pairs))
    try:
        address = await fit_again(request, record, asked_again(record, pairs))
    except SluiceError as refusal:
        place = refusal.field if refusal.field in FIELDS else "again"
        return await _mistaken(request, fit_id, refusal, {place: ""}, pairs, **asked)
    return moved(request, address + with_message(**asked, before=fit_id))


@router.post("/ui/fits/{fit_id}/optimize")
@says_refusals
async def optimize(request: Request, fit_id: str) -> Response:
    """Cut a message by the fit: with its errors, the sizes that it is of, and its warnings."""
    asked = _asked(dict(await read_form(request)))
    entry = replace(InputState(source=InputSource.FIT, fit=fit_id), **asked)
    try:
        return moved(request, await answer_address(request, asked_of(entry)))
    except InvalidForm as refusal:
        return await _page(request, fit_id, status=422, mistakes=refusal.entry.mistakes, **asked)
    except SluiceError as refusal:
        place = "current" if "uncertainty" in (refusal.field or "") else "message"
        return await _mistaken(request, fit_id, refusal, {place: ""}, **asked)


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


async def _page(
    request: Request,
    fit_id: str,
    *,
    message: str = "",
    current: str = "",
    name: str = "",
    trace: str = "",
    refusal: SluiceError | None = None,
    status: int = 200,
    mistakes: Mapping[str, str] | None = None,
    again: Sequence[tuple[str, str]] | None = None,
) -> Response:
    record = await stored_fit(request, fit_id)
    view = await service_of(request).call(lambda: fit_view(record))
    values: dict[str, Any] = {
        "section": "Workbench",
        "view": view if again is None else view_as_typed(view, again),
        "changes": await _changes(request, record),
        "message": message[:40] or DEFAULT_MESSAGE,
        "current": current[:40],
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
    request: Request,
    fit_id: str,
    refusal: SluiceError,
    typed: Mapping[str, str],
    again: Sequence[tuple[str, str]] | None = None,
    **more: str,
) -> Response:
    """Show the page once more, with what was typed and what is wrong with it; `again` is the form
    that fits once more, as it was sent.
    """
    status = kind_of(refusal.code).status
    if status >= 500:
        raise refusal
    mistakes = dict.fromkeys(typed, refusal.detail)
    return await _page(
        request, fit_id, status=status, mistakes=mistakes, refusal=refusal, again=again, **more
    )
