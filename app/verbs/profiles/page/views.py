"""Pages of hardware profiles: the list, and a profile with its revisions and tables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi import Request, Response

from app.errors import kind_of
from app.http.dependencies import base_url_of, client_of, own_router, service_of
from app.questions.profiles import (
    RecordedWork,
    delete_profile,
    keep_verification,
    known_reference,
    list_profiles,
    list_revisions,
    recorded_verification,
    set_current,
    stages_measured,
)
from app.questions.source import Stored
from app.questions.tables import TablePage, list_tables
from app.ui.addresses import address, in_path
from app.ui.html import as_html
from app.ui.pages import moved, page, says_refusals
from app.verbs.export.page.form import offered_targets
from app.verbs.profiles.answer import profiles_out
from app.verbs.profiles.page.view import (
    ProfileView,
    SentTransfers,
    TableRow,
    VerifyForm,
    listed,
)
from app.verbs.table.page.compilations import (
    RunningCompilation,
    TableWork,
    running_tables,
    table_work,
)
from app.verbs.table.page.form import FORM, TableForm
from app.web.forms import sent_fields
from domain.errors import InvalidInput, NotFound, Overloaded, SluiceError
from domain.profile import HardwareProfile, ProfileReference, Revision
from domain.verification import Against

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
        profiles=as_html([listed(profiles_out(found))]) if found.profiles else "",
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
    view = ProfileView.from_profile(
        found.profile, found.revisions, found.shown, found.against, before
    )
    here = f"{PLACE}/{view.reference}"
    return page(
        request,
        "profile.html",
        status=status,
        section=SECTION,
        view=view,
        tables=[TableRow.from_summary(summary) for summary in found.tables.summaries],
        older_tables=address(here, (("tables", found.tables.after or ""),)),
        has_older_tables=found.tables.after is not None,
        form=form,
        words={word.name: word for word in FORM.words},
        texts=form.texts,
        mistakes=form.mistakes,
        verify=VerifyForm.from_revision(
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
    shown = next((revision for revision in revisions if revision.number == number), None)
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
