"""What the engine remembers of each task, until its result is fetched or expires."""

from __future__ import annotations

import pickle
import time
from collections import OrderedDict, deque
from concurrent.futures import Future
from dataclasses import dataclass, field

from app.pool.task import SolveTask
from domain.errors import NotFound, Overloaded
from domain.solution import Solution
from models.records import JobState


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a task stands. `best` is a complete answer with a valid bound, once there is one."""

    state: JobState
    best: Solution | None
    elapsed_s: float


@dataclass(eq=False, slots=True)
class Ticket:
    """One task on its way. Changed only under the engine's lock, but for `incumbent`."""

    id: str
    task: SolveTask
    lane: str
    future: Future[Solution] = field(default_factory=Future)
    state: JobState = JobState.QUEUED
    started_s: float | None = None
    ended_s: float | None = None
    cancel_requested: bool = False
    incumbent: bytes | None = None  # as it arrived: most are replaced before anyone looks
    _seen: tuple[bytes, Solution] | None = None

    def __post_init__(self) -> None:
        # Nobody who waits on the future can cancel it: the engine always has an answer for it.
        self.future.set_running_or_notify_cancel()

    def best(self) -> Solution | None:
        """The best answer so far."""
        if self.ended_s is not None:  # the outcome is there, or about to be
            return None if self.future.exception() else self.future.result()
        pickled, seen = self.incumbent, self._seen
        if pickled is None:
            return None
        if seen is None or seen[0] is not pickled:
            seen = self._seen = (pickled, pickle.loads(pickled))
        return seen[1]

    def progress(self) -> Progress:
        """A snapshot."""
        end_s = time.monotonic() if self.ended_s is None else self.ended_s
        elapsed_s = 0.0 if self.started_s is None else end_s - self.started_s
        return Progress(self.state, self.best(), elapsed_s)


class WaitingLine:
    """Tasks that wait: first in, first out within a lane, and lanes in turn. Bounded."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lanes: OrderedDict[str, deque[Ticket]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, ticket: Ticket) -> None:
        """Put at the end of its lane. Raises Overloaded."""
        if self._count >= self._most:
            raise Overloaded(f"{self._count} solves are waiting, which is as many as may wait")
        self._lanes.setdefault(ticket.lane, deque()).append(ticket)
        self._count += 1

    def take(self) -> Ticket | None:
        """The next one; None where nothing waits."""
        if not self._count:
            return None
        lane, waiting = self._lanes.popitem(last=False)
        self._count -= 1
        ticket = waiting.popleft()
        if waiting:
            self._lanes[lane] = waiting
        return ticket

    def remove(self, ticket: Ticket) -> None:
        """Take this one out."""
        waiting = self._lanes[ticket.lane]
        waiting.remove(ticket)
        self._count -= 1
        if not waiting:
            del self._lanes[ticket.lane]


class TicketBook:
    """Tickets by id. Ended ones are kept until fetched, for a time, and only so many."""

    def __init__(self, *, most_ended: int, keep_s: float) -> None:
        self._most_ended = most_ended
        self._keep_s = keep_s
        self._open: dict[str, Ticket] = {}
        self._ended: OrderedDict[str, Ticket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open) + len(self._ended)

    def add(self, ticket: Ticket) -> None:
        """Remember a new ticket."""
        self._open[ticket.id] = ticket

    def find(self, ticket_id: str) -> Ticket | None:
        """The ticket of this id, where it is known."""
        return self._open.get(ticket_id) or self._ended.get(ticket_id)

    def get(self, ticket_id: str) -> Ticket:
        """The ticket of this id. Raises NotFound, also for results fetched or expired."""
        ticket = self.find(ticket_id)
        if ticket is None:
            raise NotFound(
                "there is no such solve, or its result was fetched or expired", subject=ticket_id
            )
        return ticket

    def end(self, ticket: Ticket) -> None:
        """This one has ended; the oldest that nobody fetched make room."""
        if self._open.pop(ticket.id, None) is None:
            return
        self._ended[ticket.id] = ticket
        now_s = time.monotonic()
        while self._ended:
            oldest = next(iter(self._ended.values()))
            expired = now_s - (oldest.ended_s or now_s) > self._keep_s
            if len(self._ended) <= self._most_ended and not expired:
                break
            del self._ended[oldest.id]

    def forget(self, ticket: Ticket) -> None:
        """Its result was fetched."""
        self._ended.pop(ticket.id, None)

    def open_tickets(self) -> list[Ticket]:
        """Those that have not ended."""
        return list(self._open.values())
