"""Audits of existing settings: the form, the job, the result, and the audit as a command."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import Request, Response

from app.errors import kind_of
from app.http.dependencies import client_of, own_router, service_of
from app.jobs.ledger import get_job
from app.operations.compare import audit_operation
from app.operations.operation import OperationKind
from app.questions.profiles import list_profiles
from app.schemas.audit import title_of_changes
from app.schemas.base import problem_out, read_output, read_request
from app.schemas.jobs import problem_of
from app.text.numbers import (
    format_count,
    format_percent,
    format_proven_regret,
    format_regret,
    format_regret_span,
    format_step_size,
)
from app.text.regrets import REGRET_OF, format_advised_regret, format_averages
from app.text.units import OF_MODEL, PROVEN_BOUND, format_time
from app.ui.pages import is_htmx, moved, page, says_refusals
from app.web.audits.form import MAX_ADDRESS, AuditForm
from app.web.forms import format_timestamp, read_form
from app.web.jobs.work import SHORT_S, WorkPlace, WorkView
from contract.audit import AuditIn, AuditOut, AuditRowOut, PricedOut, SpanOut
from contract.setting import SettingStepOut
from domain.errors import NotFound, Overloaded, SluiceError, UnreadableRecord
from domain.units import format_bytes
from models.records import JobRecord, JobState

MAX_STEPS = 8
_REFERENCES = {"best": "The best schedule found", "bound": f"The {PROVEN_BOUND}"}


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One message size."""

    message: str
    size: str
    fragments: str
    latency: str
    best: str
    at_least: str
    at_most: str
    best_repeat: str
    is_over: bool


@dataclass(frozen=True, slots=True)
class AuditFigure:
    """A number with its name above it and a remark beside it."""

    name: str
    value: str
    remark: str = ""


@dataclass(frozen=True, slots=True)
class AuditView:
    """What templates/audit_result.html is given; `chart` is what its chart draws."""

    title: str
    verdict: str
    badge: str
    badge_words: str
    figures: tuple[AuditFigure, ...]
    decision: str
    changes_title: str
    changes: tuple[str, ...]
    size_steps: str
    rows: tuple[AuditLine, ...]
    warnings: tuple[str, ...]
    profile: str
    workload: str
    took: str
    chart: Mapping[str, object]

    @classmethod
    def of(cls, audit: AuditOut) -> AuditView:
        badge, badge_words, verdict = _verdict(audit)
        notices = (*audit.warnings, *audit.fit_warnings)
        return cls(
            title=format_setting(audit.setting.steps),
            verdict=verdict,
            badge=badge,
            badge_words=badge_words,
            figures=tuple(_figures(audit)),
            decision=audit.uncertainty.sentence if audit.uncertainty else "",
            changes_title=title_of_changes(audit),
            changes=tuple(audit.changes),
            size_steps=_size_steps(audit),
            rows=tuple(_line(row, audit.max_regret) for row in audit.at_powers),
            warnings=tuple(dict.fromkeys(one.detail for one in notices)),
            profile=audit.profile.reference if audit.profile else "",
            workload=audit.workload.words,
            took=format_time(audit.audit_ms * 1e3),
            chart=_chart(audit),
        )


def format_setting(steps: Sequence[SettingStepOut]) -> str:
    """Return a setting, of many steps the first."""
    if len(steps) == 1:
        one = format_step_size(steps[0].size_bytes)
        return "every message whole" if one == "whole" else f"{one} for every message"
    shown = [
        f"{format_step_size(one.size_bytes)} from {format_bytes(one.from_bytes)}" for one in steps
    ]
    more = len(shown) - MAX_STEPS
    return ", ".join(shown[:MAX_STEPS]) + (f" and {more} more steps" if more > 0 else "")


def _span(span: SpanOut) -> str:
    return format_regret_span(span.at_least, span.at_most)


def _figures(audit: AuditOut) -> Iterator[AuditFigure]:
    setting = audit.setting
    worst = setting.worst
    if setting.time is not None:
        yield AuditFigure("Total time", _span(setting.time), "over the best, of the workload")
    yield AuditFigure("Mean regret", _span(setting.mean), "of its messages")
    at = f"at {format_bytes(worst.message_bytes)}"
    if count := audit.worst_of:  # audits that were kept before had none
        at += f", of {count} sizes"
    yield AuditFigure("Worst regret", _span(setting.worst_span), at)
    yield _priced("Best single size", audit.best_size)
    if audit.best_size_steps and len(audit.best_size_steps.steps) > 1:
        size_steps = audit.best_size_steps
        steps = f"{len(size_steps.steps)} steps"
        yield AuditFigure("Best size steps", steps, _advised(size_steps))
    if audit.best_repeats is not None:
        value = format_averages(audit.best_repeats_time, audit.repeats_span)
        yield AuditFigure("Size by lookup", value, "in a compiled table")


