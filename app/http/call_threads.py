"""Threads for short blocking work; work that may wait for the database's writer has its own.

A write waits where another process holds the database's lock, for as long as the store lets it. It
then holds up other writes, in their own threads; readings have threads, and in the store
connections, that no write ever takes.

Pictures have one thread: they may take seconds, and must hold nobody up. It is one because what it
runs holds the interpreter's lock in turn with the others. Clients take turns, and so do the views
of a client; the same question is computed once for all clients, and what no client waits for any
more is not begun.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from app.execution.engine import Best, End, Event, FairQueue, Started, Steps
from domain.errors import Cancelled, NotReady, Overloaded, StoreUnavailable

_LOOK_S = 0.1  # between looks at whether there are workers for what has not begun
WORKERLESS_S = 5.0  # within which a worker that is started again is back
MAX_READ_WAIT_S = 10.0  # of a file, for a worker that reads it
MAX_PENDING_CALLS = 512
MAX_PENDING_PICTURES = 256
MAX_PICTURES_OF_CLIENT = 12  # three views with all of their parts
READ_THREADS = 8
WRITE_THREADS = 4

T = TypeVar("T")


class CallPool:
    """Threads for one kind of short blocking work. For the event loop's thread, except `close`.

    `waited` is told for how long each call has waited for its thread. After `max_wait_s` it is not
    begun, which is answered as `too_late`.
    """

    def __init__(
        self,
        name: str,
        threads: int,
        waited: Callable[[str, float], object],
        *,
        max_wait_s: float = math.inf,
        too_late: str = "",
    ) -> None:
        self.pending = 0  # calls in threads, or waiting for one
        self._threads = ThreadPoolExecutor(threads, f"sluice-{name}")
        self._waited = partial(waited, name)
        self._max_wait_s = max_wait_s
        self._too_late = too_late
        self._shared: asyncio.Future[Any] | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """Run work in a thread, in the context of the caller: what is logged is about his request.

        Raises Overloaded; StoreUnavailable where it does not get its turn in time.
        """
        if self.pending >= MAX_PENDING_CALLS:
            raise Overloaded("more requests are waiting than this service accepts")
        self.pending += 1
        asked_s, began_s = time.monotonic(), math.inf

        def begun() -> T:
            nonlocal began_s
            began_s = time.monotonic()
            if began_s - asked_s > self._max_wait_s:
                raise StoreUnavailable(self._too_late)
            return work()

        try:
            run = contextvars.copy_context().run
            return await asyncio.get_running_loop().run_in_executor(self._threads, run, begun)
        finally:
            self.pending -= 1
            self._waited(min(began_s, time.monotonic()) - asked_s)

    async def run_shared(self, work: Callable[[], T]) -> T:
        """Run work; who asks meanwhile has the same result. Raises as `run` does."""
        if self._shared is None or self._shared.done():
            self._shared = asyncio.ensure_future(self.run(work))
        found: T = await asyncio.shield(self._shared)
        return found

    def close(self) -> None:
        """End the threads once what they do is done."""
        self._threads.shutdown()


@dataclass(slots=True)
class Counts:
    """What is under way, of all owners together. For the event loop's thread."""

    pending_tasks: int = 0
    open_streams: int = 0
    streams_of_owner: Counter[str] = field(default_factory=Counter)


class TaskWait:
    """What a task reports to the coroutine that awaits it; `take` is for the engine's threads."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.best: bytes | None = None
        self._begun_s = math.inf
        self._end: asyncio.Future[End] = loop.create_future()
        self._loop = loop

    def take(self, message: Event | End) -> None:
        """Take an event, or the end."""
        if isinstance(message, Best):
            self.best = message.result
        elif isinstance(message, Started):
            self._begun_s = time.monotonic()
        elif not isinstance(message, Steps):
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._end.set_result, message)

    @property
    def run_s(self) -> float:
        """Seconds since it has begun; -inf before."""
        return time.monotonic() - self._begun_s

    async def until_end(
        self,
        wait_disconnected: Callable[[], Awaitable[None]],
        slots: Callable[[], int],
        max_wait_s: float = math.inf,
    ) -> End:
        """Return the end. Raises Cancelled where the client disconnects before; where the task has
        not begun NotReady once the engine has no slots any more, and Overloaded after `max_wait_s`.
        """
        began_s = time.monotonic()
        watcher = asyncio.ensure_future(wait_disconnected())
        try:
            while not self._end.done():
                await asyncio.wait(
                    (self._end, watcher),
                    timeout=None if self.run_s >= 0.0 else _LOOK_S,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if watcher.done() and not self._end.done():
                    raise Cancelled("the client went away")
                waited_s = time.monotonic() - began_s if self.run_s < 0.0 else 0.0
                if self._end.done():
                    break
                if waited_s >= WORKERLESS_S and not slots():
                    raise NotReady("no worker of the cluster can be reached; try again")
                if waited_s >= max_wait_s:
                    raise Overloaded("too many files wait to be read")
            return self._end.result()
        finally:
            watcher.cancel()


# --- pictures -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Requester:
    """Who asks, for fair turns; `view` is what the question belongs to on the client's page."""

    client: Hashable
    view: Hashable = ""


