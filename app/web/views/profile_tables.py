"""Compiled tables on a profile's page: compile one, switch to one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from app.deps import service_of
from app.errors import kind_of
from app.flows.build_table import activate_table, active_table, get_table
from app.flows.profiles import known_reference
from app.operations.tables import table_operation
from app.schemas.base import read_output
from app.schemas.tables import TableOut
from app.web.pages import moved, page
from app.web.refusals import says_refusals
from app.web.views.forms import sent_fields
from app.web.views.listed import in_path
from app.web.views.profiles import PLACE, SECTION, profile_page
from app.web.views.table_form import TableForm
from app.web.views.table_view import TableView
from app.web.views.table_work import work_address
from app.web.views.work_view import SHORT_S
from domain.errors import NotFound, Overloaded, SluiceError
from domain.profile import ProfileReference

if TYPE_CHECKING:
    from models.session import Store

router = APIRouter(include_in_schema=False)


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
        table_operation,
        reference,
        scope,
        settings=service.context.settings,
        activate=True if form.activate else None,
    )
    try:
        job = await service.start_job(make)
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
    """Have the look-ups of a table's revision answer from it.

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
    """What is proven of a table and where it misses its tolerance; where it can be activated."""
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
    return TableView.of(read_output(TableOut, found.document), is_active=is_active)
