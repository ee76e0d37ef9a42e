"""How pages ask for an answer: at once where it is quick, and else as a job that is watched."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from fastapi import Request

from app.http.dependencies import client_of, service_of
from app.operations.optimize import Optimize, optimize_operation
from app.schemas.optimize import optimize_out, read_answer
from app.schemas.source import as_job
from app.web.forms import ValidRequest
from contract.optimize import OptimizeOut
from models.records import JobRecord

T = TypeVar("T")

WAIT_S = 2.0  # for an answer, before it becomes a job that the browser watches


async def operation_of(request: Request, asked: ValidRequest) -> Optimize:
    """Return the operation that answers. Raises what its preparation does."""
    service = service_of(request)
    settings = service.context.settings
    make = partial(
        optimize_operation, asked.question, partial(as_job, asked.given), settings=settings
    )
    return await service.prepare(make, client_of(request))


async def quick_answer(request: Request, operation: Optimize) -> str | None:
    """Return the answer's address, None where it takes long. Raises what solving does."""
    service, client = service_of(request), client_of(request)
    body = await _quickly(operation, lambda: service.optimize(lambda _: operation, client))
    return None if body is None else f"/ui/answers/{read_answer(body).id}"


async def passing_answer(request: Request, operation: Optimize) -> OptimizeOut | None:
    """Return an answer that is stored nowhere, None where it takes long. Raises as solving does."""
    service, client = service_of(request), client_of(request)
    found = await _quickly(operation, lambda: service.run(operation, client))
    return None if found is None else optimize_out(operation.answer(found))


async def _quickly(operation: Optimize, act: Callable[[], Awaitable[T]]) -> T | None:
    if operation.is_quick:
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_S):
                return await act()
    return None


async def answer_address(request: Request, asked: ValidRequest) -> str:
    """Return the address of the answer, or of its job. Raises what solving does."""
    operation = await operation_of(request, asked)
    found = await quick_answer(request, operation)
    return found or job_address(
        await service_of(request).start_job(lambda _: operation, client_of(request))
    )


def job_address(job: JobRecord) -> str:
    """Return the page of a job that was asked for, which leads on to the answer."""
    return f"/ui/jobs/{job.id}?follow=1"
