"""One compiled table, ready to answer from."""

from __future__ import annotations

from app.lookup.answers import JSON, NO_CACHE, SCHEDULE, Ready, holds
from app.schemas.schedules import FORM, ScheduleRenderer
from exports.lookup import TableReader, answer_by, open_reader
from solvers import judge_of

BOOK_BYTES = 2**17  # what is held beside file and reader, about: buffers, the judge's numbers
_TAG_DIGITS = 16  # of the digest: 64 bits, and short, because servers look at every byte


class HeldTable:
    """A table file by its digest, its reader and what its answers share. For one thread."""

    def __init__(self, digest: str, file: bytes, reader: TableReader) -> None:
        head = reader.head
        self.digest = digest
        self.file = file
        self.head = head
        self.least_bytes, self.greatest_bytes = head.least_bytes, head.greatest_bytes
        self.memory_bytes = len(file) + reader.memory_bytes + BOOK_BYTES
        self._reader = reader
        self._judge = judge_of(head.pipeline)
        self._answer = reader.answerer(self._judge)
        self.tag = tag_of(digest)
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

    def short_body(self, message_bytes: int) -> bytes | None:
        """The JSON about a message in the range, or None where it is long for the event loop."""
        answer = self._answer(message_bytes)
        return None if answer is None else self._renderer.body(message_bytes, answer)

    def schedule(self, wanted: str, message_bytes: int) -> Ready:
        """The answer to a look-up in the range, however long; `wanted` is If-None-Match."""
        tag = self.tag % message_bytes
        if wanted and holds(wanted, tag.decode()):
            return unchanged(tag)
        body = self.short_body(message_bytes)
        if body is None:
            answer = answer_by(self._reader, self._judge, message_bytes)
            assert answer is not None  # without a limit there is always one
            body = self._renderer.body(message_bytes, answer)
        return found(tag, body)


def tag_of(digest: str) -> bytes:
    """The ETag of a table's answers, with room for the message.

    The digest says which file, the message which answer, the form how it is written.
    """
    return f'"{digest[:_TAG_DIGITS]}-%d-{FORM}"'.encode()


def unchanged(tag: bytes) -> Ready:
    """304: the client holds the answer of this tag."""
    return Ready(304, [(b"etag", tag), NO_CACHE], b"", SCHEDULE)


def found(tag: bytes, body: bytes) -> Ready:
    """200: the answer of this tag."""
    length = b"content-length", b"%d" % len(body)
    return Ready(200, [(b"etag", tag), NO_CACHE, length, JSON], body, SCHEDULE)
