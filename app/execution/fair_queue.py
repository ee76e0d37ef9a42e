"""A queue that serves requesters in turn, and within one its subjects in turn.

A requester that asks for much waits for itself and for nobody else.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from domain.errors import Overloaded

T = TypeVar("T")
Requester = Hashable
Subject = Hashable


def _everyone(requester: Requester) -> bool:
    return True


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

    def take(self, may_take: Callable[[Requester], bool] = _everyone) -> T | None:
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
