"""The protocol of engines: where operations run when they are not certain to be quick; and the
queue in which what waits takes turns.

An engine takes tasks and answers for them: each ends within its limits and exactly once, its best
result so far is never lost, and whatever an operation does hurts nobody else. Durability is not its
business: jobs live in the store, and are submitted again by the runner that finds them unfinished.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, Protocol, TypeAlias, TypeVar

from domain.errors import Overloaded

MIB = 2**20


class Pool(StrEnum):
    """Which workers a task may run in: long work never delays what a client waits for briefly, and
    neither does a file that takes long to read.
    """

    SOLVE = "solve"
    READ = "read"
    LONG = "long"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a task may use: seconds from its start, and bytes of memory and result."""

    time_s: float
    memory_bytes: int
    result_bytes: int = 64 * MIB


@dataclass(frozen=True, slots=True)
class Task:
    """An operation to run.

    `(id, claim)` is run once, however often it is submitted. `work` is the pickled operation: it
    is made and read by this program alone. Tasks of one `requester` wait in one queue; queues take
    turns. `files` are descriptors that the operation reads by their index; the engine duplicates
    them before `submit` returns.
    """

    id: str
    claim: int
    kind: str
    work: bytes
    limits: Limits
    pool: Pool = Pool.SOLVE
    requester: str = ""
    files: tuple[int, ...] = ()


# --- what a task reports on its way ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Started:
    """The task has reached a worker; always the first event."""

    where: str


@dataclass(frozen=True, slots=True)
class Steps:
    """How far the task is: steps done, of all."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Best:
    """A complete result, pickled, better than those before."""

    result: bytes


Event: TypeAlias = Started | Steps | Best


# --- how a task ends ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Done:
    """The pickled result."""

    result: bytes


@dataclass(frozen=True, slots=True)
class Refused:
    """The operation raised a `SluiceError`, pickled."""

    error: bytes


class Limit(StrEnum):
    """Which limit ended a task."""

    TIME = "time"
    MEMORY = "memory"
    RESULT = "result"


@dataclass(frozen=True, slots=True)
class LimitExceeded:
    """The task was ended at a limit."""

    limit: Limit


@dataclass(frozen=True, slots=True)
class Crashed:
    """The worker process ended by itself under the task: `how`, in words."""

    how: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """The task was cancelled, or the engine was closed."""

    is_closing: bool = False


@dataclass(frozen=True, slots=True)
class Lost:
    """The machine or process that ran the task is gone; `was_started` says whether it had begun."""

    was_started: bool


End: TypeAlias = Done | Refused | LimitExceeded | Crashed | Stopped | Lost
Sink: TypeAlias = Callable[[Event | End], None]


@dataclass(frozen=True, slots=True)
class Capacity:
    """Workers of a pool, how many of them are at work, how many are warm, and how many durable jobs
    and one requester alone may fill.

    `deaths` is how many of their processes have ended otherwise than with the engine, by why:
    `crash` in a task, `idle` between two, `time` and `memory` at a limit.
    """

    slots: int
    busy: int
    ready: int
    for_jobs: int
    for_each: int
    deaths: Mapping[str, int] = field(default_factory=dict)


class Engine(Protocol):
    """Where operations run. Every method may be called by any thread, and none waits but `close`.

    A sink is called by the engine's threads, one call at a time for a task, and must not wait. It
    sees `Started` first, then events in their order, then exactly one end and nothing after it.
    `Steps` may be dropped in a flood, but never the last of them nor the last `Best`.
    """

    def submit(self, task: Task, sink: Sink) -> None:
        """Queue a task. Raises Overloaded where too many wait, NotReady once closed."""

    def cancel(self, task_id: str, claim: int) -> None:
        """End a task: its worker process is gone within 1 s. Nothing happens once it has ended."""

    def capacity(self, pool: Pool) -> Capacity:
        """Return how many tasks run and how many could."""

    def close(self, *, drain_s: float = 0.0) -> None:
        """Take no more, wait this long for what runs, end the rest, leave no process behind."""


# --- turns ----------------------------------------------------------------------------------------


T = TypeVar("T")
Requester = Hashable
Subject = Hashable


class FairQueue(Generic[T]):
    """Items that wait: first in, first out within a subject. Thread-safe; O(requesters) at worst.

    At most `max_waiting` wait in all; beyond it the newest is refused, from any requester. Of one
    requester at most `max_of_requester` wait: the newest of its longest subject has to leave then,
    so that a flood about one subject leaves space for another.
    """

    def __init__(self, *, max_waiting: int, max_of_requester: int, noun: str = "requests") -> None:
        self._max_waiting = max_waiting
        self._max_of_requester = max_of_requester
        self._noun = noun
        self._lock = threading.Lock()
        self._queues: dict[Requester, dict[Subject, deque[T]]] = {}
        self._count = 0
        self._served: Requester = None

    def __len__(self) -> int:
        return self._count

    def add(self, item: T, *, requester: Requester, subject: Subject = "") -> T | None:
        """Put an item at the end of its queue; return the one that has to leave, perhaps itself.

        Raises Overloaded where too many wait in all.
        """
        with self._lock:
            if self._count >= self._max_waiting:
                raise Overloaded(f"{self._count} {self._noun} are waiting, which is the maximum")
            queues = self._queues.setdefault(requester, {})
            queues.setdefault(subject, deque()).append(item)
            self._count += 1
            if sum(map(len, queues.values())) <= self._max_of_requester:
                return None
            longest = max(queues, key=lambda one: (len(queues[one]), one == subject))
            displaced = queues[longest].pop()
            self._count -= 1
            self._forget_empty(requester, longest)
            return displaced

    def take(self, may_take: Callable[[Requester], bool] = lambda _: True) -> T | None:
        """Return the next item, or None; its requester and its subject go to the end.

        Requesters that `may_take` denies keep their place.
        """
        with self._lock:
            requester = self._next_requester(may_take)
            if requester is None:
                return None
            queues = self._queues.pop(requester[0])
            subject = next(iter(queues))
            queue = queues.pop(subject)
            item = queue.popleft()
            self._count -= 1
            if queue:
                queues[subject] = queue
            if queues:
                self._queues[requester[0]] = queues
            self._served = requester[0]
            return item

    def remove(self, item: T, *, requester: Requester, subject: Subject = "") -> bool:
        """Take an item out; return whether it was there."""
        with self._lock:
            queue = self._queues.get(requester, {}).get(subject)
            if queue is None or item not in queue:
                return False
            queue.remove(item)
            self._count -= 1
            self._forget_empty(requester, subject)
            return True

    def drain(self) -> list[T]:
        """Take out everything that waits."""
        with self._lock:
            queues = [queue for of_one in self._queues.values() for queue in of_one.values()]
            self._queues, self._count = {}, 0
            return [item for queue in queues for item in queue]

    def _next_requester(self, may_take: Callable[[Requester], bool]) -> tuple[Requester] | None:
        """Return the first requester, unless it was served last and has come back meanwhile."""
        last = None
        for requester in self._queues:
            if may_take(requester):
                if requester != self._served:
                    return (requester,)
                last = (requester,)
        return last

    def _forget_empty(self, requester: Requester, subject: Subject) -> None:
        queues = self._queues[requester]
        if not queues[subject]:
            del queues[subject]
        if not queues:
            del self._queues[requester]
