"""Where the answer to a question can be seen: at once, or where its job is watched."""

from __future__ import annotations

import asyncio
from functools import partial

from fastapi import Request

from app.deps import client_of, service_of
from app.operations.optimize import optimize_operation
from app.schemas.base import read_output
from app.schemas.optimize import OptimizeOut
from app.web.input_form import Asked
from app.web.views.jobs import job_address

WAIT_S = 2.0  # for an answer, before it becomes a job that the browser watches


async def answer_address(request: Request, asked: Asked) -> str:
    """The address of the answer, or of the job that will have it. Raises what solving does."""
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
