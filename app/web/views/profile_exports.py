"""A profile as a library's configuration: the form at once, the text by a job as soon as it is."""

from __future__ import annotations

from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response

from app.deps import service_of
from app.flows.profiles import get_revision, known_reference
from app.jobs.ledger import get_job
from app.operations.exports import export_operation
from app.operations.operation import OperationKind
from app.schemas.base import read_output, read_request
from app.schemas.exports import ExportedOut
from app.schemas.job_requests import ExportJobIn
from app.web.pages import is_htmx, moved, page
from app.web.refusals import says_refusals
from app.web.views.export_choices import ExportForm, cost_words, export_form
from app.web.views.listed import address, in_path
from app.web.views.profiles import PLACE, SECTION
from app.web.views.work_view import SHORT_S, WorkPlace, WorkView
from domain.errors import InvalidInput, NotFound
from domain.profile import ProfileReference
from domain.units import format_bytes
from models.records import JobRecord, JobState

router = APIRouter(include_in_schema=False)

MOST_SHOWN = 200_000  # characters; the file has all of them
WORK = "work"


@router.get(PLACE + "/{name}/exports/{target}")
@says_refusals
async def export(request: Request, name: str, target: str) -> Response:
    """The form of a target, and a place for its text, which comes by itself."""
    reference = known_reference(name)
    form = export_form(target, _choices(request))
    service = service_of(request)
    revision = await service.call(lambda: get_revision(service.context.store, reference))
    shown: dict[str, Any] = {"ask": ""}
    if form.scope is not None:
        shown["ask"] = _address(request, name, f"{target}/text")
        if identifier := request.query_params.get(WORK):
            job = await _find(request, reference, target, identifier)
            shown |= {"ask": "", **_outcome(request, name, form, job)}
    return page(
        request,
        "profile_export.html",
        status=200 if form.scope is not None else 422,
        section=SECTION,
        name=revision.profile,
        reference=name,
        number=revision.number,
        form=form,
        **shown,
    )


@router.post(PLACE + "/{name}/exports/{target}/text")
@says_refusals
async def write(request: Request, name: str, target: str) -> Response:
    """Start to write the text, or join who does; the text where that takes no time."""
    reference = known_reference(name)
    form = export_form(target, _choices(request))
    if form.scope is None:
        raise InvalidInput(next(iter(form.mistakes.values())))
    service = service_of(request)
    settings = service.context.settings
    make = partial(export_operation, reference, form.scope, settings=settings, table=None)
    job = await service.settled(await service.start_job(make), within_s=SHORT_S)
    if not is_htmx(request):
        return moved(request, _address(request, name, target, job))
    return _part(request, name, form, job)


@router.get(PLACE + "/{name}/exports/{target}/text")
@says_refusals
async def text(request: Request, name: str, target: str) -> Response:
    """What takes the place of the job that was waited for."""
    reference = known_reference(name)
    form = export_form(target, _choices(request))
    job = await _find(request, reference, target, request.query_params.get(WORK, ""))
    return _part(request, name, form, job)


@router.get("/ui/exports/{id}")
@says_refusals
async def file(request: Request, id: str) -> Response:
    """The text that a job has written, as a file."""
    service = service_of(request)
    job = await service.call(lambda: get_job(service.context.store, id))
    if job.kind != OperationKind.EXPORT or job.best is None:
        raise NotFound("there is no export of this identifier")
    made = read_output(ExportedOut, job.best)
    headers = {
        "Content-Disposition": f'attachment; filename="{made.file_name}"',
        "X-Content-Type-Options": "nosniff",
    }
    return Response(made.text.encode(), headers=headers, media_type=made.media_type)


def _choices(request: Request) -> dict[str, str]:
    return {name: text for name, text in request.query_params.items() if name != WORK}


def _address(request: Request, name: str, path: str, job: JobRecord | None = None) -> str:
    """A page below this profile's exports with the same choices."""
    pairs = list(_choices(request).items()) + ([(WORK, job.id)] if job else [])
    return address(f"{PLACE}/{in_path(name)}/exports/{path}", pairs)


async def _find(
    request: Request, reference: ProfileReference, target: str, identifier: str
) -> JobRecord:
    """The job, where it is an export of this profile to this target. Raises NotFound."""
    service = service_of(request)
    job = await service.call(lambda: get_job(service.context.store, identifier))
    if job.kind == OperationKind.EXPORT:
        asked = read_request(ExportJobIn, job.request)
        if (asked.target, asked.reference.name) == (target, reference.name):
            return job
    raise NotFound("there is no such export of this profile")


def _audit_address(reference: str, size_bytes: int | None) -> str:
    """An audit of one size, which names the best one that no rule of a target narrows."""
    setting = "whole" if size_bytes is None else format_bytes(size_bytes)
    return address("/ui/audit", (("profile", reference), ("setting", setting)))


def _part(request: Request, name: str, form: ExportForm, job: JobRecord) -> Response:
    shown = {"form": form, "reference": name, **_outcome(request, name, form, job)}
    return page(request, "profile_export_part.html", section=SECTION, **shown)


def _outcome(request: Request, name: str, form: ExportForm, job: JobRecord) -> dict[str, Any]:
    """What profile_export_part.html is given: the text, or the work."""
    if job.state is JobState.DONE and job.best is not None:
        made = read_output(ExportedOut, job.best)
        steps = made.chosen.steps if made.chosen else ()
        return {
            "costs": cost_words(made.chosen) if made.chosen else "",
            "audit_address": _audit_address(name, steps[0].size_bytes) if steps else "",
            "text": made.text[:MOST_SHOWN],
            "is_cut": len(made.text) > MOST_SHOWN,
            "file_name": made.file_name,
            "file_address": f"/ui/exports/{job.id}",
            "api_address": form.file_address(name),
        }
    target = form.target.name
    place = WorkPlace(
        title="Choosing sizes" if form.has_sizes else "Writing",
        here=_address(request, name, target, job),
        part=_address(request, name, f"{target}/text", job),
        again_form="export-form",
    )
    return {"work": WorkView.of(job, place)}
