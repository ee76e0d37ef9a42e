"""The page of an audit: the form, the job, the result, and the audit as a command for CI."""

from __future__ import annotations

from functools import partial
from typing import Any

from fastapi import Request, Response

from app.errors import kind_of
from app.http.dependencies import client_of, own_router, service_of
from app.jobs.ledger import get_job
from app.operations.operation import OperationKind
from app.questions.profiles import list_profiles
from app.schemas.base import problem_out, read_output, read_request
from app.schemas.jobs import problem_of
from app.ui.addresses import MAX_ADDRESS
from app.ui.html import as_html
from app.ui.pages import is_htmx, moved, page, says_refusals
from app.ui.work import SHORT_S, WorkPlace, WorkView
from app.verbs.audit.operation import operation
from app.verbs.audit.page.form import FORM, AuditForm
from app.verbs.audit.show import AuditView, items_parts, title_of_cap
from app.web.forms import format_timestamp, read_form
from contract.audit import AuditIn, AuditOut, ItemsAuditOut
from domain.errors import NotFound, Overloaded, SluiceError, UnreadableRecord
from models.records import JobRecord, JobState

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
    form = AuditForm.from_pairs(request.query_params.multi_items())
    asked = None
    if form.is_asked:
        asked, form = form.asked()
    ask = f"{RESULT}?{form.query()}" if asked is not None else ""
    status = 422 if form.mistakes else 200
    return await _form_page(request, form, {"result_at": ask}, status=status)


@router.post(PLACE)
@says_refusals
async def ask(request: Request) -> Response:
    """Lead to the result: the question's own address, or its job's where that is too long."""
    form = AuditForm.from_pairs(await read_form(request))
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
    asked, form = AuditForm.from_pairs(request.query_params.multi_items()).asked()
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
    make = partial(operation, asked, settings=service.context.settings)
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
    if job.state is JobState.DONE and job.best is not None and b'"sequences":' in job.best:
        shown |= _between_items(job.best)
        problem = shown.get("problem")
    elif job.state is JobState.DONE and job.best is not None:
        try:
            shown["view"] = AuditView.from_audit(read_output(AuditOut, job.best))
        except UnreadableRecord as refusal:
            problem = problem_out(refusal)
        # A CI job decides by a limit, and looks the costs up.
        is_for_ci = "view" in shown and shown["view"].verdict and form.text("profile")
        shown["for_ci"] = form if is_for_ci else None
        shown["audited"] = format_timestamp(job.finished_at or job.created_at)
    if problem is not None:
        shown |= {"form": form.failed(problem), "problem": problem}
    elif "view" not in shown and "between" not in shown:
        place = WorkPlace(
            title=form.title,
            here=here,
            part=f"{KEPT.format(id=job.id)}/result",
            again_form="audit-form",
        )
        shown["work"] = WorkView.from_job(job, place)
    return shown


def _between_items(document: bytes) -> dict[str, Any]:
    """Return what audit_part.html is given of an audit of a cap of items."""
    try:
        found = read_output(ItemsAuditOut, document)
    except UnreadableRecord as refusal:
        return {"problem": problem_out(refusal)}
    return {"title": title_of_cap(found), "between": as_html(items_parts(found))}


async def _form_page(
    request: Request, form: AuditForm, shown: dict[str, Any], *, status: int = 200
) -> Response:
    service = service_of(request)
    known = await service.call(lambda: list_profiles(service.context.store, limit=MAX_NAMES))
    names = [profile.name for profile in known.profiles]
    given = {
        "result_at": "",
        "section": SECTION,
        "form": form,
        "words": {word.name: word for word in FORM.words},
        "texts": form.shown_texts,
        "mistakes": form.mistakes,
        "names": names,
        **shown,
    }
    return page(request, "audit.html", status=status, **given)


def _part(request: Request, shown: dict[str, Any], *, status: int) -> Response:
    return page(request, "audit_part.html", status=status, section=SECTION, **shown)
