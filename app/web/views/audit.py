"""Audits of existing settings: the form, and beside it the job that audits, then its result."""

from __future__ import annotations

from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response

from app.deps import service_of
from app.errors import kind_of
from app.flows.profiles import list_profiles
from app.jobs.ledger import get_job
from app.operations.audits import audit_operation
from app.operations.operation import OperationKind
from app.schemas.audit import AuditIn, AuditOut
from app.schemas.base import read_output, read_request
from app.schemas.jobs import problem_of
from app.schemas.problems import ProblemOut
from app.web.input_form import read_form
from app.web.pages import is_htmx, moved, page
from app.web.refusals import says_refusals
from app.web.views.audit_command import AuditCommand
from app.web.views.audit_form import MAX_ADDRESS, AuditForm
from app.web.views.audit_view import AuditView
from app.web.views.listed import moment_words
from app.web.views.work_view import SHORT_S, WorkPlace, WorkView
from domain.errors import NotFound, Overloaded, SluiceError, UnreadableRecord
from models.records import JobRecord, JobState

router = APIRouter(include_in_schema=False)

SECTION = "Audit"
PLACE = "/ui/audit"
RESULT = f"{PLACE}/result"
KEPT = "/ui/audits/{id}"
MOST_NAMES = 200


@router.get(PLACE)
@says_refusals
async def audit(request: Request) -> Response:
    """The form; where the address has a setting, also a place for its result."""
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
    """To the address of the result: the question's own, or its job's where it is too long."""
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
    """Start what the address asks, or join it; its result where that takes no time."""
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
    """What a job was asked, and how far it is or what it found."""
    job, form = await _find(request, id)
    return await _form_page(request, form, _outcome(job, form, here=KEPT.format(id=id)))


@router.get(KEPT + "/result")
@says_refusals
async def kept_result(request: Request, id: str) -> Response:
    """What takes the place of a job that was waited for."""
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
    """What audit_part.html is given: the result, the refusal, or the work."""
    shown: dict[str, Any] = {"form": form}
    problem = problem_of(job) if job.state is JobState.FAILED else None
    if job.state is JobState.DONE and job.best is not None:
        try:
            shown["view"] = AuditView.of(read_output(AuditOut, job.best))
        except UnreadableRecord as refusal:
            problem = ProblemOut.of(refusal)
        shown["command"] = AuditCommand.of(form)
        shown["audited"] = moment_words(job.finished_at or job.created_at)
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
    known = await service.call(lambda: list_profiles(service.context.store, limit=MOST_NAMES))
    names = [profile.name for profile in known.profiles]
    given = {"ask": "", "section": SECTION, "form": form, "names": names, **shown}
    return page(request, "audit.html", status=status, **given)


def _part(request: Request, shown: dict[str, Any], *, status: int) -> Response:
    return page(request, "audit_part.html", status=status, section=SECTION, **shown)
