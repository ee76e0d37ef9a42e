# Made by `python -m tools.write_client`; what is changed here is lost.
"""What the blocking client is made of."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from sluice_client.answers import Job, JobEvent, Page
from sluice_client.calls import Answer, Call
from sluice_client.errors import InvalidRequest
from sluice_client.events import EventParser, job_event
from sluice_client.http import (
    DEFAULT_MEMORY_BYTES,
    DEFAULT_TIMEOUT_S,
    LIMITS,
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
from sluice_client.operations import storing
from sluice_client.retries import STREAM_ENDED, Pauses, Retry, RetryState
from sluice_client.table_files import TableFile

T = TypeVar("T")


class Core:
    """All of a client but the operations."""

    def __init__(
        self,
        address: str | None = None,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        retry: Retry | None = None,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        headers: Mapping[str, str] | None = None,
        key: str | None = None,
        http: httpx.Client | None = None,
    ) -> None:
        self._address = address_of(address)
        self._timeout_s = checked_timeout_s(timeout_s)
        self._retry = retry or Retry()
        self._memory = Memory(memory_bytes)
        self._headers = own_headers(key, headers)
        self._owns_http = http is None
        self._http = http or httpx.Client(limits=LIMITS)

    def send(self, call: Call[T]) -> T:
        """Send a call, again where that is safe, and read its answer.

        Errors have the identifier that the request was sent with as `request_id`.
        """
        request_id = self._request_id()
        with identified(request_id):
            answer = self._answer(call, request_id)
            return call.read(answer.check())

    def fetch_table(self, name: str, path: str | os.PathLike[str]) -> bool:
        """Keep a file equal to the profile's active table; whether it was replaced.

        The file is asked for by its digest and comes only if it is another one. It is validated,
        written beside, brought to the disk and renamed, so that a reader sees the old one or the
        new one. Raises InvalidTable for bytes that are no table file, OSError; the file then
        stays as it was.
        """
        file, request_id = TableFile.at(path), self._request_id()
        with identified(request_id):
            answer = self._answer(file.request(name), request_id)
            return file.take(answer)

    def wait_job(self, id: str, *, within_s: float | None = None) -> Job:
        """Return the job when it has ended. Raises DeadlineExceeded if it has not by then."""
        pauses = Pauses(within_s)
        while not (job := self.send(storing.job(id))).has_ended:
            time.sleep(pauses.next_s())
        return job

    def job_events(self, id: str) -> Iterator[JobEvent]:
        """Yield each change of a job, to its end; a connection that breaks is made again."""
        call, parser = storing.job_events(id), EventParser()
        state, request_id = self._retry_state(call), self._request_id()
        while True:
            try:
                known = {"Last-Event-ID": parser.last_id, REQUEST_ID: request_id}
                with self._open(call, state, known) as response:
                    if response.status_code != 200:
                        answer = answer_of(response, response.read())
                        with identified(request_id):
                            wait_s = state.after_refusal(answer)
                    else:
                        for piece in response.iter_bytes():
                            state = self._retry_state(call)
                            for name, data in parser.feed(piece):
                                event = job_event(name, data)
                                yield event
                                if event.job.has_ended:
                                    return
                        with identified(request_id):
                            wait_s = state.after_failure(STREAM_ENDED)
            except httpx.RequestError as error:
                with identified(request_id):
                    wait_s = state.after_failure(failure_of(error))
            parser = EventParser(parser.last_id)
            time.sleep(wait_s)

    def options(self, *, timeout_s: float | None = None, retry: Retry | None = None) -> Self:
        """Return the same client with other patience; connections and memory are shared."""
        other = copy.copy(self)
        if timeout_s is not None:
            other._timeout_s = checked_timeout_s(timeout_s)
        other._retry = retry or self._retry
        other._owns_http = False
        return other

    def close(self) -> None:
        """Close the connections."""
        if self._owns_http:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {shown_address(self._address)}>"

    def _pages(self, ask: Callable[[str | None], Call[Page[T]]], cursor: str | None) -> Iterator[T]:
        """All items of a list, page after page."""
        while True:
            page = self.send(ask(cursor))
            yield from page.items
            if page.next_cursor is None:
                return
            cursor = page.next_cursor

    def _request_id(self) -> str:
        """The caller's own where it has set one for all requests."""
        own = {name.lower(): value for name, value in self._headers.items()}
        return own.get(REQUEST_ID.lower()) or new_request_id()

    def _answer(self, call: Call[Any], request_id: str) -> Answer:
        stored = self._memory.get(call.target) if call.remembers else None
        known = {REQUEST_ID: request_id, **key_of(call, self._retry, self._headers)}
        if stored:
            known["If-None-Match"] = stored.headers["etag"]
        state = self._retry_state(call)
        while True:
            try:
                answer = self._attempt(call, state, known)
            except httpx.RequestError as error:
                time.sleep(state.after_failure(failure_of(error)))
                continue
            wait_s = state.after_answer(answer)
            if wait_s is None:
                return self._memory.take(call.target, answer, stored) if call.remembers else answer
            time.sleep(wait_s)

    def _attempt(self, call: Call[Any], state: RetryState, known: Mapping[str, str]) -> Answer:
        body = bytearray()
        with self._open(call, state, known) as response:
            for piece in response.iter_bytes():
                body += piece
                state.check()
        return answer_of(response, bytes(body))

    def _retry_state(self, call: Call[Any]) -> RetryState:
        return RetryState(call, self._retry, self._timeout_s)

    @contextmanager
    def _open(
        self, call: Call[Any], state: RetryState, headers: Mapping[str, str]
    ) -> Iterator[httpx.Response]:
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
        response = self._http.send(request, stream=True)
        with closing(response):
            yield response