def _size_steps(audit: AuditOut) -> str:
    """Return the best sizes by message size; "" where a library takes one, or one is best."""
    size_steps = audit.best_size_steps
    return format_setting(size_steps.steps) if size_steps and len(size_steps.steps) > 1 else ""


def _priced(name: str, priced: PricedOut) -> AuditFigure:
    chosen = format_step_size(priced.steps[0].size_bytes)
    return AuditFigure(name, chosen, _advised(priced))


def _advised(priced: PricedOut) -> str:
    worst = format_advised_regret(priced.worst_span.at_least, priced.worst_span.at_most)
    return f"{format_averages(priced.time, priced.mean)}, worst {worst}"


def _verdict(audit: AuditOut) -> tuple[str, str, str]:
    """Return its colour, its word and its sentence; empty without a limit."""
    if audit.verdict is None or audit.max_regret is None:
        return "", "", ""
    allowed = format_percent(audit.max_regret)
    regret, limit = f"the {REGRET_OF[audit.objective]}", f"the {allowed} that is allowed"
    word = f"{'within' if audit.is_kept else 'over'} {allowed}"
    if audit.verdict == "within":
        return "good", word, f"Proven {OF_MODEL}: over any schedule, {regret} keeps to {limit}."
    if audit.verdict == "above":
        return (
            "bad",
            word,
            f"Proven {OF_MODEL}: {regret} is above {limit}; a better schedule is in hand.",
        )
    rule = _REFERENCES[audit.over]
    known = f"{limit} is inside what is known of {regret}. {rule} decides."
    return "warn", word, f"Not proven {OF_MODEL}: {known}"


def _line(row: AuditRowOut, allowed: float | None) -> AuditLine:
    regret = row.regret
    repeat = row.best_repeat_bytes
    minimum = regret.at_least
    return AuditLine(
        message=format_bytes(row.message_bytes),
        size=format_bytes(row.size_bytes),
        fragments=format_count(row.fragments),
        latency=format_time(row.latency_us),
        best=format_time(row.best_us),
        at_least=format_regret(minimum),
        at_most=format_proven_regret(regret.at_most, minimum),
        best_repeat=format_bytes(repeat) if repeat else "none",
        is_over=allowed is not None and (minimum is None or minimum > allowed),
    )


def _chart(audit: AuditOut) -> Mapping[str, object]:
    """Return message sizes in bytes and regrets in per cent; what is unbounded is null."""
    rows = audit.at_powers
    limit, setting = audit.max_regret, audit.setting
    is_of_time = audit.objective == "time" and setting.time is not None
    name, average = ("total time", setting.time) if is_of_time else ("mean", setting.mean)
    return {
        "sizes": [row.message_bytes for row in rows],
        "names": [format_bytes(row.message_bytes) for row in rows],
        "atLeast": [_percent(row.regret.at_least) for row in rows],
        "atMost": [_percent(row.regret.at_most) for row in rows],
        "average": _percent(average.at_least if average else None),
        "averageName": name,
        "allowed": None if limit is None else _percent(limit),
    }


def _percent(regret: float | None) -> float | None:
    return None if regret is None else 100.0 * regret


CONFIGURATION, WORKLOAD = "library.conf", "workload.txt"
_OPTIONS = (
    ("min_message", "--min-message"),
    ("max_message", "--max-message"),
    ("objective", "--objective"),
    ("max_regret", "--max-regret"),
    ("over", "--over"),
    ("time_limit", "--time-limit"),
)
_SIZED = frozenset({"min_message", "max_message", "max_regret"})


@dataclass(frozen=True, slots=True)
class AuditCommand:
    """The command, and what stands in the files that it reads."""

    text: str
    files: str

    @classmethod
    def of(cls, form: AuditForm) -> AuditCommand | None:
        """Return None without a limit, which a CI job is for, and without a stored profile."""
        if not (form.text("max_regret") and form.text("profile")):
            return None
        return cls(shlex.join(["sluice", "audit", *_words(form)]), "; ".join(_files(form)))


def _words(form: AuditForm) -> Iterator[str]:
    yield form.text("profile")
    if form.text("configuration"):
        yield from ("--config", CONFIGURATION, "--target", form.text("target"))
    else:
        yield from ("--setting", _narrow(form.text("setting")))
    if form.text("workload"):
        yield from ("--workload", WORKLOAD)
    for name, option in _OPTIONS:
        text = form.texts.get(name, "")
        if text and not form.is_default(name):
            yield from (option, _narrow(text) if name in _SIZED else text.removesuffix("s").strip())


def _files(form: AuditForm) -> Iterator[str]:
    if form.text("configuration"):
        yield f"{CONFIGURATION} is the configuration that the form has"
    if form.text("workload"):
        yield f"{WORKLOAD} is the workload that the form has"


def _narrow(text: str) -> str:
    """Return a single size or share without its space: 512KiB, 5%."""
    words = text.split(" ")
    is_one = len(words) == 2 and words[0].replace(".", "", 1).isdigit()
    return "".join(words) if is_one else text


# --- routes ---------------------------------------------------------------------------------------