@dataclass(eq=False, slots=True)
class _Computation:
    """A question while it waits or runs; its waiters await `done`."""

    question: Hashable
    work: Callable[[], Any]
    done: asyncio.Future[Any]
    waiting: int = 0
    has_begun: bool = False


@dataclass(eq=False, slots=True)
class _Waiter:
    """A client that waits for a computation, or until it has to leave the queue."""

    computation: _Computation
    displaced: asyncio.Future[None]


class RenderQueue:
    """Runs one computation after the other. For the event loop's thread, except `close`."""

    def __init__(self) -> None:
        self._queue: FairQueue[_Waiter] = FairQueue(
            max_waiting=MAX_PENDING_PICTURES,
            max_of_requester=MAX_PICTURES_OF_CLIENT,
            noun="pictures",
        )
        self._computations: dict[Hashable, _Computation] = {}
        self._is_busy = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sluice-render")

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return len(self._queue)

    async def run(
        self,
        work: Callable[[], T],
        wait_disconnected: Callable[[], Awaitable[None]],
        *,
        requester: Requester,
        question: Hashable,
    ) -> T:
        """Return what the work returns; works of equal questions are one.

        It is not begun where all its clients have disconnected before. Raises what it raises,
        Overloaded where too much waits, and Cancelled where this client has disconnected.
        """
        computation = self._computations.get(question)
        if computation is None:
            done = asyncio.get_running_loop().create_future()
            computation = self._computations[question] = _Computation(question, work, done)
        computation.waiting += 1
        done, displaced = computation.done, asyncio.get_running_loop().create_future()
        waiter, gone = _Waiter(computation, displaced), asyncio.ensure_future(wait_disconnected())
        try:
            if not computation.has_begun:
                self._add(requester, waiter)
            await asyncio.wait((done, displaced, gone), return_when=asyncio.FIRST_COMPLETED)
            if not done.done() and displaced.done():
                raise Overloaded("this client asks for more pictures at once than may wait")
            if not done.done():
                raise Cancelled("the client went away")
            found: T = done.result()
            return found
        finally:
            gone.cancel()
            self._leave(requester, waiter)

    def close(self) -> None:
        """End the thread; what has not begun is given up."""
        self._thread.shutdown(cancel_futures=True)

    def _add(self, requester: Requester, waiter: _Waiter) -> None:
        displaced = self._queue.add(waiter, requester=requester.client, subject=requester.view)
        if displaced is not None:
            displaced.displaced.set_result(None)
        self._begin_next()

    def _leave(self, requester: Requester, waiter: _Waiter) -> None:
        self._queue.remove(waiter, requester=requester.client, subject=requester.view)
        computation = waiter.computation
        computation.waiting -= 1
        is_known = self._computations.get(computation.question) is computation
        if is_known and not computation.waiting and not computation.has_begun:
            del self._computations[computation.question]

    def _begin_next(self) -> None:
        while not self._is_busy and (waiter := self._queue.take()) is not None:
            computation = waiter.computation
            if computation.has_begun or not computation.waiting:
                continue  # begun for another waiter, or awaited by nobody
            computation.has_begun = self._is_busy = True
            running = asyncio.get_running_loop().run_in_executor(self._thread, computation.work)
            running.add_done_callback(partial(self._end, computation))

    def _end(self, computation: _Computation, ended: asyncio.Future[Any]) -> None:
        self._is_busy = False
        self._computations.pop(computation.question, None)
        if ended.cancelled():
            computation.done.cancel()
            return
        error = ended.exception()
        if error is None:
            computation.done.set_result(ended.result())
        else:
            computation.done.set_exception(error)
            computation.done.exception()  # seen, also where nobody waits for it any more
        self._begin_next()
