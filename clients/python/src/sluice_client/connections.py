"""How a client waits: for the network, for time to pass, for the disk; once blocking, once not.

What both clients do is written once, in `core.py`, as coroutines. Those of a blocking client never
suspend, since all that they wait for has happened when it returns: `finish` runs them to their end
without an event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping
from typing import Any, ParamSpec, Protocol, TypeVar

import httpx

P = ParamSpec("P")
T = TypeVar("T")


class Connections(Protocol):
    """A client of httpx, and what else there is to wait for."""

    def build_request(
        self,
        method: str,
        url: str,
        *,
        content: bytes | None,
        headers: Mapping[str, str],
        timeout: httpx.Timeout,
    ) -> httpx.Request:
        """Return a request of this client of httpx."""

    async def head_of(self, request: httpx.Request) -> httpx.Response:
        """Send a request; return its answer before its body has come."""

    def pieces_of(self, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        """Yield a body as it comes."""

    async def leave(self, response: httpx.Response) -> None:
        """Give the connection of an answer back."""

    async def pause(self, seconds: float) -> None:
        """Wait for so long."""

    async def on_disk(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what this work of reading and writing files gives."""

    async def close(self) -> None:
        """Close the connections."""


class Blocking:
    """Connections that are waited for in the thread that asks."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        self.build_request = http.build_request

    async def head_of(self, request: httpx.Request) -> httpx.Response:
        return self._http.send(request, stream=True)

    async def pieces_of(self, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        for piece in response.iter_bytes():
            yield piece

    async def leave(self, response: httpx.Response) -> None:
        response.close()

    async def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    async def on_disk(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return work(*args, **kwargs)

    async def close(self) -> None:
        self._http.close()


class Waiting:
    """Connections that an event loop of asyncio waits for."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self.build_request = http.build_request

    async def head_of(self, request: httpx.Request) -> httpx.Response:
        return await self._http.send(request, stream=True)

    async def pieces_of(self, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        async for piece in response.aiter_bytes():
            yield piece

    async def leave(self, response: httpx.Response) -> None:
        await response.aclose()

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def on_disk(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(work, *args, **kwargs)

    async def close(self) -> None:
        await self._http.aclose()


def finish(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine gives that never suspends."""
    try:
        work.send(None)
    except StopIteration as ended:
        given: T = ended.value
        return given
    work.close()
    raise AssertionError("a blocking client has nothing to suspend for")


def finish_each(items: AsyncGenerator[T, None]) -> Iterator[T]:
    """Yield what an asynchronous generator yields that never suspends."""
    try:
        while True:
            try:
                item = finish(items.__anext__())
            except StopAsyncIteration:
                return
            yield item
    finally:
        finish(items.aclose())