router = own_router(include_in_schema=False)

SECTION = "Audit"
PLACE = "/ui/audit"
RESULT = f"{PLACE}/result"
KEPT = "/ui/audits/{id}"
MAX_NAMES = 200


@router.get(PLACE)
@says_refusals
async def audit(request: Request) -> Response:
    """Show the form; where the address has a setting, also a place for its result."""
    form = AuditForm.of(request.query_params.multi_items())
    asked = None
    if form.is_asked:
        asked, form = form.asked()
    ask = f"{RESULT}?{form.query()}" if asked is not None else ""
    status = 422 if form.mistakes else 200
    return await _form_page(request, form, {"ask": ask}, status=status)


@router.post(PLACE)
@says_refusals
async def ask(request: Request) -> Response:
    """Lead to the result: the question's own address, or its job's where that is too long."""
    form = AuditForm.of(await read_form(request))
    asked, form = form.asked()
    if asked is None:
        return await _form_page(request, form, {}, status=422)
    query = form.query()
    if len(query) <= MAX_ADDRESS:
        return moved(request, f"{PLACE}?{query}")
    try:
        job = await _started(request, asked)
    except SluiceError as refusal:
        if isinstance(refusal, Overloaded):
            raise
        status = kind_of(refusal.code).status
        return await _form_page(request, form.refused(refusal), {}, status=status)
    return moved(request, KEPT.format(id=job.id))


@router.post(RESULT)
@says_refusals
async def result(request: Request) -> Response:
    """Start the audit that the address asks for, or join it; show its result if it is there."""
    asked, form = AuditForm.of(request.query_params.multi_items()).asked()
    if asked is None:
        return _part(request, {"form": form}, status=422)
    try:
        job = await _settled(request, asked)
    except SluiceError as refusal:
        if isinstance(refusal, Overloaded):
            raise
        status = kind_of(refusal.code).status
        return _part(request, {"form": form.refused(refusal)}, status=status)
    if not is_htmx(request):
        return moved(request, KEPT.format(id=job.id))
    here = f"{PLACE}?{form.query()}"
    return _part(request, _outcome(job, form, here=here), status=200)


@router.get(KEPT)
@says_refusals
async def kept(request: Request, id: str) -> Response:
    """Show what a job was asked, and how far it is or what it found."""
    job, form = await _find(request, id)
    return await _form_page(request, form, _outcome(job, form, here=KEPT.format(id=id)))


@router.get(KEPT + "/result")
@says_refusals
async def kept_result(request: Request, id: str) -> Response:
    """Show what replaces a job that was waited for."""
    job, form = await _find(request, id)
    return _part(request, _outcome(job, form, here=KEPT.format(id=id)), status=200)


async def _started(request: Request, asked: AuditIn) -> JobRecord:
    service = service_of(request)
    make = partial(audit_operation, asked, settings=service.context.settings)
    return await service.start_job(make, client_of(request))


async def _settled(request: Request, asked: AuditIn) -> JobRecord:
    job = await _started(request, asked)
    return await service_of(request).settled(job, within_s=SHORT_S)


async def _find(request: Request, identifier: str) -> tuple[JobRecord, AuditForm]:
    service = service_of(request)
    job = await service.call(lambda: get_job(service.context.store, identifier))
    if job.kind != OperationKind.AUDIT:
        raise NotFound("there is no audit of this identifier")
    return job, AuditForm.of_request(read_request(AuditIn, job.request))


def _outcome(job: JobRecord, form: AuditForm, *, here: str) -> dict[str, Any]:
    """Return what audit_part.html is given: the result, the refusal, or the work."""
    shown: dict[str, Any] = {"form": form}
    problem = problem_of(job) if job.state is JobState.FAILED else None
    if job.state is JobState.DONE and job.best is not None:
        try:
            shown["view"] = AuditView.of(read_output(AuditOut, job.best))
        except UnreadableRecord as refusal:
            problem = problem_out(refusal)
        shown["command"] = AuditCommand.of(form)
        shown["audited"] = format_timestamp(job.finished_at or job.created_at)
    if problem is not None:
        shown |= {"form": form.failed(problem), "problem": problem}
    elif "view" not in shown:
        place = WorkPlace(
            title=form.title,
            here=here,
            part=f"{KEPT.format(id=job.id)}/result",
            again_form="audit-form",
        )
        shown["work"] = WorkView.of(job, place)
    return shown


async def _form_page(
    request: Request, form: AuditForm, shown: dict[str, Any], *, status: int = 200
) -> Response:
    service = service_of(request)
    known = await service.call(lambda: list_profiles(service.context.store, limit=MAX_NAMES))
    names = [profile.name for profile in known.profiles]
    given = {"ask": "", "section": SECTION, "form": form, "names": names, **shown}
    return page(request, "audit.html", status=status, **given)


def _part(request: Request, shown: dict[str, Any], *, status: int) -> Response:
    return page(request, "audit_part.html", status=status, section=SECTION, **shown)
