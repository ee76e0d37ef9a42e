"""Stored answers: a page of them, newest first, and each as files: CSV, JSON, SVG, a report."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from fastapi import Request, Response

from app.http.dependencies import client_of, own_router, service_of
from app.operations.fits import Draw
from app.questions.optimize import (
    AnswerFilter,
    AnswerPage,
    describe_answer,
    get_answer,
    get_answers,
    list_answers,
)
from app.schemas.optimize import read_answer
from app.text.numbers import format_count, format_gap, format_size
from app.text.units import format_proven, format_time
from app.ui.addresses import address, here_of
from app.ui.fields import size_in
from app.ui.pages import HTML, is_htmx, moved, page, says_refusals
from app.web.answers.compare import PLACE as COMPARE
from app.web.answers.queued_parts import explored
from app.web.answers.report import report_html
from app.web.answers.snippets import base_url_of, file_stem
from app.web.answers.view import STATUS_WORDS, bottleneck_name
from app.web.forms import format_timestamp, sent_fields
from contract.optimize import OptimizeOut
from domain.errors import InvalidInput, StrategyDeclined, UnreadableRecord
from domain.profile import ProfileReference
from domain.solution import Strategy
from domain.units import format_bytes
from models.records import AnswerRecord, AnswerSummary

if TYPE_CHECKING:
    from app.web.answers.report import Report
    from models.session import Store


router = own_router(include_in_schema=False)

SECTION = "Answers"
PLACE = "/ui/answers"
PAGE_SIZE = 50
MAX_READ = 2_000  # fragments of an answer that the list reads
MAX_TICKED = 30  # carried from page to page
_IDENTIFIER = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class AnswersForm:
    """The filters as they were typed. `mistakes` is by the field's name."""

    profile: str = ""
    message: str = ""
    strategy: str = ""
    ticked: tuple[str, ...] = ()
    mistakes: Mapping[str, str] = field(default_factory=dict)

    @property
    def offers(self) -> tuple[tuple[str, str], ...]:
        """The strategies that can be chosen, and any."""
        return (("", "any"), *((one.value, one.value.replace("_", " ")) for one in Strategy))

    @property
    def address(self) -> str:
        """The list with these filters and nothing ticked."""
        return address(PLACE, self._filters())

    def _filters(self) -> tuple[tuple[str, str], ...]:
        return (("profile", self.profile), ("message", self.message), ("strategy", self.strategy))

    @property
    def is_empty(self) -> bool:
        """Whether every answer is wanted."""
        return not (self.profile or self.message or self.strategy)

    def page_address(self, after: str) -> str:
        """Return the page that begins behind this answer, with what is ticked."""
        ticked = [("id", one) for one in self.ticked]
        return address(PLACE, (*self._filters(), *ticked, ("after", after)))


