"""A profile as a library's configuration: the form at once, the text as a part of its own."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from app.deps import gone, service_of
from app.flows.profiles import get_revision, known_reference
from app.web.pages import is_htmx, page
from app.web.refusals import says_refusals
from app.web.views.export_choices import export_form
from app.web.views.listed import in_path
from app.web.views.profiles import PLACE, SECTION
from domain.errors import InvalidInput
from domain.profile import ProfileReference

router = APIRouter(include_in_schema=False)

MOST_SHOWN = 200_000  # characters; the file has all of them


@router.get(PLACE + "/{name}/exports/{target}")
@says_refusals
async def export(request: Request, name: str, target: str) -> Response:
    """The form of a target, and a place for its text, which comes by itself."""
    reference = ProfileReference.parse(known_reference(name))
    form = export_form(target, dict(request.query_params))
    service = service_of(request)
    revision = await service.call(lambda: get_revision(service.context.store, reference))
    is_ready = form.scope is not None
    return page(
        request,
        "profile_export.html",
        status=200 if is_ready else 422,
        section=SECTION,
        name=revision.profile,
        reference=name,
        number=revision.number,
        form=form,
        file_address=form.file_address(name) if is_ready else "",
        text_address=f"{PLACE}/{in_path(name)}/exports/{target}/text?{request.url.query}",
    )


@router.get(PLACE + "/{name}/exports/{target}/text")
@says_refusals
async def export_text(request: Request, name: str, target: str) -> Response:
    """The text, to read and to copy."""
    reference = ProfileReference.parse(known_reference(name))
    form = export_form(target, dict(request.query_params))
    if form.scope is None:
        raise InvalidInput(next(iter(form.mistakes.values())))
    service = service_of(request)
    made = await service.exports.export(reference, form.scope, gone(request), table=None)
    text = made.content.decode("utf-8", "replace")
    template = "profile_export_text.html" if is_htmx(request) else "profile_export_alone.html"
    return page(
        request,
        template,
        section=SECTION,
        reference=name,
        form=form,
        text=text[:MOST_SHOWN],
        is_cut=len(text) > MOST_SHOWN,
        file_name=made.file_name,
        file_address=form.file_address(name),
    )
