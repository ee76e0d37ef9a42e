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
from collections.abc import Awaitable, Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from app.execution.engine import Best, End, Event, FairQueue, Started, Steps
from app.execution.local import MAX_PENDING_CALLS, MAX_PENDING_PICTURES, MAX_PICTURES_OF_CLIENT
from domain.errors import Cancelled, NotReady, Overloaded, StoreUnavailable

STANDING_S, STANDING_SOLVES = 0.25, 8
CALM_S = 0.5
BURST, MAX_WAIT_S = 16, 2.0  # of each worker so many may wait, however long they take
_LOOK_S = 0.1  # between looks at whether what has not begun may wait for longer
_REMEMBERED = 8  # solves by which the next one is judged, about
WORKERLESS_S = 5.0  # within which a worker that is started again is back
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


class Backlog:
    """Solves that clients wait for, of which `slots()` run at once. For the event loop's thread.

    A burst waits for its turns. Where something has waited at every moment for STANDING_S and for
    as many solves as STANDING_SOLVES of each worker, and what waits would take the workers as long
    again, more is asked than can be done, and to wait for longer only makes all answers late. Until
    CALM_S have passed without a refusal, what would wait is then refused, but who has nothing here
    is let in beside one who has several; and this process leaves solving to its workers, since it
    has refusals to send. Nor may more than BURST of each worker wait where they would take it
    MAX_WAIT_S.
    """

    def __init__(self, slots: Callable[[], int]) -> None:
        self._slots = slots
        self._parallel = 1
        self._of_client: Counter[str] = Counter()
        self._count = 0
        self._waiting_since_s = math.inf
        self._ended = 0  # since then
        self._strict_until_s = -math.inf
        self._solve_s = math.inf  # how long one takes of a worker, about; not known yet

    @property
    def is_overloaded(self) -> bool:
        """Whether more is asked than can be done; for any thread."""
        now_s = time.monotonic()
        if now_s < self._strict_until_s:
            return True
        if now_s - self._waiting_since_s <= STANDING_S:
            return False
        has_ended = self._ended >= STANDING_SOLVES * self._parallel
        left_s = (self._count - self._parallel) * self._solve_s / self._parallel
        return has_ended and left_s >= STANDING_S

    def check(self, client: str) -> None:
        """Raise Overloaded where one more of this client would only wait."""
        if self._count < self._parallel or not (self.is_overloaded or self._is_full):
            return
        if not self._of_client[client] and max(self._of_client.values()) > 1:
            return
        self.check_begin()
        raise Overloaded("what waits to be solved already takes too long")

    @property
    def _is_full(self) -> bool:
        """Whether what waits is more than a burst, and would take the workers too long."""
        waiting = (self._count - self._parallel) / self._parallel
        is_long = MAX_WAIT_S <= waiting * self._solve_s < math.inf
        return waiting >= BURST and is_long

    def took(self, solve_s: float) -> None:
        """Learn for how long a solve has had a worker."""
        known_s = self._solve_s if self._solve_s < math.inf else solve_s
        self._solve_s = known_s + (solve_s - known_s) / _REMEMBERED

    def check_begin(self) -> None:
        """Raise Overloaded where what has waited to be solved in this process comes too late."""
        if self.is_overloaded:
            self._strict_until_s = time.monotonic() + CALM_S
            raise Overloaded("more is being asked than this service can solve")

    @contextmanager
    def entered(self, client: str) -> Iterator[None]:
        """Count a solve of this client while the block lasts. Raises Overloaded."""
        self._parallel = max(1, self._slots())  # those of a cluster come and go
        self.check(client)
        self._of_client[client] += 1
        self._count += 1
        if self._count > self._parallel and self._waiting_since_s == math.inf:
            self._waiting_since_s, self._ended = time.monotonic(), 0
        try:
            yield
        finally:
            self._count -= 1
            self._ended += 1
            self._of_client[client] -= 1
            if not self._of_client[client]:
                del self._of_client[client]
            if self._count <= self._parallel:
                self._waiting_since_s = math.inf


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
                self._loop.call_soon_threadsafe(self._end_with, message)

    @property
    def run_s(self) -> float:
        """Seconds since it has begun; -inf before."""
        return time.monotonic() - self._begun_s

    async def until_end(
        self,
        wait_disconnected: Callable[[], Awaitable[None]],
        check_begin: Callable[[], None],
        slots: Callable[[], int],
    ) -> End:
        """Return the end. Raises Cancelled where the client disconnects before; while the task has
        not begun what `check_begin` raises, and NotReady where the engine has no slots any more.
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
                if self.run_s < 0.0 and not self._end.done():
                    check_begin()
                    if time.monotonic() - began_s >= WORKERLESS_S and not slots():
                        raise NotReady("no worker of the cluster can be reached; try again")
            return self._end.result()
        finally:
            watcher.cancel()

    def _end_with(self, end: End) -> None:
        if not self._end.done():
            self._end.set_result(end)


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
