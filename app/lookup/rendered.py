"""Bodies that were rendered already, by their tag."""

from __future__ import annotations

_GENERATION = 10_240  # bodies in each of two generations
_SEEN_ONCE = 32_768  # tags that are remembered until they come again
_MOST_KEPT_BYTES = 1024  # of a body that is kept; 64 fragments take less


class Rendered:
    """The last few thousand bodies that were asked for again. A tag never stands for another body.

    Two generations: when the young one is full it becomes the old one, and the old one goes. What
    was asked for once is only remembered, as a number. Nothing but bytes is kept: an answer's many
    small objects would be fetched from slow memory one by one.
    """

    def __init__(self) -> None:
        self.young: dict[bytes, bytes] = {}
        self._old: dict[bytes, bytes] = {}
        self._seen: set[int] = set()

    def older(self, tag: bytes) -> bytes | None:
        """A body of the old generation, which is young again."""
        found = self._old.get(tag)
        if found is not None:
            self._add(tag, found)
        return found

    def see(self, tag: bytes, body: bytes) -> None:
        """Keep a body whose tag was seen before, and which is not long."""
        number = hash(tag)
        if number in self._seen:
            if len(body) <= _MOST_KEPT_BYTES:
                self._add(tag, body)
            return
        if len(self._seen) >= _SEEN_ONCE:
            self._seen.clear()
        self._seen.add(number)

    def _add(self, tag: bytes, body: bytes) -> None:
        if len(self.young) >= _GENERATION:
            self._old, self.young = self.young, {}
        self.young[tag] = body
