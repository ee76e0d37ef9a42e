"""The application without a server and without threads, for a profiler that sees one thread.

The event loop runs what the application hands to worker threads at once, in its own thread. Times
are therefore those of the work alone: no sockets, no hop between threads.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple, Unpack

from app.main import create_app
from app.settings import Settings

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")
Ask = Callable[[str, str, bytes], tuple[int, bytes]]


class _InlineLoop(asyncio.SelectorEventLoop):
    def run_in_executor(
        self,
        executor: Executor | None,
        func: Callable[[Unpack[Arguments]], T],
        *args: *Arguments,
    ) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def application() -> Iterator[Ask]:
    """A function (method, path, body) -> (status, body) of the application on an empty SQLite."""
    loop = _InlineLoop()
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        app: Any = create_app(Settings(database_url=f"sqlite:///{Path(folder, 'bench.db')}"))
        context = app.router.lifespan_context(app)
        loop.run_until_complete(context.__aenter__())
        try:
            yield lambda method, path, body: loop.run_until_complete(_ask(app, method, path, body))
        finally:
            loop.run_until_complete(context.__aexit__(None, None, None))
            loop.close()


async def _ask(app: Any, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    inbox: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]
    outbox: list[Any] = []

    async def receive() -> dict[str, Any]:
        if inbox:
            return inbox.pop()
        await asyncio.Event().wait()  # the client stays
        raise AssertionError("never set")

    async def send(message: Any) -> None:
        outbox.append(message)

    await app(_scope(app, method, path, len(body)), receive, send)
    answer = b"".join(message.get("body", b"") for message in outbox[1:])
    return outbox[0]["status"], answer


def _scope(app: Any, method: str, path: str, length: int) -> dict[str, Any]:
    bare, _, query = path.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": bare,
        "raw_path": bare.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [
            (b"host", b"bench"),
            (b"content-type", b"application/json"),
            (b"content-length", str(length).encode()),
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "state": {},
        "app": app,
    }
