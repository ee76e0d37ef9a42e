"""Where the answer to a question can be seen: at once, or where its job is watched."""

from __future__ import annotations

import asyncio

from fastapi import Request

import solvers
from app.deps import gone, service_of
from app.flows.durable_jobs import JobKind
from app.schemas.base import read_output
from app.schemas.optimize import OptimizeOut
from app.web.input_form import Asked
from app.web.views.jobs import job_address

WAIT_S = 2.0  # for an answer, before it becomes a job that the browser watches


async def answer_address(request: Request, asked: Asked) -> str:
    """The address of the answer, or of the job that will have it. Raises what solving does."""
    service = service_of(request)
    prepared = await service.call(lambda: service.prepare(asked.question))
    if solvers.is_quick(prepared.problem, asked.question.strategy):
        try:
            async with asyncio.timeout(WAIT_S):
                body = await service.optimize(asked.question, gone(request))
                return f"/ui/answers/{read_output(OptimizeOut, body).id}"
        except TimeoutError:
            pass
    job = await service.start_job(JobKind.OPTIMIZE, lambda: asked.given.as_job(prepared))
    return job_address(job)
