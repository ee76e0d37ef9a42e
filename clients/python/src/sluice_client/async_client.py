"""The asynchronous client, for asyncio."""

from __future__ import annotations

import asyncio
import copy
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import aclosing, asynccontextmanager
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

import httpx

from sluice_client.answers import Job, JobEvent, Page
from sluice_client.calls import Answer, Call
from sluice_client.errors import InvalidRequest
from sluice_client.events import EventParser, job_event
from sluice_client.http import (
    DEFAULT_ADDRESS,
    DEFAULT_MEMORY_BYTES,
    DEFAULT_TIMEOUT_S,
    LIMITS,
    answer_of,
    checked_address,
    checked_timeout_s,
    failure_of,
    headers_of,
    timeout_of,
)
from sluice_client.memory import Memory
from sluice_client.method import dress
from sluice_client.operations import (
    exporting,
    hiding,
    measuring,
    messaging,
    service,
    solving,
    storing,
)
from sluice_client.retries import STREAM_ENDED, Pauses, Retry, RetryState
from sluice_client.table_files import TableFile

P = ParamSpec("P")
T = TypeVar("T")


def _method(
    build: Callable[P, Call[T]],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """The operation as a method that sends it and waits for its answer."""

    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.send(build(*args, **kwargs))

    dress(method, build, "AsyncClient")
    return method


def _each(
    build: Callable[P, Call[Page[T]]],
) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[T]]:
    """All items of a list, page after page, from `cursor` on; `limit` is the length of a page."""

    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        while True:
            page = await self.send(build(*args, **kwargs))
            for item in page.items:
                yield item
            if page.next_cursor is None:
                return
            kwargs["cursor"] = page.next_cursor

    dress(method, build, "AsyncClient", is_list=True)
    return method


