"""A job while it runs and afterwards: state, best so far, the bound on it, and Cancel."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.deps import service_of
from app.flows.durable_jobs import get_job
from app.web.pages import moved, page
from app.web.refusals import says_refusals
from app.web.views.job_view import JobView, entry_of
from models.records import JobRecord, JobState

router = APIRouter(include_in_schema=False)


def job_address(job: JobRecord) -> str:
    """Where somebody is sent who has asked for this job: its page, and on to the answer."""
    return f"/ui/jobs/{job.id}?follow=1"


@router.get("/ui/jobs/{id}")
@says_refusals
async def job(request: Request, id: str, follow: Annotated[str, Query()] = "") -> Response:
    """The job as it stands. With `follow` a job that is done leads on to its answer."""
    service = service_of(request)
    found = await service.call(lambda: get_job(service.context.store, id))
    if follow and found.state is JobState.DONE and found.answer_id is not None:
        return moved(request, f"/ui/answers/{found.answer_id}")

    def made() -> Response:
        view, entry = JobView.of(found), entry_of(found)
        return page(request, "job.html", section="Workbench", job=view, entry=entry)

    return await service.call(made)


@router.post("/ui/jobs/{id}/cancel")
@says_refusals
async def cancel(request: Request, id: str) -> Response:
    """Stop the job; its page says when it has stopped. The best answer so far is kept."""
    found = await service_of(request).cancel_job(id)
    return moved(request, f"/ui/jobs/{found.id}")
