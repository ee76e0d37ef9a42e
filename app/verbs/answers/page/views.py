"""Stored answers: a page of them, newest first, and those that are ticked side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fastapi import Request, Response

from app.http.dependencies import own_router, service_of
from app.questions.answers import (
    AnswerFilter,
    AnswerPage,
    describe_answer,
    get_answers,
    list_answers,
)
from app.schemas.answers import read_answer
from app.text.numbers import format_count, format_gap, format_size
from app.text.units import format_proven, format_time
from app.ui.addresses import address, here_of
from app.ui.fields import size_in
from app.ui.pages import is_htmx, moved, page, says_refusals
from app.verbs.answers.page import compare
from app.verbs.optimize.page.change import PLACE as COMPARE
from app.verbs.optimize.show import STATUS_WORDS, bottleneck_name
from app.web.forms import format_timestamp, sent_fields
from domain.errors import InvalidInput, UnreadableRecord
from domain.profile import ProfileReference
from domain.solution import Strategy
from domain.units import format_bytes
from models.records import AnswerSummary

if TYPE_CHECKING:
    from models.session import Store


router = own_router(include_in_schema=False)
router.routes.extend(compare.router.routes)

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
    def from_body(cls, body: bytes) -> AnswerDetails:
        """Read a stored answer. Raises UnreadableRecord."""
        answer = read_answer(body, items=True)
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
    def from_summary(cls, summary: AnswerSummary, known: AnswerDetails) -> AnswerRow:
        badge, words, _ = STATUS_WORDS[summary.status]
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
        rows=[
            AnswerRow.from_summary(one, known.get(one.id, AnswerDetails()))
            for one in found.summaries
        ],
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
            known[id] = AnswerDetails.from_body(record.body)
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
