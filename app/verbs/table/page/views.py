"""Pages of compiled tables: a compilation is started, a table shown and activated."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fastapi import Request, Response

from app.errors import kind_of
from app.http.dependencies import client_of, own_router, service_of
from app.questions.profiles import get_revision, known_reference
from app.questions.source import Stored
from app.questions.tables import activate_table, active_table, get_table
from app.schemas.base import read_output, read_request
from app.ui.addresses import in_path
from app.ui.pages import moved, page, says_refusals
from app.ui.work import SHORT_S
from app.verbs.profiles.page.views import PLACE, SECTION, profile_page
from app.verbs.table.operation import operation
from app.verbs.table.page.compilations import work_address
from app.verbs.table.page.form import TableForm
from app.verbs.table.page.view import TableView
from app.verbs.table.request import scope_of
from app.web.forms import sent_fields
from contract.jobs import TableJobIn
from contract.table import TableOut
from domain.errors import NotFound, Overloaded, SluiceError
from domain.profile import ProfileReference
from models.records import JobRecord

if TYPE_CHECKING:
    from models.session import Store

router = own_router(include_in_schema=False)


def result(job: JobRecord) -> str:
    """Return where a job's table is shown: on its profile's page."""
    return work_address(read_request(TableJobIn, job.request).profile, job.id)


@router.post(PLACE + "/{name}/tables")
@says_refusals
async def compile_one(request: Request, name: str) -> Response:
    """Start to compile a table, or show the profile with what is wrong with what was asked for."""
    reference = known_reference(name)
    asked, form = TableForm.from_texts(await sent_fields(request)).asked()
    if asked is None:
        return await profile_page(request, reference, form, status=422)
    service = service_of(request)
    make = partial(
        operation,
        reference,
        scope_of(asked),
        settings=service.context.settings,
        activate=asked.activate,
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
    return page(request, "table.html", section=SECTION, view=view)


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
    return TableView.from_table(read_output(TableOut, found.document), against, is_active=is_active)
