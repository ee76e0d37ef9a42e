"""Pages of exports: the form of a target, the text once it is written, and its file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from fastapi import Request, Response

from app.http.dependencies import client_of, own_router, service_of
from app.jobs.ledger import get_job
from app.operations.operation import OperationKind
from app.questions.profiles import get_revision, known_reference
from app.schemas.base import read_output, read_request
from app.text.units import workload_lines
from app.ui.addresses import address, in_path
from app.ui.pages import is_htmx, moved, page, says_refusals
from app.ui.work import SHORT_S, WorkPlace, WorkView
from app.verbs.export.operation import operation
from app.verbs.export.page.form import FORM, ExportForm, export_form
from app.verbs.export.show import format_export_cost
from contract.export import ExportedOut
from contract.jobs import ExportJobIn
from domain.errors import InvalidInput, NotFound
from domain.profile import ProfileReference
from domain.units import format_bytes
from models.records import JobRecord, JobState

router = own_router(include_in_schema=False)

SECTION = "Profiles"
PLACE = "/ui/profiles"
MAX_SHOWN = 200_000  # characters; the file has all of them
WORK = "work"


@router.get(PLACE + "/{name}/exports/{target}")
@says_refusals
async def export(request: Request, name: str, target: str) -> Response:
    """Show the form of a target, and a place for its text, which comes by itself."""
    reference = known_reference(name)
    form = export_form(target, _choices(request))
    service = service_of(request)
    revision = await service.call(lambda: get_revision(service.context.store, reference))
    shown: dict[str, Any] = {"text_at": ""}
    if form.scope is not None:
        shown["text_at"] = _address(request, name, f"{target}/text")
        if identifier := request.query_params.get(WORK):
            job = await _find_export(request, reference, target, identifier)
            shown |= {"text_at": "", **_outcome(request, name, form, job)}
    return page(
        request,
        "export.html",
        status=200 if form.scope is not None else 422,
        section=SECTION,
        name=revision.profile,
        reference=name,
        number=revision.number,
        form=form,
        words={word.name: word for word in FORM.words},
        texts=form.shown_texts,
        mistakes=form.mistakes,
        **shown,
    )


@router.post(PLACE + "/{name}/exports/{target}/text")
@says_refusals
async def write(request: Request, name: str, target: str) -> Response:
    """Start to write the text, or join its job; show the text if it is there."""
    reference = known_reference(name)
    form = export_form(target, _choices(request))
    if form.scope is None:
        raise InvalidInput(next(iter(form.mistakes.values())))
    service = service_of(request)
    settings = service.context.settings
    make = partial(operation, reference, form.scope, settings=settings, table=None)
    job = await service.settled(await service.start_job(make, client_of(request)), within_s=SHORT_S)
    if not is_htmx(request):
        return moved(request, _address(request, name, target, job))
    return _part(request, name, form, job)


@router.get(PLACE + "/{name}/exports/{target}/text")
@says_refusals
async def text(request: Request, name: str, target: str) -> Response:
    """Show what replaces the job that was waited for."""
    reference = known_reference(name)
    form = export_form(target, _choices(request))
    job = await _find_export(request, reference, target, request.query_params.get(WORK, ""))
    return _part(request, name, form, job)


@router.get("/ui/exports/{id}")
@says_refusals
async def file(request: Request, id: str) -> Response:
    """Return the text that a job has written, as a file."""
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
    """Return a page below this profile's exports with the same choices."""
    pairs = list(_choices(request).items()) + ([(WORK, job.id)] if job else [])
    return address(f"{PLACE}/{in_path(name)}/exports/{path}", pairs)


async def _find_export(
    request: Request, reference: ProfileReference, target: str, identifier: str
) -> JobRecord:
    """Return the job, where it is an export of this profile to this target. Raises NotFound."""
    service = service_of(request)
    job = await service.call(lambda: get_job(service.context.store, identifier))
    if job.kind == OperationKind.EXPORT:
        asked = read_request(ExportJobIn, job.request)
        if (asked.target, ProfileReference.parse(asked.profile).name) == (target, reference.name):
            return job
    raise NotFound("there is no such export of this profile")


def _audit_address(reference: str, size_bytes: int | None) -> str:
    """Return an audit of one size, which names the best one that no rule of a target narrows."""
    setting = "whole" if size_bytes is None else format_bytes(size_bytes)
    return address("/ui/audit", (("profile", reference), ("setting", setting)))


def _part(request: Request, name: str, form: ExportForm, job: JobRecord) -> Response:
    shown = {"form": form, "reference": name, **_outcome(request, name, form, job)}
    return page(request, "export_part.html", section=SECTION, **shown)


def _outcome(request: Request, name: str, form: ExportForm, job: JobRecord) -> dict[str, Any]:
    """Return what export_part.html is given: the text, or the work."""
    if job.state is JobState.DONE and job.best is not None:
        made = read_output(ExportedOut, job.best)
        steps = made.chosen.steps if made.chosen else ()
        return {
            "costs": format_export_cost(made.chosen, made.warnings) if made.chosen else "",
            "audit_address": _audit_address(name, steps[0].size_bytes) if steps else "",
            "text": made.text[:MAX_SHOWN],
            "is_cut": len(made.text) > MAX_SHOWN,
            "file_name": made.file_name,
            "file_address": f"/ui/exports/{job.id}",
            "api_address": form.file_address(name),
            "command": form.command(name),
        }
    target = form.target.name
    place = WorkPlace(
        title="Choosing sizes" if form.has_sizes else "Writing",
        here=_address(request, name, target, job),
        part=_address(request, name, f"{target}/text", job),
        again_form="export-form",
    )
    return {"work": WorkView.from_job(job, place)}


# --- a job's result -------------------------------------------------------------------------------


def result(job: JobRecord) -> str:
    """Return where a job's text is shown, with what it was asked in the address."""
    asked = read_request(ExportJobIn, job.request)
    pairs = [*_asked(asked), (WORK, job.id)]
    return address(f"{PLACE}/{in_path(asked.profile)}/exports/{asked.target}", pairs)


_LIMITS = {
    "min_fragment_bytes": "min",
    "max_fragment_bytes": "max",
    "alignment_bytes": "align",
    "max_fragments": "max_fragments",
}


def _asked(asked: ExportJobIn) -> Iterator[tuple[str, str]]:
    """Yield the request as the page of an export has it in its address."""
    for name, value in asked.options.items():
        yield f"option.{name}", value
    for name, bound in (
        ("min_message", asked.min_message_bytes),
        ("max_message", asked.max_message_bytes),
    ):
        if bound is not None and not asked.workload:
            yield name, format_bytes(bound)
    if asked.workload:
        yield "workload", "\n".join(workload_lines(asked.workload))
    if asked.objective is not None:
        yield "objective", asked.objective
    limits = vars(asked.constraints) if asked.constraints else {}
    for key, name in _LIMITS.items():
        if limits.get(key) is not None:
            yield name, str(limits[key])
