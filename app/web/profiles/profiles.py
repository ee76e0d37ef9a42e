"""Pages of hardware profiles: the list, a profile, its compiled tables and its exports."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import Request, Response

from app.errors import kind_of
from app.http.dependencies import base_url_of, client_of, own_router, service_of
from app.jobs.ledger import get_job
from app.operations.operation import OperationKind
from app.questions.profiles import (
    RecordedWork,
    delete_profile,
    get_revision,
    keep_verification,
    known_reference,
    list_profiles,
    list_revisions,
    recorded_verification,
    set_current,
    stages_measured,
)
from app.questions.source import Stored
from app.questions.tables import TablePage, activate_table, active_table, get_table, list_tables
from app.registry import VERBS
from app.schemas.base import read_output, read_request
from app.schemas.jobs import revision_asked
from app.ui.addresses import address, in_path
from app.ui.pages import is_htmx, moved, page, says_refusals
from app.web.forms import sent_fields
from app.web.jobs.work import SHORT_S, WorkPlace, WorkView
from app.web.profiles.exports import ExportForm, export_form, format_export_cost, offered_targets
from app.web.profiles.tables import (
    RunningCompilation,
    TableForm,
    TableView,
    TableWork,
    running_tables,
    table_work,
    work_address,
)
from app.web.profiles.view import ProfileRow, ProfileView, SentTransfers, TableRow, VerifyForm
from contract.export import ExportedOut
from contract.jobs import ExportJobIn
from contract.table import TableOut
from domain.errors import InvalidInput, NotFound, Overloaded, SluiceError
from domain.profile import HardwareProfile, ProfileReference, Revision
from domain.units import format_bytes
from domain.verification import Against
from models.records import JobRecord, JobState

if TYPE_CHECKING:
    from models.session import Store


router = own_router(include_in_schema=False)

SECTION = "Profiles"
PLACE = "/ui/profiles"
PAGE_SIZE = 50
TABLES_SHOWN = 50
_NUMBER = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ShownProfile:
    """A profile with its revisions, the one that is looked at, and its compiled tables.

    `measured` are the stages that the files of the one that is looked at time, where they say so.
    """

    profile: HardwareProfile
    revisions: tuple[Revision, ...]
    shown: Revision
    against: Against | None
    measured: tuple[str, ...]
    tables: TablePage
    is_first: bool
    work: TableWork | None
    running: tuple[RunningCompilation, ...]


@router.get(PLACE)
@says_refusals
async def profiles(request: Request) -> Response:
    """Show profiles by name, those that contain the text that was searched for."""
    wanted = request.query_params.get("q", "").strip()[:64]
    after = request.query_params.get("after", "") or None
    service = service_of(request)
    found = await service.call(
        lambda: list_profiles(
            service.context.store, containing=wanted.lower(), after=after, limit=PAGE_SIZE
        )
    )
    return page(
        request,
        "profiles.html",
        section=SECTION,
        wanted=wanted,
        rows=[ProfileRow.of(profile) for profile in found.profiles],
        later=address(PLACE, (("q", wanted), ("after", found.after))) if found.after else "",
        first=address(PLACE, (("q", wanted),)) if after else "",
    )


@router.get(PLACE + "/{name}")
@says_refusals
async def profile(request: Request, name: str) -> Response:
    """Show a profile at its current revision; `name@2`, or `?revision=2`, shows another."""
    given = request.query_params
    reference = _reference(name, given.get("revision", ""))
    return await profile_page(request, reference, TableForm())


async def profile_page(
    request: Request,
    reference: ProfileReference,
    form: TableForm,
    *,
    sent: SentTransfers | None = None,
    status: int = 200,
) -> Response:
    """Show the page of a profile, with the forms of a table and of transfers as filled in."""
    service = service_of(request)
    before = _number(request.query_params.get("before", ""))
    after = request.query_params.get("tables") or None
    asked = request.query_params.get("work", "")
    found = await service.call(lambda: _find(service.context.store, reference, after, asked))
    if found.work is not None and not form.mistakes:
        form = found.work.form
    view = ProfileView.of(found.profile, found.revisions, found.shown, found.against, before)
    here = f"{PLACE}/{view.reference}"
    return page(
        request,
        "profile.html",
        status=status,
        section=SECTION,
        view=view,
        tables=[TableRow.of(summary) for summary in found.tables.summaries],
        older_tables=address(here, (("tables", found.tables.after or ""),)),
        has_older_tables=found.tables.after is not None,
        form=form,
        verify=VerifyForm.of(
            found.shown,
            found.measured,
            base_url=base_url_of(request),
            current=found.profile.current.number,
            sent=sent or SentTransfers(),
        ),
        is_first=found.is_first,
        running=found.running,
        work=found.work.work if found.work else None,
        compiled=found.work.compiled if found.work else None,
        targets=offered_targets(),
    )


@router.post(PLACE + "/{name}/current")
@says_refusals
async def make_current(request: Request, name: str) -> Response:
    """Make a revision the current one, and show the profile."""
    fields = await sent_fields(request)
    number = _number(fields.get("revision", ""))
    if not number:
        raise InvalidInput("expected the number of a revision", field="revision")
    service = service_of(request)
    await service.write(lambda: set_current(service.context.store, name, number))
    return moved(request, f"{PLACE}/{in_path(name)}")


@router.post(PLACE + "/{name}/delete")
@says_refusals
async def delete(request: Request, name: str) -> Response:
    """Delete a profile, and show those that are left."""
    await sent_fields(request)
    service = service_of(request)
    await service.write(lambda: delete_profile(service.context.store, name))
    return moved(request, PLACE)


@router.post(PLACE + "/{name}/verification")
@says_refusals
async def verify(request: Request, name: str) -> Response:
    """Keep what recorded transfers say of a revision's model, and show it with the revision."""
    reference = known_reference(name)
    transfers = (await sent_fields(request)).get("transfers", "")
    service = service_of(request)
    store = service.context.store
    try:
        recorded = await service.read(RecordedWork(transfers), client_of(request))
        revision, found = await service.call(
            lambda: recorded_verification(store, reference, recorded)
        )
    except (NotFound, Overloaded):
        raise
    except SluiceError as refusal:
        status = kind_of(refusal.code).status
        sent = SentTransfers(transfers, refusal.detail)
        return await profile_page(request, reference, TableForm(), sent=sent, status=status)
    await service.write(lambda: keep_verification(store, revision, found))
    return moved(request, f"{PLACE}/{in_path(revision.profile)}@{revision.number}#verification")


