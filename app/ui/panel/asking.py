"""What the input panel asks, answered: at once where it is quick, else by a job that is watched."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from fastapi import Request

from app.http.dependencies import client_of, service_of
from app.registry import VERBS
from app.schemas.answers import read_answer
from contract.optimize import OptimizeIn, OptimizeOut
from models.records import JobRecord

WAIT_S = 2.0  # for an answer, before it becomes a job that the browser watches

T = TypeVar("T")


async def operation_of(request: Request, asked: OptimizeIn) -> Any:
    """Return the operation that answers. Raises what its preparation does."""
    service = service_of(request)
    operation = VERBS["optimize"].module("operation").operation
    make = partial(operation, asked, settings=service.context.settings)
    return await service.prepare(make, client_of(request))


async def quick_answer(request: Request, operation: Any) -> str | None:
    """Return the answer's address, None where it takes long. Raises what solving does."""
    service, client = service_of(request), client_of(request)
    body = await _quickly(operation, lambda: service.optimize(lambda _: operation, client))
    return None if body is None else f"/ui/answers/{read_answer(body, items=True).id}"


async def passing_answer(request: Request, operation: Any) -> OptimizeOut | None:
    """Return an answer that is stored nowhere, None where it takes long. Raises as solving does."""
    service, client = service_of(request), client_of(request)
    found = await _quickly(operation, lambda: service.run(operation, client))
    return None if found is None else operation.document(found)


async def _quickly(operation: Any, act: Callable[[], Awaitable[T]]) -> T | None:
    if operation.is_quick:
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_S):
                return await act()
    return None


async def answer_address(request: Request, asked: OptimizeIn) -> str:
    """Return the address of the answer, or of its job. Raises what solving does."""
    operation = await operation_of(request, asked)
    found = await quick_answer(request, operation)
    return found or job_address(
        await service_of(request).start_job(lambda _: operation, client_of(request))
    )


def job_address(job: JobRecord) -> str:
    """Return the page of a job that was asked for, which leads on to the answer."""
    return f"/ui/jobs/{job.id}?follow=1"
