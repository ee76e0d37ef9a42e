"""The clients: one that blocks, and one for asyncio."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from sluice_client.connections import Blocking, Connections, Waiting, finish, finish_each
from sluice_client.core import Core
from sluice_client.http import LIMITS

T = TypeVar("T")


class Client(Core[httpx.Client]):
    """The operations of a Sluice service, one method each; threads may share a client.

    `address` is that of SLUICE_URL where none is given, and http://localhost:8080 without that.
    `timeout_s` is how long the service may be silent beyond what an operation takes by itself;
    `retry` says how often and how long a call is tried; up to `memory_bytes` of answers are kept
    by their ETag; `headers` go with every request. `key` says who asks, where the service wants to
    know it; it is that of SLUICE_KEY where none is given. `http` is for certificates, proxies and
    the like: a client of httpx that stays the caller's to close. Raises SluiceClientError and what
    is below it.
    """

    @staticmethod
    def _connect(http: httpx.Client | None) -> Connections:
        """Return connections that are waited for in the thread that asks."""
        return Blocking(http or httpx.Client(limits=LIMITS))

    @staticmethod
    def _finish(work: Coroutine[Any, Any, T]) -> T:
        """Return what a method gives."""
        return finish(work)

    @staticmethod
    def _finish_each(items: AsyncGenerator[T, None]) -> Iterator[T]:
        """Yield what a method yields."""
        return finish_each(items)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncClient(Core[httpx.AsyncClient]):
    """The operations of a Sluice service, one method each to wait for.

    All tasks of one event loop may share a client. The arguments are those of Client, but for
    `http`, which is an asynchronous client of httpx. Raises SluiceClientError and what is below
    it.
    """

    @staticmethod
    def _connect(http: httpx.AsyncClient | None) -> Connections:
        """Return connections that an event loop waits for."""
        return Waiting(http or httpx.AsyncClient(limits=LIMITS))

    @staticmethod
    def _finish(work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        """Return what is to be waited for."""
        return work

    @staticmethod
    def _finish_each(items: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        """Return what is to be waited for, one after the other."""
        return items

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
