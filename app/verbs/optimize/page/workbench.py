"""The workbench: where a pipeline, a profile or a trace goes in."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial

from fastapi import Request, Response

from app.errors import kind_of
from app.http.dependencies import client_of, own_router, service_of
from app.questions.profiles import get_revision, list_profiles
from app.questions.transfers import TransfersQuestion, TransfersWork
from app.schemas.transfers import transfer_facts, transfers_out
from app.ui.html import as_html
from app.ui.pages import moved, page, says_refusals
from app.ui.panel.asking import answer_address, operation_of, quick_answer
from app.ui.panel.choices import FIRST_EXAMPLE, FIRST_RELATIVE, kept_of
from app.ui.panel.form import InvalidForm, asked_of, change_of, changed
from app.ui.panel.page import panel_page
from app.ui.panel.request import request_of, transfers_asked
from app.ui.panel.state import InputSource, InputState
from app.ui.transfers import sizes_grid
from app.verbs.optimize.page.answer import answer_page
from app.web.fitted import with_message
from app.web.forms import read_form
from app.web.pasted import fit_of_entry
from contract.limits import MAX_ASKED_ROWS
from domain.errors import InvalidInput, Overloaded, SluiceError, UnitMismatch
from domain.pipeline import Pipeline
from domain.profile import ProfileReference
from domain.units import parse_bytes
from fitting.own_transfers import is_own_transfers
from models.identifiers import IDENTIFIER

router = own_router(include_in_schema=False)

MAX_NAMES = 500


@router.get("/")
@says_refusals
async def workbench(request: Request) -> Response:
    """Show the workbench: with an example solved, or filled in with one, or with a stored profile,
    or empty.
    """
    given = request.query_params
    if not any(name in given for name in ("example", "profile", "bytes", "empty")):
        return await _first_view(request)
    entry = InputState.of_example(given["example"]) if "example" in given else InputState.empty()
    if "profile" in given:
        entry = await _of_profile(request, given["profile"])
    if "bytes" in given:
        entry = _with_message(entry, given["bytes"])
    entry = entry.keeping(kept_of(given))
    return panel_page(request, "workbench.html", entry, section="Workbench")


async def _first_view(request: Request) -> Response:
    """Show the first example with its answer; filled in where it cannot be had at once."""
    first = replace(InputState.of_example(FIRST_EXAMPLE), relative=FIRST_RELATIVE)
    entry = first.keeping(kept_of(request.query_params))
    with suppress(SluiceError, InvalidForm):
        found = await quick_answer(request, await operation_of(request, asked_of(entry)))
        if found is not None:
            return await answer_page(request, found.rpartition("/")[2], entry.units)
    return panel_page(request, "workbench.html", entry, section="Workbench")


@router.get("/ui/parts/profiles")
@says_refusals
async def profile_names(request: Request) -> Response:
    """Show the names of stored profiles, for the panel to offer."""
    service = service_of(request)
    found = await service.call(lambda: list_profiles(service.context.store, limit=MAX_NAMES))
    names = [profile.name for profile in found.profiles]
    return page(request, "input_profiles.html", names=names)


@router.post("/ui/optimize")
@says_refusals
async def optimize(request: Request) -> Response:
    """Answer what the panel asks, or show what is wrong with it."""
    pairs = await read_form(request)
    entry = InputState.of_form(pairs)
    if change := change_of(pairs):
        return await _panel(request, changed(entry, change))
    if entry.source is InputSource.TRACE and is_own_transfers(entry.trace):
        return await _transfers(request, entry)
    try:
        return moved(request, await _outcome(request, entry, _last(pairs)))
    except InvalidForm as refusal:
        return await _panel(request, refusal.entry, status=422)


async def _transfers(request: Request, entry: InputState) -> Response:
    """Show what own transfers decide; nothing is solved or stored, so that there is no address."""
    message_bytes, current_bytes, mistakes = transfers_asked(entry)
    if mistakes:
        return await _panel(request, entry.with_mistakes(mistakes), status=422)
    question = TransfersQuestion(entry.trace, message_bytes, current_bytes)
    service = service_of(request)
    try:
        decided = await service.read(TransfersWork(question, MAX_ASKED_ROWS), client_of(request))
        found = await service.call(lambda: transfers_out(decided))
    except InvalidInput as refusal:
        return await _panel(request, entry.with_mistakes({"trace": refusal.detail}), status=422)
    return panel_page(
        request,
        "transfers.html",
        entry,
        section="Workbench",
        found=found,
        facts=tuple(transfer_facts(found)),
        sizes=as_html([sizes_grid(found)] if found.sizes else []),
    )


@router.get("/ui/optimize")
async def asked_again(request: Request) -> Response:
    """Lead back to the panel: a browser with mistakes shown may load its address again."""
    return moved(request, "/")


def _last(pairs: list[tuple[str, str]]) -> str:
    """Return the answer beside which this was asked, "" where there was none."""
    given = next((value for name, value in reversed(pairs) if name == "last"), "")
    return given if IDENTIFIER.fullmatch(given) else ""


async def _outcome(request: Request, entry: InputState, last: str) -> str:
    if entry.source is InputSource.TRACE:
        return await fit_of_entry(request, entry) + with_message(entry.message, entry.current)
    make = partial(asked_of, entry)
    asked = await service_of(request).call(make) if entry.asks_items else make()
    try:
        return entry.units.after(last).onto(await answer_address(request, asked))
    except SluiceError as refusal:
        if isinstance(refusal, Overloaded) or kind_of(refusal.code).status >= 500:
            raise
        raise InvalidForm(entry.with_mistakes(request_of(entry).mistakes_in(refusal))) from None


async def _of_profile(request: Request, reference: str) -> InputState:
    service = service_of(request)
    wanted = ProfileReference.parse(reference)
    revision = await service.call(lambda: get_revision(service.context.store, wanted))
    entry = InputState.empty()
    if isinstance(revision.model, Pipeline):
        entry = entry.with_pipeline(revision.model)
    return entry.with_profile(reference)


def _with_message(entry: InputState, text: str) -> InputState:
    given = replace(entry, message=text[:40])
    try:
        parse_bytes(text)
    except UnitMismatch as refusal:
        return given.with_mistakes({"message": refusal.detail})
    return given


async def _panel(request: Request, entry: InputState, *, status: int = 200) -> Response:
    """Show the panel as it was sent. Thousands of rows take a while, so a thread renders it."""
    make = partial(panel_page, request, "workbench.html", entry, status=status, section="Workbench")
    return await service_of(request).call(make)
