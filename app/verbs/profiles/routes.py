"""Hardware profiles, their revisions, and the run-time lookup."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import Query, Request, Response

from app.api.openapi import UNCHANGED, changes, reads, refuses
from app.api.respond import (
    accepted,
    check_match,
    if_none_match,
    json_bytes,
    json_document,
    keyed,
    once,
    sent,
    tag_of,
    tagged,
)
from app.http.bodies import read_json
from app.http.dependencies import body_rules, client_of, own_router, prefers_async, service_of
from app.http.fastpath.responses import CachedResponse
from app.http.service import Lookup
from app.questions import profiles as questions
from app.questions.fits import options_named
from app.questions.source import Stored
from app.schemas.base import dump_json
from app.schemas.queries import NoQuery, ProfilesQuery, ScheduleQuery
from app.verbs.profiles.answer import (
    profile_out,
    profiles_out,
    revision_of_profile_out,
    revisions_out,
)
from app.verbs.profiles.request import revision_costs
from contract.optimize import StoredOptimizeOut
from contract.profiles import (
    AnyProfileOut,
    CurrentIn,
    ProfileIn,
    ProfileOut,
    ProfilesOut,
    RevisionIn,
    RevisionsOut,
    VerifiedRevisionOut,
)
from contract.schedule import TableScheduleOut
from contract.verification import VerificationIn
from domain.profile import HardwareProfile

router = own_router(prefix="/profiles", tags=["profiles"])
BODIES = (ProfileIn, RevisionIn, CurrentIn, VerificationIn)
OUTPUTS = (ProfileOut, ProfilesOut, RevisionsOut, TableScheduleOut)


@router.get("", **refuses(422, 503, sends=ProfilesOut))
async def list_profiles(request: Request, query: Annotated[ProfilesQuery, Query()]) -> Response:
    """Profiles by name, each at its current revision."""
    service = service_of(request)
    page = await service.call(
        lambda: questions.list_profiles(
            service.context.store, after=query.cursor, limit=query.limit
        )
    )
    return json_document(profiles_out(page))


@router.post("", **reads(ProfileIn, 404, 409, sends=AnyProfileOut, status=201))
@keyed
async def create_profile(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """A new profile, with revision 1."""
    service = service_of(request)
    asked = await read_json(request, ProfileIn, **body_rules(request))
    costs = await service.call(partial(revision_costs, asked))
    profile = await service.write(
        lambda: questions.create_profile(
            service.context.store,
            asked.name,
            costs,
            detail=asked.detail,
            then=once(request, partial(_changed, status=201)),
        )
    )
    return _changed(profile, status=201)


@router.get("/{name}", **refuses(404, 422, 503, also=UNCHANGED, sends=AnyProfileOut))
async def get_profile(request: Request, name: str, _: Annotated[NoQuery, Query()]) -> Response:
    """A profile at its current revision; its ETag is what If-Match takes."""
    service = service_of(request)
    profile = await service.call(lambda: questions.get_profile(service.context.store, name))
    return tagged(request, dump_json(profile_out(profile)))


@router.put("/{name}", **changes(reads(RevisionIn, 404, 409, sends=AnyProfileOut, keyed=False)))
async def revise_profile(request: Request, name: str, _: Annotated[NoQuery, Query()]) -> Response:
    """Add a revision, which becomes the current one; earlier ones stay as they are."""
    service = service_of(request)
    asked = await read_json(request, RevisionIn, **body_rules(request))
    costs = await service.call(partial(revision_costs, asked))
    profile = await service.write(
        lambda: questions.revise_profile(
            service.context.store,
            name,
            costs,
            detail=asked.detail,
            expected=_expected(request),
        )
    )
    return _changed(profile)


@router.delete(
    "/{name}", status_code=204, response_class=Response, **changes(refuses(404, 409, 422, 503))
)
async def delete_profile(request: Request, name: str, _: Annotated[NoQuery, Query()]) -> Response:
    """Delete a profile with its revisions. Answers that name it stay."""
    service = service_of(request)
    expected = _expected(request)
    await service.write(
        lambda: questions.delete_profile(service.context.store, name, expected=expected)
    )
    return Response(status_code=204)


@router.get("/{name}/revisions", **refuses(404, 422, 503, sends=RevisionsOut))
async def list_revisions(request: Request, name: str, _: Annotated[NoQuery, Query()]) -> Response:
    """Every revision, and where its stages came from."""
    service = service_of(request)
    store = service.context.store
    found, revisions = await service.call(lambda: questions.list_revisions(store, name))
    measured = await service.call(lambda: Stored.of_store(store).with_against(revisions))
    return json_document(revisions_out(found, measured))


@router.post("/{name}/current", **changes(reads(CurrentIn, 404, sends=AnyProfileOut)))
@keyed
async def set_current(request: Request, name: str, _: Annotated[NoQuery, Query()]) -> Response:
    """Roll back or forward to a revision that exists."""
    service = service_of(request)
    asked = await read_json(request, CurrentIn, **body_rules(request))
    profile = await service.write(
        lambda: questions.set_current(
            service.context.store,
            name,
            asked.revision,
            expected=_expected(request),
            then=once(request, _changed),
        )
    )
    return _changed(profile)


@router.post("/{name}/verification", **reads(VerificationIn, 404, sends=VerifiedRevisionOut))
@keyed
async def verify(request: Request, name: str, _: Annotated[NoQuery, Query()]) -> Response:
    """Compare recorded transfers with a revision's model, and keep the verdict with it.

    `name@2` pins a revision. A verdict that was there is replaced; nothing is measured here.
    """
    service = service_of(request)
    store = service.context.store
    asked = await read_json(request, VerificationIn, **body_rules(request))
    reference = questions.known_reference(name)
    with options_named(dict.fromkeys(("source", "recorded"), "transfers")):
        recorded = await service.read(questions.RecordedWork(asked.transfers), client_of(request))
        revision, found = await service.call(
            lambda: questions.recorded_verification(store, reference, recorded)
        )
    stated = once(request, _verified)
    kept = await service.write(
        lambda: questions.keep_verification(store, revision, found, then=stated)
    )
    return _verified(kept)


def _verified(kept: questions.VerifiedRevision) -> Response:
    shown = revision_of_profile_out(kept.revision, current=kept.current, against=kept.against)
    return json_document(shown)


@router.get(
    "/{name}/schedule",
    **refuses(
        404, 422, 503, may_be_async=True, also=UNCHANGED, sends=StoredOptimizeOut | TableScheduleOut
    ),
)
async def schedule(
    request: Request, name: str, query: Annotated[ScheduleQuery, Query()]
) -> Response:
    """The best schedule of a message: from the active table, as stored, or solved and stored now.

    `name@2` pins a revision. What a table answers is there at once, also for `respond-async`.
    """
    service = service_of(request)
    asked = Lookup(questions.known_reference(name), query.bytes, if_none_match(request))
    if prefers_async(request):
        if response := await service.table_answer(asked):
            return sent(response)
        return accepted(await service.start_job(service.asked_schedule(asked), client_of(request)))
    found = await service.lookup(asked, client_of(request))
    return sent(found) if isinstance(found, CachedResponse) else tagged(request, found)


# --- the state of a profile, and what it is expected to be ----------------------------------------


def _changed(profile: HardwareProfile, *, status: int = 200) -> Response:
    """Return a profile that was changed, with the ETag that GET gives it."""
    body = dump_json(profile_out(profile))
    headers = {"ETag": tag_of(body)}
    if status == 201:
        headers["Location"] = f"/profiles/{profile.name}"
    return json_bytes(body, status=status, headers=headers)


def _expected(request: Request) -> Callable[[HardwareProfile], None]:
    """Return what raises PreconditionFailed for a profile in another state than If-Match names."""

    def check(profile: HardwareProfile) -> None:
        check_match(request, {tag_of(dump_json(profile_out(profile)))}, "the profile")

    return check
