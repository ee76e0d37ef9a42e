"""Hardware profiles: the list, and one with its revisions and compiled tables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from app.deps import service_of
from app.flows import profiles as flow
from app.flows.build_table import TablePage, list_tables
from app.web.pages import moved, page
from app.web.refusals import says_refusals
from app.web.views.export_choices import offered_targets
from app.web.views.forms import sent_fields
from app.web.views.listed import address, in_path
from app.web.views.profile_view import ProfileRow, ProfileView, TableRow
from app.web.views.table_form import TableForm
from app.web.views.table_work import Running, TableWork, running_tables, table_work
from domain.errors import InvalidInput, NotFound
from domain.profile import HardwareProfile, ProfileReference, Revision

if TYPE_CHECKING:
    from models.session import Store

router = APIRouter(include_in_schema=False)

SECTION = "Profiles"
PLACE = "/ui/profiles"
PAGE_SIZE = 50
TABLES_SHOWN = 50
_NUMBER = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Found:
    """A profile with its revisions, the one that is looked at, and its compiled tables."""

    profile: HardwareProfile
    revisions: tuple[Revision, ...]
    shown: Revision
    tables: TablePage
    is_first: bool
    work: TableWork | None
    running: tuple[Running, ...]


@router.get(PLACE)
@says_refusals
async def profiles(request: Request) -> Response:
    """Profiles by name, those that contain what was searched for."""
    wanted = request.query_params.get("q", "").strip()[:64]
    after = request.query_params.get("after", "") or None
    service = service_of(request)
    found = await service.call(
        lambda: flow.list_profiles(
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
    """A profile at its current revision; `name@2`, or `?revision=2`, shows another."""
    given = request.query_params
    reference = _reference(name, given.get("revision", ""))
    return await profile_page(request, reference, TableForm())


async def profile_page(
    request: Request, reference: ProfileReference, form: TableForm, *, status: int = 200
) -> Response:
    """The page of a profile, with the form of a table as it was filled in."""
    service = service_of(request)
    before = _number(request.query_params.get("before", ""))
    after = request.query_params.get("tables") or None
    asked = request.query_params.get("work", "")
    found = await service.call(lambda: _find(service.context.store, reference, after, asked))
    if found.work is not None and not form.mistakes:
        form = found.work.form
    view = ProfileView.of(found.profile, found.revisions, found.shown, before)
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
    await service.write(lambda: flow.set_current(service.context.store, name, number))
    return moved(request, f"{PLACE}/{in_path(name)}")


@router.post(PLACE + "/{name}/delete")
@says_refusals
async def delete(request: Request, name: str) -> Response:
    """Delete a profile, and show those that are left."""
    await sent_fields(request)
    service = service_of(request)
    await service.write(lambda: flow.delete_profile(service.context.store, name))
    return moved(request, PLACE)


def _find(store: Store, reference: ProfileReference, after: str | None, work: str) -> Found:
    found, revisions = flow.list_revisions(store, reference.name)
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
    return Found(found, revisions, shown, tables, is_first, asked, running)


def _reference(name: str, revision: str) -> ProfileReference:
    text = f"{name}@{revision}" if revision and "@" not in name else name
    return flow.known_reference(text)


def _number(text: str) -> int:
    """A revision's number; 0 for text that is none."""
    return int(text) if _NUMBER.fullmatch(text) else 0