@dataclass(frozen=True, slots=True)
class AnswerDetails:
    """What distinguishes answers of one message; empty where an answer is not read for a list."""

    bottleneck: str = ""
    first: str = ""

    @classmethod
    def of(cls, body: bytes) -> AnswerDetails:
        """Read a stored answer. Raises UnreadableRecord."""
        answer = read_answer(body)
        first = format_size(answer.fragment_bytes[0], with_bytes=False)
        if answer.pipeline is None:
            return cls("seen from outside", first)
        return cls(f"{bottleneck_name(answer)}, of {len(answer.pipeline.stages)}", first)


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One stored answer as a row."""

    id: str
    created: str
    message: str
    strategy: str
    fragments: str
    latency: str
    bound: str
    gap: str
    status: str
    badge: str
    profile: str
    name: str
    given_name: str
    note: str
    known: AnswerDetails

    @classmethod
    def of(cls, summary: AnswerSummary, known: AnswerDetails) -> AnswerRow:
        badge, words = STATUS_WORDS[summary.status]
        named = summary.profile_name is not None
        latency_us, bound_us = summary.latency_us, summary.lower_bound_us
        latency, bound = format_proven(latency_us, bound_us)
        message, strategy = format_bytes(summary.message_bytes), summary.strategy.replace("_", " ")
        return cls(
            id=summary.id,
            created=format_timestamp(summary.created_at),
            message=message,
            strategy=strategy,
            fragments=format_count(summary.fragments),
            latency=latency,
            bound=bound,
            gap=format_gap(summary.relative_gap),
            status=words,
            badge=badge,
            profile=f"{summary.profile_name}@{summary.profile_revision}" if named else "",
            name=f"{message}, {strategy}, {format_time(summary.latency_us)}",
            given_name=summary.name or "",
            note=summary.note or "",
            known=known,
        )


@router.get(PLACE)
@says_refusals
async def stored_answers(request: Request) -> Response:
    """Show a page of stored answers; filters that cannot be read are marked."""
    form, wanted = read_filters(request.query_params)
    form = replace(form, ticked=_ticked(request))
    if request.query_params.get("compare"):
        return moved(request, address(COMPARE, [("id", one) for one in form.ticked]))
    found, known = AnswerPage((), None), dict[str, AnswerDetails]()
    after = request.query_params.get("after") or None
    if wanted is not None:
        store = service_of(request).context.store
        found = await service_of(request).call(
            lambda: list_answers(store, wanted, after=after, limit=PAGE_SIZE)
        )
        known = await service_of(request).call(lambda: _known(store, found))
    return page(
        request,
        "stored_answers.html",
        status=422 if form.mistakes else 200,
        section=SECTION,
        form=form,
        rows=[AnswerRow.of(one, known.get(one.id, AnswerDetails())) for one in found.summaries],
        elsewhere=_elsewhere(form.ticked, found),
        later=found.after or "",
        first=form.page_address("") if after else "",
        here=here_of(request),
    )


@router.post(PLACE)
@says_refusals
async def name_one(request: Request) -> Response:
    """Give an answer of the list a name, and show the list again; nothing where a script asks."""
    fields = await sent_fields(request)
    service = service_of(request)
    id, name = fields.get("id", ""), fields.get("name", "")
    await service.write(lambda: describe_answer(service.context.store, id, name=name))
    return Response(status_code=204) if is_htmx(request) else moved(request, here_of(request))


def _known(store: Store, found: AnswerPage) -> dict[str, AnswerDetails]:
    """Return the answers with few enough fragments to be read at once."""
    short = [one.id for one in found.summaries if one.fragments <= MAX_READ]
    known = {}
    for id, record in get_answers(store, short).items():
        with suppress(UnreadableRecord):
            known[id] = AnswerDetails.of(record.body)
    return known


def _ticked(request: Request) -> tuple[str, ...]:
    """Return the ticked answers, each once; more than can be compared are kept and counted."""
    given = dict.fromkeys(request.query_params.getlist("id"))
    return tuple(one for one in given if _IDENTIFIER.fullmatch(one))[:MAX_TICKED]


def _elsewhere(ticked: tuple[str, ...], found: AnswerPage) -> list[str]:
    """Return those of them that are on other pages."""
    here = {summary.id for summary in found.summaries}
    return [one for one in ticked if one not in here]


def read_filters(given: Mapping[str, str]) -> tuple[AnswersForm, AnswerFilter | None]:
    """Return the filters as typed, and as meant; None where one of them cannot be read."""
    typed = {name: given.get(name, "").strip()[:200] for name in ("profile", "message", "strategy")}
    mistakes = dict(_mistakes(typed))
    form = AnswersForm(typed["profile"], typed["message"], typed["strategy"], mistakes=mistakes)
    if mistakes:
        return form, None
    profile = ProfileReference.parse(form.profile) if form.profile else None
    return form, AnswerFilter(
        profile=profile.name if profile else None,
        revision=profile.revision if profile else None,
        message_bytes=size_in(form.message) if form.message else None,
        strategy=Strategy(form.strategy) if form.strategy else None,
    )


def _mistakes(typed: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, read in (("profile", ProfileReference.parse), ("message", size_in)):
        try:
            if typed[name]:
                read(typed[name])
        except InvalidInput as refusal:
            yield name, refusal.detail
    if typed["strategy"] and typed["strategy"] not in set(Strategy):
        yield "strategy", f"expected one of {', '.join(Strategy)}"


IN_THREAD_CELLS = 60_000  # fragments times stages: some 100 ms
EXPLORED_CELLS = 1_000_000  # beyond, a worker makes them


class FileKind(StrEnum):
    """How a file's name ends."""

    CSV = "csv"
    SVG = "svg"


