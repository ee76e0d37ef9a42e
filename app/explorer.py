"""One thread for what is drawn around an answer: it may take seconds, and must hold nobody up.

Requests that somebody waits for never queue behind it. It is one thread because what it runs holds
the interpreter's lock in turn with the others. Those who ask take turns (`app.turns`), the same
question is worked out once for all who wait, and what nobody waits for any more is not begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from app.turns import Turns
from domain.errors import Cancelled, Overloaded

MAX_PENDING = 256
MAX_OF_A_PARTY = 12  # three views with all of their parts

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, for turns: parties are those who take them, a matter is what one view is about."""

    party: Hashable
    matter: Hashable = ""


@dataclass(eq=False, slots=True)
class _Job:
    """A question while it waits or runs; `done` is told to everyone who waits."""

    question: Hashable
    work: Callable[[], Any]
    done: asyncio.Future[Any]
    waiting: int = 0
    has_begun: bool = False


@dataclass(eq=False, slots=True)
class _Place:
    """One who waits for a job; `refused` is set where it has to leave the queue."""

    job: _Job
    refused: asyncio.Event = field(default_factory=asyncio.Event)


class Explorer:
    """Runs one piece of work after the other. For the event loop's thread, except `close`."""

    def __init__(self) -> None:
        self._turns: Turns[_Place] = Turns(most=MAX_OF_A_PARTY)
        self._jobs: dict[Hashable, _Job] = {}
        self._is_busy = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sluice-explore")

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return len(self._turns)

    async def run(
        self,
        work: Callable[[], T],
        gone: Callable[[], Awaitable[None]],
        *,
        asker: Asker,
        question: Hashable,
    ) -> T:
        """What the work returns; works of equal questions are one.

        It is not begun where all who wait have gone by its turn. Raises what it raises, Overloaded
        where too much waits, and Cancelled where this client has gone.
        """
        if len(self._turns) >= MAX_PENDING:
            raise Overloaded("more pictures are waiting than this service accepts")
        job = self._jobs.get(question)
        if job is None:
            done = asyncio.get_running_loop().create_future()
            job = self._jobs[question] = _Job(question, work, done)
        job.waiting += 1
        place = _Place(job)
        try:
            if not job.has_begun:
                self._queue(asker, place)
            found: T = await _first(job.done, place.refused, gone)
            return found
        finally:
            self._leave(asker, place)

    def close(self) -> None:
        """End the thread; what has not begun is given up."""
        self._thread.shutdown(cancel_futures=True)

    def _queue(self, asker: Asker, place: _Place) -> None:
        dropped = self._turns.add(asker.party, asker.matter, place)
        if dropped is not None:
            dropped.refused.set()
        self._begin_next()

    def _leave(self, asker: Asker, place: _Place) -> None:
        self._turns.discard(asker.party, asker.matter, place)
        job = place.job
        job.waiting -= 1
        if not job.waiting and not job.has_begun and self._jobs.get(job.question) is job:
            del self._jobs[job.question]

    def _begin_next(self) -> None:
        while not self._is_busy and (place := self._turns.take()) is not None:
            job = place.job
            if job.has_begun or not job.waiting:
                continue  # begun at the turn of another one who waits for it, or of nobody
            job.has_begun = self._is_busy = True
            worker = asyncio.get_running_loop().run_in_executor(self._thread, job.work)
            worker.add_done_callback(partial(self._end, job))

    def _end(self, job: _Job, ended: asyncio.Future[Any]) -> None:
        self._is_busy = False
        self._jobs.pop(job.question, None)
        if ended.cancelled():
            job.done.cancel()
            return
        error = ended.exception()
        if error is None:
            job.done.set_result(ended.result())
        else:
            job.done.set_exception(error)
            job.done.exception()  # seen, also where nobody waits for it any more
        self._begin_next()


async def _first(
    done: asyncio.Future[T], refused: asyncio.Event, gone: Callable[[], Awaitable[None]]
) -> T:
    """The result, unless this place was given away or the client has gone before."""
    leaving, watcher = asyncio.ensure_future(refused.wait()), asyncio.ensure_future(gone())
    try:
        await asyncio.wait((done, leaving, watcher), return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        watcher.cancel()
    if done.done():
        return done.result()
    if refused.is_set():
        raise Overloaded("this client asks for more pictures at once than may wait")
    raise Cancelled("the client went away")
