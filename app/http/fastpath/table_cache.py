"""Compiled tables that are ready to answer from, and the cache that holds them."""

from __future__ import annotations

from collections import OrderedDict

from app.http.fastpath.responses import JSON_HEADER, NO_CACHE, SCHEDULE, CachedResponse, holds
from app.schemas.simulate import FORM, ScheduleRenderer
from exports.table.lookup import TableReader, answer_by
from exports.table.lookup_native import open_reader
from solvers import evaluator_of

BOOK_BYTES = 2**17  # what is held beside file and reader, about: buffers, the evaluator's numbers
_TAG_DIGITS = 16  # of the digest: 64 bits, and short, because servers look at every byte


class LoadedTable:
    """A table file by its digest, its reader and what its answers share. For one thread."""

    def __init__(self, digest: str, file: bytes, reader: TableReader) -> None:
        head = reader.head
        self.digest = digest
        self.file = file
        self.head = head
        self.min_message_bytes, self.max_message_bytes = (
            head.min_message_bytes,
            head.max_message_bytes,
        )
        self.memory_bytes = len(file) + reader.memory_bytes + BOOK_BYTES
        self._reader = reader
        self._evaluator = evaluator_of(head.pipeline)
        self._answer = reader.answerer(self._evaluator)
        self.tag = tag_of(digest)
        self._renderer = ScheduleRenderer(
            digest,
            (head.profile, head.revision),
            head.limits,
            relative_gap=head.relative_gap,
            stages=len(head.pipeline),
        )

    @classmethod
    def of(cls, digest: str, file: bytes) -> LoadedTable:
        """Return a table out of its file. Raises InvalidTable."""
        return cls(digest, file, open_reader(file))

    def sibling(self) -> LoadedTable:
        """Return the same table for another thread."""
        return LoadedTable(self.digest, self.file, self._reader.sibling())

    def short_body(self, message_bytes: int) -> bytes | None:
        """Return the JSON about a message in the range; None where it takes the event loop too
        long.
        """
        answer = self._answer(message_bytes)
        return None if answer is None else self._renderer.body(message_bytes, answer)

    def schedule(self, wanted: str, message_bytes: int) -> CachedResponse:
        """Return the response to a lookup in the range; `wanted` is If-None-Match."""
        tag = self.tag % message_bytes
        if wanted and holds(wanted, tag.decode()):
            return unchanged(tag)
        body = self.short_body(message_bytes)
        if body is None:
            answer = answer_by(self._reader, self._evaluator, message_bytes)
            assert answer is not None  # without a limit there is always one
            body = self._renderer.body(message_bytes, answer)
        return found(tag, body)


def tag_of(digest: str) -> bytes:
    """Return the ETag of a table's answers, with a place for the message.

    The digest says which file, the message which answer, the form how it is written.
    """
    return f'"{digest[:_TAG_DIGITS]}-%d-{FORM}"'.encode()


def unchanged(tag: bytes) -> CachedResponse:
    """Return 304: the client holds the answer of this tag."""
    return CachedResponse(304, [(b"etag", tag), NO_CACHE], b"", SCHEDULE)


def found(tag: bytes, body: bytes) -> CachedResponse:
    """Return 200 with the answer of this tag."""
    length = b"content-length", b"%d" % len(body)
    return CachedResponse(200, [(b"etag", tag), NO_CACHE, length, JSON_HEADER], body, SCHEDULE)


# --- the cache: at most so many bytes, the least recently used table goes first -------------------


class TableCache:
    """Tables by digest, the least recently used one first. Only `peek` is for any thread."""

    def __init__(self, room_bytes: int) -> None:
        self._room_bytes = room_bytes
        self._tables: OrderedDict[str, LoadedTable] = OrderedDict()
        self.loaded_bytes = 0

    @property
    def free_bytes(self) -> int:
        """Room that no table takes."""
        return self._room_bytes - self.loaded_bytes

    def __len__(self) -> int:
        return len(self._tables)

    def peek(self, digest: str) -> LoadedTable | None:
        """Return the table of this digest, without using it."""
        return self._tables.get(digest)

    def get(self, digest: str) -> LoadedTable | None:
        """Return the table of this digest, which is then the most recently used one."""
        found = self._tables.get(digest)
        if found is not None:
            self._tables.move_to_end(digest)
        return found

    def put(self, table: LoadedTable) -> None:
        """Hold a table, in the place of others; one that is larger than all space is not held."""
        if table.digest in self._tables or table.memory_bytes > self._room_bytes:
            return
        while table.memory_bytes > self.free_bytes:
            _, dropped = self._tables.popitem(last=False)
            self.loaded_bytes -= dropped.memory_bytes
        self._tables[table.digest] = table
        self.loaded_bytes += table.memory_bytes