@dataclass(frozen=True, slots=True)
class FileTask:
    """The CSV or the picture of the answer whose JSON is `body`."""

    body: bytes
    kind: FileKind

    @property
    def noun(self) -> str:
        return f"{self.kind} file"

    def draw(self) -> bytes:
        """Return the file. Raises StrategyDeclined for a picture of an aggregate; LimitReached."""
        answer = read_answer(self.body)
        if self.kind is FileKind.SVG:
            return _picture(answer)
        from app.web.answers.schedule_csv import schedule_csv

        return schedule_csv(answer)


@dataclass(frozen=True, slots=True)
class ReportTask:
    """What a report shows of the answer whose JSON is `body`."""

    body: bytes
    fragment_cap: int

    @property
    def noun(self) -> str:
        return "report"

    def draw(self) -> Report:
        """Return all of it. Raises LimitReached."""
        from app.web.answers.report import report_of

        return report_of(self.body, fragment_cap=self.fragment_cap)


def _picture(answer: OptimizeOut) -> bytes:
    from app.operations.fits import answer_schedules
    from app.plots.timeline_svg import render_timeline_svg

    if answer.pipeline is None:
        raise StrategyDeclined(
            "a timeline shows every stage, and an aggregate does not know their times"
        )
    return render_timeline_svg(list(answer_schedules(answer))).encode()


# --- routes ---------------------------------------------------------------------------------------


_MEDIA = {
    FileKind.CSV: "text/csv; charset=utf-8; header=present",
    FileKind.SVG: "image/svg+xml",
}
# Opened by themselves these are pages of this service. They load nothing and run nothing, but
# bring their own style, since they have to stand alone.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"


@router.get("/ui/answers/{id}/schedule.json")
@says_refusals
async def stored(request: Request, id: str) -> Response:
    """Show the answer, byte for byte as it was first sent."""
    record = await _record(request, id)
    return _file(
        record.body, "application/json", f"{file_stem(record.message_bytes, record.id)}.json"
    )


@router.get("/ui/answers/{id}/schedule.csv")
@says_refusals
async def table(request: Request, id: str) -> Response:
    """Show a row for each fragment: offset, size, and its times in every stage."""
    return await _made(request, id, FileKind.CSV)


@router.get("/ui/answers/{id}/schedule.svg")
@says_refusals
async def picture(request: Request, id: str) -> Response:
    """Show the timeline, with the best fixed size below the answer."""
    return await _made(request, id, FileKind.SVG)


@router.get("/ui/answers/{id}/report.html")
@says_refusals
async def report(request: Request, id: str) -> Response:
    """Show all that is known of the answer, in one file."""
    service, pages = service_of(request), request.app.state.pages
    record = await _record(request, id)
    answer = await service.call(lambda: read_answer(record.body))
    task = ReportTask(record.body, service.context.settings.max_fragments)
    if answer.cells <= EXPLORED_CELLS:
        found = await explored(request, id, "report", task.draw)
    else:
        found = await service.run(Draw(task), client_of(request))
    made = await service.call(
        lambda: report_html(
            pages,
            found,
            record.summary(),
            base_url=base_url_of(request),
            version=request.app.version,
        )
    )
    return _file(made, HTML, f"{file_stem(record.message_bytes, record.id)}.html")


async def _made(request: Request, id: str, kind: FileKind) -> Response:
    """Draw in a thread for calls, queued by reader, or in a worker, by how much there is."""
    service = service_of(request)
    record = await _record(request, id)
    answer = await service.call(lambda: read_answer(record.body))
    task, cells = FileTask(record.body, kind), answer.cells
    if cells <= IN_THREAD_CELLS:
        made = await service.call(task.draw)
    elif cells <= EXPLORED_CELLS:
        made = await explored(request, id, kind, task.draw)
    else:
        made = await service.run(Draw(task), client_of(request))
    return _file(made, _MEDIA[kind], f"{file_stem(record.message_bytes, record.id)}.{kind}")


async def _record(request: Request, id: str) -> AnswerRecord:
    service = service_of(request)
    return await service.call(lambda: get_answer(service.context.store, id))


def _file(body: bytes, media_type: str, name: str) -> Response:
    headers: Mapping[str, str] = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Security-Policy": _POLICY,
        "Cache-Control": "no-cache",
    }
    return Response(body, headers=headers, media_type=media_type)