def _find(store: Store, reference: ProfileReference, after: str | None, work: str) -> ShownProfile:
    found, revisions = list_revisions(store, reference.name)
    number = reference.revision or found.current.number
    shown = next((one for one in revisions if one.number == number), None)
    if shown is None:
        raise NotFound(f"this profile has no revision {number}", field="profile")
    tables = list_tables(store, reference.name, after=after, limit=TABLES_SHOWN)
    is_first = not list_tables(store, reference.name, revision=number, limit=1).summaries
    asked = table_work(store, reference.name, work) if work else None
    running = running_tables(store, reference.name, work)
    if asked is None and running:  # who comes back without its address sees it all the same
        asked, running = table_work(store, reference.name, running[0].id), running[1:]
    with store.reading() as unit:
        measured = stages_measured(unit, shown)
        against = Stored.of_unit(unit).against(shown)
    return ShownProfile(
        found, revisions, shown, against, measured, tables, is_first, asked, running
    )


def _reference(name: str, revision: str) -> ProfileReference:
    text = f"{name}@{revision}" if revision and "@" not in name else name
    return known_reference(text)


def _number(text: str) -> int:
    """Return a revision's number; 0 for text that is none."""
    return int(text) if _NUMBER.fullmatch(text) else 0


# --- compiled tables ------------------------------------------------------------------------------


