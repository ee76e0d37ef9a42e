"""Both Python clients behind one face, so that each test is of both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from inspect import isawaitable
from typing import Any

from sluice_client import AsyncClient, Client

KINDS = ("blocking", "asynchronous")


class Awaited:
    """The asynchronous client with an event loop: methods wait, iterators are plain ones."""

    def __init__(self, client: AsyncClient, loop: asyncio.AbstractEventLoop) -> None:
        self._client, self._loop = client, loop

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            made = method(*args, **kwargs)
            if isawaitable(made):
                return self._loop.run_until_complete(made)
            if isinstance(made, AsyncIterator):
                return self._items(made)
            return Awaited(made, self._loop) if isinstance(made, AsyncClient) else made

        return call

    def _items(self, items: AsyncIterator[Any]) -> Iterator[Any]:
        while True:
            try:
                yield self._loop.run_until_complete(anext(items))
            except StopAsyncIteration:
                return


@contextmanager
def opened(kind: str, address: str, **settings: Any) -> Iterator[Any]:
    """A client of this kind, closed at the end."""
    if kind == "blocking":
        with Client(address, **settings) as client:
            yield client
        return
    with asyncio.Runner() as runner:
        client = AsyncClient(address, **settings)
        yield Awaited(client, runner.get_loop())
        runner.run(client.close())