class AsyncClient:
    """The operations of a Sluice service, one method each to wait for.

    All tasks of one event loop may share a client. The arguments are those of Client, but for
    `http`, which is an asynchronous client of httpx. Raises SluiceClientError and what is below
    it.
    """

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        retry: Retry | None = None,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        headers: Mapping[str, str] | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._address = checked_address(address)
        self._timeout_s = checked_timeout_s(timeout_s)
        self._retry = retry or Retry()
        self._memory = Memory(memory_bytes)
        self._headers = dict(headers or {})
        self._owns_http = http is None
        self._http = http or httpx.AsyncClient(limits=LIMITS)

    optimize = _method(solving.optimize)
    start_optimize = _method(solving.start_optimize)
    optimization = _method(solving.optimization)
    explanation = _method(solving.explanation)
    optimizations = _method(solving.optimizations)
    each_optimization = _each(solving.optimizations)
    compare = _method(solving.compare)
    start_compare = _method(solving.start_compare)
    simulate = _method(solving.simulate)
    thresholds = _method(solving.thresholds)
    start_thresholds = _method(solving.start_thresholds)
    hide = _method(hiding.hide)
    start_hide = _method(hiding.start_hide)
    hidden = _method(hiding.hidden)
    schedule = _method(solving.schedule)

    fit = _method(measuring.fit)
    fit_together = _method(measuring.fit_together)
    compose = _method(measuring.compose)
    stored_fit = _method(measuring.stored_fit)
    fit_plot = _method(measuring.fit_plot)
    trace = _method(measuring.trace)
    plan_measurements = _method(measuring.plan_measurements)

    profiles = _method(storing.profiles)
    each_profile = _each(storing.profiles)
    profile = _method(storing.profile)
    create_profile = _method(storing.create_profile)
    revise_profile = _method(storing.revise_profile)
    delete_profile = _method(storing.delete_profile)
    revisions = _method(storing.revisions)
    set_current = _method(storing.set_current)
    verify = _method(storing.verify)

    compile_table = _method(storing.compile_table)
    start_compile_table = _method(storing.start_compile_table)
    tables = _method(storing.tables)
    each_table = _each(storing.tables)
    table = _method(storing.table)
    table_file = _method(storing.table_file)
    table_twin = _method(storing.table_twin)
    active_table = _method(storing.active_table)
    active_table_file = _method(storing.active_table_file)
    activate_table = _method(storing.activate_table)

    export_targets = _method(exporting.export_targets)
    export = _method(exporting.export)
    start_export = _method(exporting.start_export)
    audit = _method(exporting.audit)
    start_audit = _method(exporting.start_audit)
    layers = _method(messaging.layers)
    layer = _method(messaging.layer)
    layer_costs = _method(messaging.layer_costs)
    start_layer_costs = _method(messaging.start_layer_costs)

    job = _method(storing.job)
    cancel_job = _method(storing.cancel_job)

    limits = _method(service.limits)
    is_alive = _method(service.is_alive)
    readiness = _method(service.readiness)
    metrics = _method(service.metrics)
    request = _method(service.request)

    async def send(self, call: Call[T]) -> T:
        """Send a call, again where that is safe, and read its answer."""
        return call.read((await self._answer(call)).check())

    async def fetch_table(self, name: str, path: str | os.PathLike[str]) -> bool:
        """Keep a file equal to the profile's active table; whether it was replaced.

        The file is asked for by its digest and comes only if it is another one. It is validated,
        written beside, brought to the disk and renamed, so that a reader sees the old one or the
        new one. Raises InvalidTable for bytes that are no table file, OSError; the file then
        stays as it was.
        """
        file = await asyncio.to_thread(TableFile.at, path)
        answer = await self._answer(file.request(name))
        return await asyncio.to_thread(file.take, answer)

    async def wait_job(self, id: str, *, within_s: float | None = None) -> Job:
        """Return the job when it has ended. Raises DeadlineExceeded if it has not by then."""
        pauses = Pauses(within_s)
        while not (job := await self.send(storing.job(id))).has_ended:
            await asyncio.sleep(pauses.next_s())
        return job

    async def job_events(self, id: str) -> AsyncIterator[JobEvent]:
        """Yield each change of a job, to its end; a connection that breaks is made again."""
        call, parser = storing.job_events(id), EventParser()
        state = self._retry_state(call)
        while True:
            try:
                async with self._open(call, state, {"Last-Event-ID": parser.last_id}) as response:
                    if response.status_code != 200:
                        answer = answer_of(response, await response.aread())
                        wait_s = state.after_refusal(answer)
                    else:
                        async for piece in response.aiter_bytes():
                            state = self._retry_state(call)
                            for name, data in parser.feed(piece):
                                event = job_event(name, data)
                                yield event
                                if event.job.has_ended:
                                    return
                        wait_s = state.after_failure(STREAM_ENDED)
            except httpx.RequestError as error:
                wait_s = state.after_failure(failure_of(error))
            parser = EventParser(parser.last_id)
            await asyncio.sleep(wait_s)

    def options(self, *, timeout_s: float | None = None, retry: Retry | None = None) -> AsyncClient:
        """Return the same client with other patience; connections and memory are shared."""
        other = copy.copy(self)
        if timeout_s is not None:
            other._timeout_s = checked_timeout_s(timeout_s)
        other._retry = retry or self._retry
        other._owns_http = False
        return other

    async def close(self) -> None:
        """Close the connections."""
        if self._owns_http:
            await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _answer(self, call: Call[Any]) -> Answer:
        stored = self._memory.get(call.target) if call.remembers else None
        state = self._retry_state(call)
        while True:
            try:
                answer = await self._attempt(call, state, stored)
            except httpx.RequestError as error:
                await asyncio.sleep(state.after_failure(failure_of(error)))
                continue
            wait_s = state.after_answer(answer)
            if wait_s is None:
                return self._memory.take(call.target, answer, stored) if call.remembers else answer
            await asyncio.sleep(wait_s)

    async def _attempt(self, call: Call[Any], state: RetryState, stored: Answer | None) -> Answer:
        body = bytearray()
        known = {"If-None-Match": stored.headers["etag"]} if stored else {}
        async with self._open(call, state, known) as response:
            async for piece in response.aiter_bytes():
                body += piece
                state.check()
        return answer_of(response, bytes(body))

    def _retry_state(self, call: Call[Any]) -> RetryState:
        return RetryState(call, self._retry, self._timeout_s)

    @asynccontextmanager
    async def _open(
        self, call: Call[Any], state: RetryState, headers: Mapping[str, str]
    ) -> AsyncIterator[httpx.Response]:
        silence_s = state.begin_attempt()
        try:
            request = self._http.build_request(
                call.method,
                self._address + call.target,
                content=call.content,
                headers=headers_of(own=self._headers, more={**call.headers, **headers}),
                timeout=timeout_of(silence_s, self._timeout_s),
            )
        except httpx.InvalidURL:
            raise InvalidRequest("expected an address and a path that make a URL") from None
        response = await self._http.send(request, stream=True)
        async with aclosing(response):
            yield response
