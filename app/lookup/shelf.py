"""The tables that are held in memory: at most so many bytes, the least recently used ones out."""

from __future__ import annotations

from collections import OrderedDict

from app.lookup.held import HeldTable


class Shelf:
    """Tables by digest. For the event loop's thread; only `peek` may be asked by others."""

    def __init__(self, room_bytes: int) -> None:
        self._room_bytes = room_bytes
        self._tables: OrderedDict[str, HeldTable] = OrderedDict()
        self.held_bytes = 0

    @property
    def free_bytes(self) -> int:
        """Room that no table takes."""
        return self._room_bytes - self.held_bytes

    def __len__(self) -> int:
        return len(self._tables)

    def peek(self, digest: str) -> HeldTable | None:
        """The table of this digest, without using it."""
        return self._tables.get(digest)

    def get(self, digest: str) -> HeldTable | None:
        """The table of this digest, which is then the most recently used one."""
        found = self._tables.get(digest)
        if found is not None:
            self._tables.move_to_end(digest)
        return found

    def put(self, table: HeldTable) -> None:
        """Hold a table, in the place of others; one that is larger than the room is not held."""
        if table.digest in self._tables or table.memory_bytes > self._room_bytes:
            return
        while table.memory_bytes > self.free_bytes:
            _, dropped = self._tables.popitem(last=False)
            self.held_bytes -= dropped.memory_bytes
        self._tables[table.digest] = table
        self.held_bytes += table.memory_bytes
