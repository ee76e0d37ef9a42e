"""The page of stages measured apart: the form, and from it the fit of all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fastapi import Request, Response

from app.errors import kind_of
from app.http.dependencies import client_of, own_router, service_of
from app.questions.measured_stages import list_measured_stages
from app.ui.pages import moved, page, says_refusals
from app.ui.panel.form import change_of
from app.verbs.compose.page.composition import RowMistakes, composition, row_of
from app.verbs.compose.page.form import ComposeForm
from app.web.fitted import fit_and_store
from app.web.forms import read_form
from domain.errors import Overloaded, SluiceError

if TYPE_CHECKING:
    from models.session import Store

PLACE = "/ui/compose"
_OFFERED_PROFILES = 50

router = own_router(include_in_schema=False)


@router.get(PLACE)
@says_refusals
async def compose(request: Request) -> Response:
    """Show the form of a pipeline whose stages were measured each by itself."""
    return await _page(request, ComposeForm())


@router.post(PLACE)
@says_refusals
async def composed(request: Request) -> Response:
    """Fit each stage by its own files and go to the fit of all, or show which row is wrong."""
    pairs = await read_form(request)
    form = ComposeForm.from_pairs(pairs)
    if change := change_of(pairs):
        return await _page(request, form.changed(change))
    service = service_of(request)
    try:
        asked = await service.with_files(
            lambda files: service.call(lambda: composition(service.context.store, form, files)),
            client_of(request),
        )
        address = await fit_and_store(request, *asked)
    except RowMistakes as refusal:
        form = replace(form, mistakes=refusal.mistakes, unread=refusal.unread)
    except SluiceError as refusal:
        if isinstance(refusal, Overloaded) or kind_of(refusal.code).status >= 500:
            raise
        form = replace(form, mistakes={row_of(form, refusal): refusal.detail})
    else:
        return moved(request, address)
    return await _page(request, form, status=422)


async def _page(request: Request, form: ComposeForm, *, status: int = 200) -> Response:
    service = service_of(request)
    offered = await service.call(lambda: _offered_stages(service.context.store))
    return page(
        request, "compose.html", status=status, section="Workbench", form=form, offered=offered
    )


def _offered_stages(store: Store) -> list[str]:
    """The stages of fitted profiles, each as profile@revision/stage."""
    found = list_measured_stages(store, limit=_OFFERED_PROFILES)
    return [f"{one.name}@{one.revision}/{name}" for one, name in found]
