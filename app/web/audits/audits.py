"""Audits of existing settings: the form, the job, the result, and the audit as a command."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response

from app.errors import kind_of
from app.http.dependencies import service_of
from app.jobs.ledger import get_job
from app.operations.audits import audit_operation
from app.operations.operation import OperationKind
from app.questions.profiles import list_profiles
from app.schemas.audit import AuditIn, AuditOut
from app.schemas.base import ProblemOut, read_output, read_request
from app.schemas.jobs import problem_of
from app.web.audits.form import MAX_ADDRESS, AuditForm
from app.web.audits.view import AuditView
from app.web.forms import format_timestamp
from app.web.jobs.work import SHORT_S, WorkPlace, WorkView
from app.web.pages import is_htmx, moved, page, says_refusals
from app.web.workbench.form import read_form
from domain.errors import NotFound, Overloaded, SluiceError, UnreadableRecord
from models.records import JobRecord, JobState

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


router = APIRouter(include_in_schema=False)

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
    return await service.start_job(make)


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
            problem = ProblemOut.of(refusal)
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
