"""One thread for pictures: they may take seconds, and must hold nobody up.

It is one thread because what it runs holds the interpreter's lock in turn with the others. Clients
take turns, and so do the views of a client; the same question is computed once for all clients,
and what no client waits for any more is not begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from app.execution.engine import FairQueue
from app.execution.local import MAX_PENDING_PICTURES, MAX_PICTURES_OF_CLIENT
from domain.errors import Cancelled, Overloaded

T = TypeVar("T")


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
    """A client that waits for a computation; `displaced` is set where it has to leave the queue."""

    computation: _Computation
    displaced: asyncio.Event = field(default_factory=asyncio.Event)


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
        waiter = _Waiter(computation)
        try:
            if not computation.has_begun:
                self._add(requester, waiter)
            found: T = await _first(computation.done, waiter.displaced, wait_disconnected)
            return found
        finally:
            self._leave(requester, waiter)

    def close(self) -> None:
        """End the thread; what has not begun is given up."""
        self._thread.shutdown(cancel_futures=True)

    def _add(self, requester: Requester, waiter: _Waiter) -> None:
        displaced = self._queue.add(waiter, requester=requester.client, subject=requester.view)
        if displaced is not None:
            displaced.displaced.set()
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


async def _first(
    done: asyncio.Future[T],
    displaced: asyncio.Event,
    wait_disconnected: Callable[[], Awaitable[None]],
) -> T:
    """Return the result, unless the waiter was displaced or the client disconnected before."""
    leaving = asyncio.ensure_future(displaced.wait())
    watcher = asyncio.ensure_future(wait_disconnected())
    try:
        await asyncio.wait((done, leaving, watcher), return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        watcher.cancel()
    if done.done():
        return done.result()
    if displaced.is_set():
        raise Overloaded("this client asks for more pictures at once than may wait")
    raise Cancelled("the client went away")
