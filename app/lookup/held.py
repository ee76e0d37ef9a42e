"""One compiled table, ready to answer from."""

from __future__ import annotations

from app.lookup.answers import (
    JSON,
    NO_CACHE,
    SCHEDULE,
    SECURITY,
    Headers,
    Kind,
    Ready,
    Served,
    holds,
)
from app.schemas.schedules import FORM, ScheduleRenderer
from exports.lookup import Answer, TableReader, answer_by, open_reader
from solvers import judge_of

_BOOK_BYTES = 2**17  # what is held beside file and reader, about: buffers, the judge's numbers
_TAG_DIGITS = 16  # of the digest: 64 bits, and short, because servers look at every byte
_SERVED: Kind = (SCHEDULE, 200)


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
        self._answer = reader.answerer(self._judge)
        # The digest says which file, the message which answer, the form how it is written.
        self._tag = f'"{digest[:_TAG_DIGITS]}-%d-{FORM}"'.encode()
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

    def short_served(self, message_bytes: int) -> Served | None:
        """The answer to a look-up in the range, or None where it is too long for the event loop."""
        answer = self._answer(message_bytes)
        if answer is None:
            return None
        body = self._renderer.body(message_bytes, answer)
        headers = (
            (b"etag", self._tag % message_bytes),
            NO_CACHE,
            (b"content-length", b"%d" % len(body)),
            JSON,
            SECURITY,
        )
        return Served(
            {"type": "http.response.start", "status": 200, "headers": headers},
            {"type": "http.response.body", "body": body},
            _SERVED,
        )

    def short_schedule(self, wanted: str, message_bytes: int) -> Ready | None:
        """The same for a client that holds an answer already; `wanted` is If-None-Match."""
        tag = self._tag % message_bytes
        if wanted and holds(wanted, tag.decode()):
            return Ready(304, [(b"etag", tag), NO_CACHE], b"", SCHEDULE)
        answer = self._answer(message_bytes)
        return None if answer is None else self._ready(tag, message_bytes, answer)

    def schedule(self, wanted: str, message_bytes: int) -> Ready:
        """The answer to a look-up in the range, however long."""
        ready = self.short_schedule(wanted, message_bytes)
        if ready is not None:
            return ready
        answer = answer_by(self._reader, self._judge, message_bytes)
        assert answer is not None  # without a limit there is always one
        return self._ready(self._tag % message_bytes, message_bytes, answer)

    def _ready(self, tag: bytes, message_bytes: int, answer: Answer) -> Ready:
        body = self._renderer.body(message_bytes, answer)
        headers: Headers = [
            (b"etag", tag),
            NO_CACHE,
            (b"content-length", b"%d" % len(body)),
            JSON,
        ]
        return Ready(200, headers, body, SCHEDULE)
