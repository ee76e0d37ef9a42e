"""One thread for what is drawn around an answer: it may take seconds, and must hold nobody up.

Requests that somebody waits for never queue behind it. It is one thread because what it runs holds
the interpreter's lock in turn with the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from app.errors import Overloaded
from domain.errors import Cancelled

MAX_PENDING = 64

T = TypeVar("T")


class Explorer:
    """Runs one piece of work after the other. For the event loop's thread, except `close`."""

    def __init__(self) -> None:
        self._pending = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sluice-explore")

    async def run(self, work: Callable[[], T], gone: Callable[[], Awaitable[None]]) -> T:
        """What the work returns; it is not begun where the client has gone by its turn.

        Raises what it raises, Overloaded where too much waits, and Cancelled.
        """
        if self._pending >= MAX_PENDING:
            raise Overloaded("more pictures are waiting than this service accepts")
        self._pending += 1
        watcher = asyncio.ensure_future(gone())
        try:
            worker = asyncio.get_running_loop().run_in_executor(self._thread, work)
            await asyncio.wait((worker, watcher), return_when=asyncio.FIRST_COMPLETED)
            if not worker.done() and worker.cancel():
                raise Cancelled("the client went away")
            return await worker
        finally:
            watcher.cancel()
            self._pending -= 1

    def close(self) -> None:
        """End the thread; what has not begun is given up."""
        self._thread.shutdown(cancel_futures=True)
