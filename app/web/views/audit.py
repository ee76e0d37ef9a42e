"""Audits of existing settings: the form, and the result as a part of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request, Response

from app.audit_apart import AuditApart
from app.deps import gone, service_of
from app.errors import Overloaded, kind_of
from app.flows.audit_setting import audit_question
from app.flows.profiles import list_profiles
from app.schemas.audit import AuditIn, render_audit
from app.web.input_form import read_form
from app.web.pages import is_htmx, moved, page
from app.web.refusals import says_refusals
from app.web.views.audit_form import MAX_ADDRESS, AuditForm
from app.web.views.audit_view import AuditView
from domain.errors import Cancelled, SluiceError

router = APIRouter(include_in_schema=False)

SECTION = "Audit"
PLACE = "/ui/audit"
RESULT = f"{PLACE}/result"
MOST_NAMES = 200


@router.get(PLACE)
@says_refusals
async def audit(request: Request) -> Response:
    """The form; where the address has a setting, also a place for its result."""
    form = AuditForm.of(request.query_params.multi_items())
    return await _form_page(request, form, is_in_address=True)


@router.post(PLACE)
@says_refusals
async def ask(request: Request) -> Response:
    """To the address of the result; what is too long for one is audited from the form."""
    form = AuditForm.of(await read_form(request))
    asked, marked = form.asked()
    query = form.query()
    if asked is not None and len(query) <= MAX_ADDRESS:
        return moved(request, f"{PLACE}?{query}")
    return await _form_page(request, marked, is_in_address=False)


@router.get(RESULT)
@says_refusals
async def result(request: Request) -> Response:
    """The result of what the address asks."""
    return await _result(request, AuditForm.of(request.query_params.multi_items()))


@router.post(RESULT)
@says_refusals
async def long_result(request: Request) -> Response:
    """The result of what a form asks that is too long for an address."""
    return await _result(request, AuditForm.of(await read_form(request)))


async def _form_page(request: Request, form: AuditForm, *, is_in_address: bool) -> Response:
    asked = None
    if form.is_asked or not is_in_address:
        asked, form = form.asked()
    service = service_of(request)
    known = await service.call(lambda: list_profiles(service.context.store, limit=MOST_NAMES))
    return page(
        request,
        "audit.html",
        status=422 if form.mistakes else 200,
        section=SECTION,
        form=form,
        names=[profile.name for profile in known.profiles],
        result_address=f"{RESULT}?{form.query()}" if is_in_address else "",
        is_asked=asked is not None,
    )


async def _result(request: Request, form: AuditForm) -> Response:
    asked, form = form.asked()
    if asked is None:
        return _shown(request, {"view": None, "form": form}, status=422)
    try:
        document = json.loads(await _audited(request, asked))
    except (Cancelled, Overloaded):
        raise
    except SluiceError as refusal:
        status = kind_of(refusal.code).status
        return _shown(request, {"view": None, "form": form.refused(refusal)}, status=status)
    return _shown(request, {"view": AuditView.of(document), "form": form}, status=200)


def _shown(request: Request, values: Mapping[str, Any], *, status: int) -> Response:
    template = "audit_result.html" if is_htmx(request) else "audit_alone.html"
    return page(request, template, status=status, section=SECTION, **values)


async def _audited(request: Request, asked: AuditIn) -> bytes:
    """The audit, in a process of its own as POST /audit does it."""
    service = service_of(request)
    settings = service.context.settings
    question = asked.to_question()
    prepared = await service.call(lambda: service.prepare(question))
    wanted = audit_question(prepared, asked.to_domain(), fragment_cap=settings.max_fragments)
    child = AuditApart(wanted, memory_bytes=settings.worker_memory_bytes)
    return render_audit(await service.apart(child, gone(request)))
