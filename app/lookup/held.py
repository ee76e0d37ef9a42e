"""One compiled table, ready to answer from."""

from __future__ import annotations

from app.lookup.answers import REVALIDATED, Ready, full, holds, unchanged
from app.lookup.forms import JSON
from app.schemas.schedules import FORM, RepeatedSize, ScheduleRenderer
from exports.lookup import KEPT_FRAGMENTS, TableReader, open_reader
from solvers import judge_of

_BOOK_BYTES = 4096  # what is held beside file and reader, about


class HeldTable:
    """A table file by its digest, its reader and what its answers share. For one thread."""

    def __init__(self, digest: str, file: bytes, reader: TableReader) -> None:
        head = reader.head
        self.digest = digest
        self.file = file
        self.head = head
        self.least_bytes, self.greatest_bytes = head.least_bytes, head.greatest_bytes
        self.memory_bytes = len(file) + reader.memory_bytes + _BOOK_BYTES
        self._reader = reader
        self._judge = judge_of(head.pipeline)
        self._tag = digest[:40]
        self._renderer = ScheduleRenderer(
            digest,
            (head.profile, head.revision),
            head.limits,
            relative_gap=head.relative_gap,
            stages=len(head.pipeline),
        )

    @classmethod
    def of(cls, digest: str, file: bytes) -> HeldTable:
        """A table out of its file. Raises InvalidTable."""
        return cls(digest, file, open_reader(file))

    def sibling(self) -> HeldTable:
        """The same table for another thread."""
        return HeldTable(self.digest, self.file, self._reader.sibling())

    def is_short(self, message_bytes: int) -> bool:
        """Whether the answer is short enough to be made on the event loop."""
        size = self._reader.repeat(message_bytes)
        if size and message_bytes > KEPT_FRAGMENTS * size:
            return False
        most = self._reader.most_fragments
        return most <= KEPT_FRAGMENTS or self._reader.count(message_bytes) <= KEPT_FRAGMENTS

    def schedule(self, wanted: str, message_bytes: int) -> Ready:
        """The answer to a look-up in the range; `wanted` is If-None-Match."""
        # The digest says which file, the size which message, the form how it is written.
        etag = f'"{self._tag}-{message_bytes}-{FORM}"'
        shared = (("etag", etag), ("cache-control", REVALIDATED))
        if wanted and holds(wanted, etag):
            return unchanged(shared)
        return full(self.body(message_bytes), JSON, shared, disposition=None)

    def body(self, message_bytes: int) -> bytes:
        """The JSON of the answer."""
        reader = self._reader
        sizes = reader.schedule(message_bytes)
        return self._renderer.body(
            message_bytes,
            sizes,
            self._judge(sizes),
            relative_gap=reader.gaps(message_bytes)[0],
            repeated=self._repeated(message_bytes),
        )

    def _repeated(self, message_bytes: int) -> RepeatedSize | None:
        size = self._reader.repeat(message_bytes)
        if not size:
            return None
        full_ones, rest = divmod(message_bytes, size)
        sizes = [size] * full_ones
        if rest:
            sizes.append(rest)
        return RepeatedSize(size, len(sizes), self._judge(sizes))
