"""Pages of durable jobs: a job while it runs and afterwards, and where its answer is."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.http.dependencies import client_of, service_of
from app.jobs.ledger import get_job
from app.operations.operation import OperationKind
from app.operations.optimize import optimize_operation
from app.schemas.base import read_output
from app.schemas.optimize import OptimizeOut
from app.web.audits.form import panel_page
from app.web.forms import sent_fields
from app.web.jobs.view import SECTIONS, WORKS, JobView, entry_of, place_of
from app.web.jobs.work import WorkView
from app.web.pages import has_own_place, is_htmx, moved, page, says_refusals
from app.web.workbench.choices import ShownUnits
from app.web.workbench.form import ValidRequest
from models.records import JobRecord, JobState

WAIT_S = 2.0  # for an answer, before it becomes a job that the browser watches


async def answer_address(request: Request, asked: ValidRequest) -> str:
    """Return the address of the answer, or of its job. Raises what solving does."""
    service = service_of(request)
    make = partial(
        optimize_operation,
        asked.question,
        asked.given.as_job,
        settings=service.context.settings,
    )
    operation = await service.prepare(make)
    if operation.is_quick:
        try:
            async with asyncio.timeout(WAIT_S):
                body = await service.optimize(lambda _: operation, client_of(request))
                return f"/ui/answers/{read_output(OptimizeOut, body).id}"
        except TimeoutError:
            pass
    return job_address(await service.start_job(lambda _: operation))


# --- routes ---------------------------------------------------------------------------------------


router = APIRouter(include_in_schema=False)

OWN = re.compile(r"/ui/[^\x00-\x20\\]{1,8000}", re.ASCII)


def job_address(job: JobRecord) -> str:
    """Return the page of a job that was asked for, which leads on to the answer."""
    return f"/ui/jobs/{job.id}?follow=1"


@router.get("/ui/jobs/{id}")
@says_refusals
async def job(request: Request, id: str, follow: Annotated[str, Query()] = "") -> Response:
    """Show the job as it stands. With `follow` a job that is done leads on to its answer.

    The question is shown in the units of the address, and so is the answer's.
    """
    service, units = service_of(request), ShownUnits.of(request.query_params)
    found = await service.call(lambda: get_job(service.context.store, id))
    is_done = follow and found.state is JobState.DONE
    if is_done and found.answer_id is not None:
        return moved(request, units.onto(f"/ui/answers/{found.answer_id}"))
    if found.kind in WORKS:
        place = place_of(found)
        if is_done:
            return moved(request, place.result)
        view = WorkView.of(found, place)
        return page(
            request, "job_work.html", section=SECTIONS[OperationKind(found.kind)], work=view
        )

    def made() -> Response:
        view, entry = JobView.of(found), entry_of(found).in_units(units)
        return panel_page(request, "job.html", entry, section="Workbench", job=view, units=units)

    return await service.call(made)


@router.post("/ui/jobs/{id}/cancel")
@says_refusals
async def cancel(request: Request, id: str) -> Response:
    """Stop the job; its page shows when it has stopped.

    The best answer of a solve so far is kept.
    """
    sent = await sent_fields(request)
    found = await service_of(request).cancel_job(id)
    if is_htmx(request) and not has_own_place(request):
        return Response(status_code=204)  # the part that asked follows the job, and sees its end
    back = sent.get("back", "")
    return moved(request, back if OWN.fullmatch(back) else f"/ui/jobs/{found.id}")
