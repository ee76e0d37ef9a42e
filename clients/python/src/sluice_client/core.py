"""What both clients are made of: connections, attempts, waiting, files, jobs.

Written once, as coroutines; `connections.py` says how each client waits.
"""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, Generic, Self, TypeVar

import httpx

from sluice_client.calls import Answer, Call
from sluice_client.connections import Connections
from sluice_client.contract.jobs import JobOut
from sluice_client.errors import InvalidRequest
from sluice_client.events import EventParser, JobEvent, event_of, events_call
from sluice_client.http import (
    DEFAULT_MEMORY_BYTES,
    DEFAULT_TIMEOUT_S,
    REQUEST_ID,
    address_of,
    answer_of,
    checked_timeout_s,
    failure_of,
    headers_of,
    identified,
    key_of,
    new_request_id,
    own_headers,
    shown_address,
    timeout_of,
)
from sluice_client.memory import Memory
from sluice_client.methods import both, each_of_both
from sluice_client.operations import Operations
from sluice_client.retries import STREAM_ENDED, Pauses, Retry, RetryState
from sluice_client.table_files import TableFile

T = TypeVar("T")
HttpT = TypeVar("HttpT", httpx.Client, httpx.AsyncClient)


class Core(ABC, Operations, Generic[HttpT]):
    """All of a client but how it waits."""

    def __init__(
        self,
        address: str | None = None,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        retry: Retry | None = None,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        headers: Mapping[str, str] | None = None,
        key: str | None = None,
        http: HttpT | None = None,
    ) -> None:
        self._address = address_of(address)
        self._timeout_s = checked_timeout_s(timeout_s)
        self._retry = retry or Retry()
        self._memory = Memory(memory_bytes)
        self._headers = own_headers(key, headers)
        self._owns_http = http is None
        self._connections = self._connect(http)

    @staticmethod
    @abstractmethod
    def _connect(http: HttpT | None) -> Connections:
        """Return what waits for answers of this client of httpx, of a new one where None."""

    @both
    async def send(self, call: Call[T]) -> T:
        """Send a call, again where that is safe, and read its answer.

        Errors have the identifier that the request was sent with as `request_id`.
        """
        return await self._sent(call)

    @both
    async def fetch_table(self, name: str, path: str | os.PathLike[str]) -> bool:
        """Keep a file equal to the profile's active table; whether it was replaced.

        The file is asked for by its digest and comes only if it is another one. It is validated,
        written beside, brought to the disk and renamed, so that a reader sees the old one or the
        new one. Raises InvalidTable for bytes that are no table file, OSError; the file then
        stays as it was.
        """
        file, request_id = await self._connections.on_disk(TableFile.at, path), self._request_id()
        with identified(request_id):
            answer = await self._answer(file.request(name), request_id)
            return await self._connections.on_disk(file.take, answer)

    @both
    async def wait_job(self, id: str, *, within_s: float | None = None) -> JobOut:
        """Return the job when it has ended. Raises DeadlineExceeded if it has not by then."""
        pauses = Pauses(within_s)
        while not (job := await self._sent(Operations.job.build(id))).has_ended:
            await self._connections.pause(pauses.next_s())
        return job

    @each_of_both
    async def job_events(self, id: str) -> AsyncGenerator[JobEvent, None]:
        """Yield each change of a job, to its end; a connection that breaks is made again."""
        call, parser = events_call(id), EventParser()
        state, request_id = self._retry_state(call), self._request_id()
        while True:
            try:
                known = {"Last-Event-ID": parser.last_id, REQUEST_ID: request_id}
                async with self._open(call, state, known) as response:
                    if response.status_code != 200:
                        answer = answer_of(response, await self._body_of(response))
                        with identified(request_id):
                            wait_s = state.after_refusal(answer)
                    else:
                        async with aclosing(self._connections.pieces_of(response)) as pieces:
                            async for piece in pieces:
                                state = self._retry_state(call)
                                for name, data in parser.feed(piece):
                                    event = event_of(name, data)
                                    yield event
                                    if event.job.has_ended:
                                        return
                        with identified(request_id):
                            wait_s = state.after_failure(STREAM_ENDED)
            except httpx.RequestError as error:
                with identified(request_id):
                    wait_s = state.after_failure(failure_of(error))
            parser = EventParser(parser.last_id)
            await self._connections.pause(wait_s)

    def options(self, *, timeout_s: float | None = None, retry: Retry | None = None) -> Self:
        """Return the same client with other patience; connections and memory are shared."""
        other = copy.copy(self)
        if timeout_s is not None:
            other._timeout_s = checked_timeout_s(timeout_s)
        other._retry = retry or self._retry
        other._owns_http = False
        return other

    @both
    async def close(self) -> None:
        """Close the connections."""
        if self._owns_http:
            await self._connections.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {shown_address(self._address)}>"

    async def _sent(self, call: Call[T]) -> T:
        """Return what `send` does, as the coroutine that both clients do it by."""
        request_id = self._request_id()
        with identified(request_id):
            answer = await self._answer(call, request_id)
            return call.read(answer.check())

    def _request_id(self) -> str:
        """The caller's own where it has set one for all requests."""
        own = {name.lower(): value for name, value in self._headers.items()}
        return own.get(REQUEST_ID.lower()) or new_request_id()

    async def _answer(self, call: Call[Any], request_id: str) -> Answer:
        stored = self._memory.get(call.target) if call.remembers else None
        known = {REQUEST_ID: request_id, **key_of(call, self._retry, self._headers)}
        if stored:
            known["If-None-Match"] = stored.headers["etag"]
        state = self._retry_state(call)
        while True:
            try:
                answer = await self._attempt(call, state, known)
            except httpx.RequestError as error:
                await self._connections.pause(state.after_failure(failure_of(error)))
                continue
            wait_s = state.after_answer(answer)
            if wait_s is None:
                return self._memory.take(call.target, answer, stored) if call.remembers else answer
            await self._connections.pause(wait_s)

    async def _attempt(
        self, call: Call[Any], state: RetryState, known: Mapping[str, str]
    ) -> Answer:
        async with self._open(call, state, known) as response:
            body = await self._body_of(response, state)
        return answer_of(response, body)

    async def _body_of(self, response: httpx.Response, state: RetryState | None = None) -> bytes:
        """Return a whole body. Raises DeadlineExceeded where the time of the call is up."""
        body = bytearray()
        async with aclosing(self._connections.pieces_of(response)) as pieces:
            async for piece in pieces:
                body += piece
                if state is not None:
                    state.check()
        return bytes(body)

    def _retry_state(self, call: Call[Any]) -> RetryState:
        return RetryState(call, self._retry, self._timeout_s)

    @asynccontextmanager
    async def _open(
        self, call: Call[Any], state: RetryState, headers: Mapping[str, str]
    ) -> AsyncIterator[httpx.Response]:
        silence_s = state.begin_attempt()
        try:
            request = self._connections.build_request(
                call.method,
                self._address + call.target,
                content=call.content,
                headers=headers_of(own=self._headers, more={**call.headers, **headers}),
                timeout=timeout_of(silence_s, self._timeout_s),
            )
        except httpx.InvalidURL:
            raise InvalidRequest("expected an address and a path that make a URL") from None
        response = await self._connections.head_of(request)
        try:
            yield response
        finally:
            await self._connections.leave(response)
