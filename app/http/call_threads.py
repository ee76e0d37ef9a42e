"""Threads for short blocking work; work that may wait for the database's writer has its own.

A write waits where another process holds the database's lock, for as long as the store lets it. It
then holds up other writes, in their own threads; readings have threads, and in the store
connections, that no write ever takes.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from app.execution.engine import Best, End, Event, Started, Steps
from app.execution.local import MAX_PENDING_CALLS
from domain.errors import Overloaded, StoreUnavailable

READ_THREADS = 8
WRITE_THREADS = 4

T = TypeVar("T")


@dataclass(slots=True)
class _CallPool:
    """Threads, and how many calls run in them or wait for one."""

    threads: ThreadPoolExecutor
    pending: int = field(default=0, init=False)

    async def run(self, work: Callable[[], T]) -> T:
        if self.pending >= MAX_PENDING_CALLS:
            raise Overloaded("more requests are waiting than this service accepts")
        self.pending += 1
        try:
            # With the context: what is logged there is about the same request.
            run = contextvars.copy_context().run
            return await asyncio.get_running_loop().run_in_executor(self.threads, run, work)
        finally:
            self.pending -= 1


class CallThreads:
    """One per service. Coroutines are for the event loop's thread; `close` is not."""

    def __init__(self, *, max_wait_s: float, parallel_writes: int) -> None:
        self._max_wait_s = max_wait_s
        self._reading = _CallPool(ThreadPoolExecutor(READ_THREADS, "sluice-read"))
        self._writing = _CallPool(
            ThreadPoolExecutor(min(WRITE_THREADS, parallel_writes), "sluice-write")
        )
        # One: solving holds the interpreter's lock, and more would only take turns.
        self._solving = _CallPool(ThreadPoolExecutor(1, "sluice-quick"))

    @property
    def pending(self) -> int:
        """Calls in threads, or waiting for one."""
        return sum(pool.pending for pool in (self._reading, self._writing, self._solving))

    async def read(self, work: Callable[[], T]) -> T:
        """Run work that changes nothing in the database. Raises Overloaded."""
        return await self._reading.run(work)

    async def write(self, work: Callable[[], T]) -> T:
        """Run work that may change the database.

        Raises Overloaded; StoreUnavailable where it does not get its turn in time.
        """
        latest_s = time.monotonic() + self._max_wait_s

        def in_time() -> T:
            if time.monotonic() > latest_s:
                raise StoreUnavailable("the database has taken no write for some time")
            return work()

        return await self._writing.run(in_time)

    async def solve(self, work: Callable[[], T]) -> T:
        """Run a small solve, which asks nothing of the database. Raises Overloaded."""
        return await self._solving.run(work)

    def close(self) -> None:
        """End the threads once what they do is done; solves that have not begun are dropped."""
        self._solving.threads.shutdown(cancel_futures=True)
        self._reading.threads.shutdown()
        self._writing.threads.shutdown()


@dataclass(slots=True)
class Counts:
    """What is under way, of all owners together. For the event loop's thread."""

    pending_tasks: int = 0
    open_streams: int = 0
    streams_of_owner: Counter[str] = field(default_factory=Counter)
    waiting_here: int = 0


class TaskWait:
    """What a task reports to the coroutine that awaits it; `take` is for the engine's threads."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.end: asyncio.Future[End] = loop.create_future()
        self.best: bytes | None = None
        self._loop = loop

    def take(self, message: Event | End) -> None:
        """Take an event, or the end."""
        if isinstance(message, Best):
            self.best = message.result
        elif not isinstance(message, Started | Steps):
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._end_with, message)

    def _end_with(self, end: End) -> None:
        if not self.end.done():
            self.end.set_result(end)
