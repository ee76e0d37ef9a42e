"""Answers that were rendered already, by path and query."""

from __future__ import annotations

from typing import TypeAlias

from app.lookup.answers import Served

Key: TypeAlias = tuple[str, bytes]

_GENERATION = 10_240  # answers in each of two generations
_SEEN_ONCE = 32_768  # questions that are remembered until they come again
_MOST_KEPT_BYTES = 1024  # of an answer that is kept; 64 fragments take less


class Rendered:
    """The last few thousand answers that were asked for again.

    Two generations: when the young one is full it becomes the old one, and the old one goes. What
    was asked for once is only remembered, as a number, so that it costs no object.
    """

    def __init__(self) -> None:
        self.young: dict[Key, Served] = {}
        self._old: dict[Key, Served] = {}
        self._seen: set[int] = set()

    def older(self, key: Key) -> Served | None:
        """An answer of the old generation, which is young again."""
        found = self._old.get(key)
        if found is not None:
            self._add(key, found)
        return found

    def see(self, key: Key, served: Served) -> None:
        """Keep an answer that was seen before and is not long."""
        number = hash(key)
        if number in self._seen:
            if len(served.end["body"]) <= _MOST_KEPT_BYTES:
                self._add(key, served)
            return
        if len(self._seen) >= _SEEN_ONCE:
            self._seen.clear()
        self._seen.add(number)

    def _add(self, key: Key, served: Served) -> None:
        if len(self.young) >= _GENERATION:
            self._old, self.young = self.young, {}
        self.young[key] = served