@router.post(PLACE + "/{name}/tables")
@says_refusals
async def compile_one(request: Request, name: str) -> Response:
    """Start to compile a table, or show the profile with what is wrong with what was asked for."""
    reference = known_reference(name)
    form = TableForm.of(await sent_fields(request))
    scope, form = form.scope()
    if scope is None:
        return await profile_page(request, reference, form, status=422)
    service = service_of(request)
    make = partial(
        VERBS["table"].module("operation").operation,
        reference,
        scope,
        settings=service.context.settings,
        activate=True if form.activate else None,
    )
    try:
        job = await service.start_job(make, client_of(request))
    except (NotFound, Overloaded):
        raise
    except SluiceError as refusal:
        status = kind_of(refusal.code).status
        return await profile_page(request, reference, form.refused(refusal), status=status)
    await service.settled(job, within_s=SHORT_S)
    return moved(request, work_address(name, job.id))


@router.post(PLACE + "/{name}/table")
@says_refusals
async def activate(request: Request, name: str) -> Response:
    """Have the lookups of a table's revision answer from it.

    One that misses its tolerance is shown first, and activated where that is confirmed.
    """
    reference = known_reference(name)
    fields = await sent_fields(request)
    digest = fields.get("digest", "")
    service = service_of(request)
    if not fields.get("confirmed"):
        found = await service.call(lambda: get_table(service.context.store, digest))
        if found.worst_gap > found.relative_gap:
            return moved(request, f"{PLACE}/{in_path(name)}/tables/{in_path(digest)}")
    await service.write(lambda: activate_table(service.context.store, reference, digest))
    return moved(request, f"{PLACE}/{in_path(name)}#tables")


@router.get(PLACE + "/{name}/tables/{digest}")
@says_refusals
async def table(request: Request, name: str, digest: str) -> Response:
    """Show what is proven of a table and where it misses its tolerance."""
    reference = known_reference(name)
    service = service_of(request)
    view = await service.call(lambda: _view(service.context.store, reference, digest))
    return page(request, "profile_table.html", section=SECTION, view=view)


def _view(store: Store, reference: ProfileReference, digest: str) -> TableView:
    found = get_table(store, digest)
    if found.profile_name != reference.name:
        raise NotFound("there is no such table of this profile")
    pinned = ProfileReference(reference.name, found.profile_revision)
    try:
        is_active = active_table(store, pinned).digest == digest
    except NotFound:
        is_active = False
    against = Stored.of_store(store).against(get_revision(store, pinned))
    return TableView.of(read_output(TableOut, found.document), against, is_active=is_active)


# --- exports --------------------------------------------------------------------------------------


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
    shown: dict[str, Any] = {"ask": ""}
    if form.scope is not None:
        shown["ask"] = _address(request, name, f"{target}/text")
        if identifier := request.query_params.get(WORK):
            job = await _find_export(request, reference, target, identifier)
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
    """Start to write the text, or join its job; show the text if it is there."""
    reference = known_reference(name)
    form = export_form(target, _choices(request))
    if form.scope is None:
        raise InvalidInput(next(iter(form.mistakes.values())))
    service = service_of(request)
    settings = service.context.settings
    operation = VERBS["export"].module("operation").operation
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
        if (asked.target, revision_asked(asked).name) == (target, reference.name):
            return job
    raise NotFound("there is no such export of this profile")


def _audit_address(reference: str, size_bytes: int | None) -> str:
    """Return an audit of one size, which names the best one that no rule of a target narrows."""
    setting = "whole" if size_bytes is None else format_bytes(size_bytes)
    return address("/ui/audit", (("profile", reference), ("setting", setting)))


def _part(request: Request, name: str, form: ExportForm, job: JobRecord) -> Response:
    shown = {"form": form, "reference": name, **_outcome(request, name, form, job)}
    return page(request, "profile_export_part.html", section=SECTION, **shown)


def _outcome(request: Request, name: str, form: ExportForm, job: JobRecord) -> dict[str, Any]:
    """Return what profile_export_part.html is given: the text, or the work."""
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
        }
    target = form.target.name
    place = WorkPlace(
        title="Choosing sizes" if form.has_sizes else "Writing",
        here=_address(request, name, target, job),
        part=_address(request, name, f"{target}/text", job),
        again_form="export-form",
    )
    return {"work": WorkView.of(job, place)}
