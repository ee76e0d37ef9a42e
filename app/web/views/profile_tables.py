"""Compiled tables on a profile's page: compile one, switch to one."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from app.deps import service_of
from app.errors import Overloaded, kind_of
from app.flows.build_table import activate_table
from app.flows.profiles import known_reference
from app.web.pages import moved
from app.web.refusals import says_refusals
from app.web.views.forms import sent_fields
from app.web.views.listed import in_path
from app.web.views.profiles import PLACE, profile_page
from app.web.views.table_form import TableForm
from app.web.views.table_work import work_address
from app.web.views.work_view import SHORT_S
from domain.errors import NotFound, SluiceError
from domain.profile import ProfileReference

router = APIRouter(include_in_schema=False)


@router.post(PLACE + "/{name}/tables")
@says_refusals
async def compile_one(request: Request, name: str) -> Response:
    """Start to compile a table, or show the profile with what is wrong with what was asked for."""
    reference = ProfileReference.parse(known_reference(name))
    form = TableForm.of(await sent_fields(request))
    scope, form = form.scope()
    if scope is None:
        return await profile_page(request, reference, form, status=422)
    work = service_of(request).work
    try:
        job = await work.table(reference, scope, activate=True if form.activate else None)
    except (NotFound, Overloaded):
        raise
    except SluiceError as refusal:
        status = kind_of(refusal.code).status
        return await profile_page(request, reference, form.refused(refusal), status=status)
    await work.settled(job, within_s=SHORT_S)
    return moved(request, work_address(name, job.id))


@router.post(PLACE + "/{name}/table")
@says_refusals
async def activate(request: Request, name: str) -> Response:
    """Have the look-ups of a table's revision answer from it."""
    reference = ProfileReference.parse(known_reference(name))
    digest = (await sent_fields(request)).get("digest", "")
    service = service_of(request)
    await service.call(lambda: activate_table(service.context.store, reference, digest))
    return moved(request, f"{PLACE}/{in_path(name)}#tables")
