"""Pages of fits: made from a file or of stages measured apart, shown, made again, and used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypedDict, TypeVar
from urllib.parse import urlencode

from fastapi import Query, Request, Response
from pydantic import Field

from app.errors import kind_of
from app.http.bodies import arriving_trace, asked_traces, media_type
from app.http.dependencies import client_of, own_router, service_of, trace_rules
from app.plots.fit_svg import render_fit_svg
from app.questions.fits import (
    MeasuredStage,
    ReadableWork,
    get_fit,
    list_measured_stages,
    measured_stage,
    name_fit,
    utf8,
)
from app.questions.question import LoadedTrace
from app.questions.source import ReadFiles, Stored
from app.schemas.queries import FitQuery
from app.ui.pages import is_htmx, moved, page, says_refusals
from app.web.fits.refits import FitChanges, asked_again, fit_again, fit_and_store, fit_changes
from app.web.fits.view import chart_views, fit_beside, fit_view, parameters_data, signature_views
from app.web.forms import FORM, InvalidForm, asked_of, change_of, move_row, read_form
from app.web.solving import answer_address
from app.web.workbench.choices import METHODS, SHAPES
from app.web.workbench.state import InputSource, InputState
from contract.limits import MAX_NAME_LENGTH, MAX_STAGES
from domain.errors import InvalidInput, Overloaded, SluiceError
from domain.fit import ComposedStage, FitMethod, FitOptions, FitShape
from domain.measurement import TraceKind
from domain.profile import ProfileReference, check_profile_name
from domain.trace_formats import UnreadableRows, UnrecognisedTrace
from models.records import FitRecord, FitRequest

if TYPE_CHECKING:
    from models.session import Store

router = own_router(include_in_schema=False)
DEFAULT_MESSAGE = "64 KiB"
_OF_THE_FORM = ("join", "max_ranges", "as_stage", "stages_overlap")
Chosen = TypeVar("Chosen", FitMethod, FitShape)
Unread: TypeAlias = UnreadableRows | UnrecognisedTrace
Keep: TypeAlias = Callable[[Sequence[LoadedTrace], FitRequest], Awaitable[str]]


class SentQuery(FitQuery):
    """How to fit, and the message and the setting in use that the page goes on with."""

    message: Annotated[str, Field(max_length=40)] = ""
    current: Annotated[str, Field(max_length=40)] = ""

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
    message: Annotated[str, Query(max_length=40)] = "",
    current: Annotated[str, Query(max_length=40)] = "",
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
        place = refusal.field if refusal.field in _OF_THE_FORM else "again"
        return await _mistaken(request, fit_id, refusal, {place: ""}, **asked)
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


# --- pipelines of stages that were measured each by itself ----------------------------------------


COMPOSE = "/ui/compose"
_COLUMNS = ("name", "trace", "stored", "step", "processor")
_NEW_ROWS = 2
_OFFERED_PROFILES = 50


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """One stage as it was filled in: `trace` is the text of its measurements, and `stored` a stage
    of a stored profile in its place, as profile/stage.
    """

    name: str = ""
    trace: str = ""
    stored: str = ""
    step: str = ""
    processor: str = ""

    @property
    def is_blank(self) -> bool:
        """Whether nothing was filled in."""
        return not any(getattr(self, name) for name in _COLUMNS)

    @property
    def source(self) -> str:
        """The field that its measurements are from."""
        return "stored" if self.stored and not self.trace.strip() else "trace"


@dataclass(frozen=True, slots=True)
class ComposeForm:
    """What templates/compose.html is given.

    `mistakes` is by field and row, "" for all of it; `unread` has more to say of files of some.
    """

    rows: tuple[MeasuredRow, ...] = (MeasuredRow(),) * _NEW_ROWS
    method: str = METHODS[0][0]
    shape: str = SHAPES[0][0]
    mistakes: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, Unread] = field(default_factory=dict)
    methods = METHODS
    shapes = SHAPES

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, str]]) -> ComposeForm:
        """Return the form as it was sent; one row more than there may be stages is kept."""
        given: dict[str, list[str]] = {}
        for name, value in pairs:
            given.setdefault(name, []).append(value)
        columns = [given.get(name, []) for name in _COLUMNS]
        lines = list(zip_longest(*columns, fillvalue=""))[: MAX_STAGES + 1]
        rows = tuple(
            MeasuredRow(
                *(
                    text.replace("\r\n", "\n") if name == "trace" else text.strip()
                    for name, text in zip(_COLUMNS, line, strict=True)
                )
            )
            for line in lines
        )
        method, shape = (given.get(name, [""])[-1] for name in ("method", "shape"))
        return cls(rows or (MeasuredRow(),), method, shape)

    def changed(self, change: str) -> ComposeForm:
        """Return the form with its rows changed, for browsers that run no script."""
        rows = list(self.rows)
        verb, _, number = change.partition(".")
        if verb == "add":
            rows.append(MeasuredRow())
        elif verb == "reverse":
            rows.reverse()
        elif int(number) < len(rows):
            move_row(rows, int(number), verb)
        return replace(self, rows=tuple(rows[: MAX_STAGES + 1]) or (MeasuredRow(),))

    @property
    def filled(self) -> list[tuple[int, MeasuredRow]]:
        """The rows that are stages, with their places."""
        return [(place, row) for place, row in enumerate(self.rows) if not row.is_blank]

    @property
    def first_mistake(self) -> str:
        """The first field that is wrong, from above; "" where none is."""
        fields = (f"{name}-{row}" for row in range(len(self.rows)) for name in _COLUMNS)
        return next((name for name in fields if name in self.mistakes), "")


class _RowMistakes(Exception):
    """Rows that are no stages; what is wrong, as ComposeForm has it."""

    def __init__(self, mistakes: Mapping[str, str], unread: Mapping[str, Unread]) -> None:
        super().__init__("rows hold mistakes")
        self.mistakes, self.unread = mistakes, unread


@router.get(COMPOSE)
@says_refusals
async def composition(request: Request) -> Response:
    """Show the form of a pipeline whose stages were measured each by itself."""
    return await _compose_page(request, ComposeForm())


@router.post(COMPOSE)
@says_refusals
async def composed(request: Request) -> Response:
    """Fit each stage by its own files and go to the fit of all, or show which row is wrong."""
    pairs = await read_form(request)
    form = ComposeForm.of(pairs)
    if change := change_of(pairs):
        return await _compose_page(request, form.changed(change))
    service = service_of(request)
    try:
        asked = await service.with_files(
            lambda files: service.call(lambda: _composition(service.context.store, form, files)),
            client_of(request),
        )
        address = await fit_and_store(request, *asked)
    except _RowMistakes as refusal:
        form = replace(form, mistakes=refusal.mistakes, unread=refusal.unread)
    except SluiceError as refusal:
        if isinstance(refusal, Overloaded) or kind_of(refusal.code).status >= 500:
            raise
        form = replace(form, mistakes={_row_of(form, refusal): refusal.detail})
    else:
        return moved(request, address)
    return await _compose_page(request, form, status=422)


async def _compose_page(request: Request, form: ComposeForm, *, status: int = 200) -> Response:
    service = service_of(request)
    offered = await service.call(lambda: _offered_stages(service.context.store))
    return page(
        request, "compose.html", status=status, section="Workbench", form=form, offered=offered
    )


def _offered_stages(store: Store) -> list[str]:
    """The stages of fitted profiles, each as profile@revision/stage."""
    found = list_measured_stages(store, limit=_OFFERED_PROFILES)
    return [f"{one.name}@{one.revision}/{name}" for one, name in found]


def _composition(
    store: Store, form: ComposeForm, files: ReadFiles
) -> tuple[list[LoadedTrace], FitRequest]:
    """Return the files of all stages and how to fit them. Raises _RowMistakes, InvalidInput, and
    ReadElsewhere where a worker has to look at a file first.
    """
    if not form.filled:
        raise _RowMistakes({"": "expected the measurements of one stage at least"}, {})
    stages, traces, kinds, excluded = [], list[LoadedTrace](), list[TraceKind | None](), []
    mistakes, unread = dict[str, str](), dict[str, Unread]()
    for place, row in form.filled:
        mistakes |= {f"{name}-{place}": words for name, words in _wrong_names(row)}
        try:
            found = _measured(store, row, files)
        except SluiceError as refusal:
            if kind_of(refusal.code).status >= 500:
                raise
            mistakes[f"{row.source}-{place}"] = refusal.detail
            if isinstance(refusal, UnreadableRows | UnrecognisedTrace):
                unread[f"{row.source}-{place}"] = refusal
            continue
        if not mistakes:
            step, processor = row.step or found.step, row.processor or None
            count, columns, choice = len(found.traces), found.columns, found.choice
            stages.append(ComposedStage(row.name, count, step, processor, columns, choice))
            traces += found.traces
            kinds += found.kinds
            excluded += [replace(sample, stage=row.name) for sample in found.excluded]
    names = [row.name for _, row in form.filled]
    for place, row in form.filled:
        if row.name and names.count(row.name) > 1:
            mistakes.setdefault(f"name-{place}", "another stage has this name")
    if mistakes:
        raise _RowMistakes(mistakes, unread)
    options = FitOptions(
        _chosen(FitMethod, form.method),
        _chosen(FitShape, form.shape, of=(FitShape.RANGES, FitShape.LINE)),
        excluded=tuple(excluded),
        composed=tuple(stages),
    )
    return traces, FitRequest(options, kinds=tuple(kinds))


def _wrong_names(row: MeasuredRow) -> Iterator[tuple[str, str]]:
    """Yield fields of a row that hold no name, and what is wrong with them."""
    if not row.name:
        yield "name", "expected a name of the stage"
    for name in ("name", "step", "processor"):
        if len(getattr(row, name)) > MAX_NAME_LENGTH:
            yield name, f"expected at most {MAX_NAME_LENGTH} characters"


def _measured(store: Store, row: MeasuredRow, files: ReadFiles) -> MeasuredStage:
    """Return the files of a row. Raises InvalidInput, NotFound and UnreadableTrace."""
    if not row.trace.strip() and not row.stored:
        raise InvalidInput("expected measurements: paste or drop a file, or name a stored stage")
    if row.trace.strip() and row.stored:
        raise InvalidInput("expected either measurements or a stored stage, not both")
    if row.stored:
        reference, slash, name = row.stored.partition("/")
        if not slash or not name:
            raise InvalidInput("expected a stored stage as profile/stage, such as local-copy/copy")
        return measured_stage(store, ProfileReference.parse(reference), name)
    trace = LoadedTrace.of(utf8(row.trace))
    # So that a file that is no measurement is said at its row.
    if (refusal := Stored.of_store(store, files).read(ReadableWork(trace.content()))) is not None:
        raise refusal
    return MeasuredStage((trace,), (None,))


def _chosen(kind: type[Chosen], text: str, *, of: tuple[Chosen, ...] = ()) -> Chosen:
    """Return the choice of this text, the first one for any other."""
    offered = of or tuple(kind)
    return next((one for one in offered if one == text), offered[0])


def _row_of(form: ComposeForm, refusal: SluiceError) -> str:
    """Return the field of the row that a fit refuses, "" for none.

    Its detail begins with the stage's name, or with those of the stages of one processor.
    """
    named = [
        (len(row.name), f"{row.source}-{place}")
        for place, row in form.filled
        if refusal.detail.startswith(f"stage {row.name}: ")
    ] or [
        (len(row.name), f"processor-{place}")
        for place, row in form.filled
        if row.processor and refusal.detail.startswith(f"{row.name} and ")
    ]
    return max(named)[1] if named else ""


async def stored_fit(request: Request, fit_id: str) -> FitRecord:
    """Return the stored fit. Raises NotFound."""
    service = service_of(request)
    return await service.call(lambda: get_fit(service.context.store, fit_id))


def with_message(message: str, current: str = "", *, before: str = "") -> str:
    """Return the query of a fit's address: the message, the setting in use, and the fit that it was
    made from.
    """
    given = {"bytes": message, "current": current, "before": before}
    kept = {name: value for name, value in given.items() if value}
    return f"?{urlencode(kept)}" if kept else ""


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
) -> Response:
    record = await stored_fit(request, fit_id)
    values: dict[str, Any] = {
        "section": "Workbench",
        "view": fit_view(record),
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
    request: Request, fit_id: str, refusal: SluiceError, typed: Mapping[str, str], **more: str
) -> Response:
    """Show the page again, with what was typed and what is wrong with it."""
    status = kind_of(refusal.code).status
    if status >= 500:
        raise refusal
    mistakes = dict.fromkeys(typed, refusal.detail)
    return await _page(request, fit_id, status=status, mistakes=mistakes, refusal=refusal, **more)
