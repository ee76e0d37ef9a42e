"""Who is next: a turn for each party, and within a party a turn for each of its matters.

A party that asks for much waits for itself and for nobody else; where it asks for more than may
wait, it is the latest of its longest queue that is turned away.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Turns(Generic[T]):
    """Items that wait, `most` of a party at the same time. For one thread; O(queues of a party)."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._parties: dict[Hashable, dict[Hashable, deque[T]]] = {}
        self._served: Hashable = None

    def __len__(self) -> int:
        return sum(map(_waiting, self._parties.values()))

    def add(self, party: Hashable, matter: Hashable, item: T) -> T | None:
        """Put an item at the end of its queue; what has to leave for it, perhaps itself."""
        queues = self._parties.setdefault(party, {})
        queues.setdefault(matter, deque()).append(item)
        if _waiting(queues) <= self._most:
            return None
        longest = max(queues, key=lambda one: (len(queues[one]), one == matter))
        dropped = queues[longest].pop()
        self._forget_empty(party, longest)
        return dropped

    def take(self) -> T | None:
        """The next item, or None; its party, and its matter within that, go to the end."""
        if not self._parties:
            return None
        party = self._next_party()
        queues = self._parties.pop(party)
        matter = next(iter(queues))
        queue = queues.pop(matter)
        item = queue.popleft()
        if queue:
            queues[matter] = queue
        if queues:
            self._parties[party] = queues
        return item

    def _next_party(self) -> Hashable:
        """The first one, but for whoever had the last turn and came back meanwhile."""
        first, *others = self._parties
        if first == self._served and others:
            first = others[0]
        self._served = first
        return first

    def discard(self, party: Hashable, matter: Hashable, item: T) -> None:
        """Let an item go that nobody waits for; nothing happens where it is not there."""
        queue = self._parties.get(party, {}).get(matter)
        if queue is not None and item in queue:
            queue.remove(item)
            self._forget_empty(party, matter)

    def _forget_empty(self, party: Hashable, matter: Hashable) -> None:
        queues = self._parties[party]
        if not queues[matter]:
            del queues[matter]
        if not queues:
            del self._parties[party]


def _waiting(queues: dict[Hashable, deque[T]]) -> int:
    return sum(map(len, queues.values()))
