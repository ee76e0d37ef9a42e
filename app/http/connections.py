"""The guard of each HTTP connection: no head is parsed that is too large, none waits for ever.

The server's own protocol has no limit on a head: one endless header makes it copy all that it has
so far with each piece, and a million short ones fill the memory. What a connection may have the
parser keep is therefore bounded here, before it is parsed. Only names that the server's class has
without an underscore are used, and none of what it keeps for a request under way.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.schemas.base import ProblemOut, dump_json
from domain.errors import HeadTooLarge, MalformedRequest, SluiceError

HEAD_LIMIT_S = 20.0  # after each, a look; a connection without progress does not see the second
MAX_HEAD_BYTES = 2**16  # of a request line and its headers, of a chunk's line, and of all trailers
MAX_HEAD_LINES = 100
MAX_PIPELINED = 8  # requests that wait on one connection for the one before them
MAX_UNWANTED_BYTES = 2**23  # of bodies whose request has been answered: their sender reads at last

_HEAD_END = b"\r\n\r\n"
_BODY_PIECE_BYTES = (
    2**13
)  # parsed at once: where a body ends, more headers may be than are accepted


class GuardedConnection(HttpToolsProtocol):
    """A connection that is closed where it asks too much, or makes no progress.

    Where between two looks nothing was asked or answered, it is closed. A request under way is
    progress: how long its body may take and how long its answer is the application's to say.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to watch."""
        super().connection_made(transport)
        self._begun = self._answered = 0  # requests
        self._seen = (-1, -1)
        self._in_body = False
        self._is_refused = False
        self._head_bytes = 0  # given to the parser since it last came to something
        self._head_lines = 0
        self._tail = b""  # the last bytes that it was given: the end of a head may come in parts
        self._unwanted_bytes = 0
        self._next_look = self.loop.call_later(HEAD_LIMIT_S, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Watch no longer."""
        self._next_look.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what has come, head by head, as far as the limits allow."""
        if self._is_refused:
            self.flow.pause_reading()  # each answer that ends has it read on
            return
        end = data.find(_HEAD_END)
        if (
            end >= 0
            and self._begun == self._answered
            and not (self._in_body or self._head_bytes)
            and len(data) <= MAX_HEAD_BYTES
            and data.find(_HEAD_END, end + 1) < 0
            and data.count(b"\n") <= MAX_HEAD_LINES
        ):
            HttpToolsProtocol.data_received(self, data)  # one whole head: nearly always
            return
        start = 0
        while start < len(data) and not self._is_refused:
            stop = self._next_stop(data, start)
            if stop == start:
                self._refuse(_too_large())
                return
            self._head_bytes += stop - start
            HttpToolsProtocol.data_received(self, data[start:stop])
            if self._in_body and len(self.headers) > MAX_HEAD_LINES:  # trailers
                self._refuse(_too_large())
            self._tail = (self._tail + data[max(start, stop - 3) : stop])[-3:]
            start = stop

    def _next_stop(self, data: bytes, start: int) -> int:
        """Return up to where to parse; `start` where no more may be parsed."""
        stop = min(len(data), start + MAX_HEAD_BYTES - self._head_bytes)
        if self._in_body:
            return min(stop, start + _BODY_PIECE_BYTES)
        if self._begun - self._answered > MAX_PIPELINED:
            return start
        stop = self._head_end(data, start, stop)
        self._head_lines += data.count(b"\n", start, stop)
        # The request line and the empty one are no headers.
        return stop if self._head_lines <= MAX_HEAD_LINES + 2 else start

    def _head_end(self, data: bytes, start: int, stop: int) -> int:
        """Return where the head ends; `stop` where it does not end before."""
        if self._head_bytes:
            end = (self._tail + data[start : start + 3]).find(_HEAD_END)
            if end >= 0:
                return min(stop, start + end + len(_HEAD_END) - len(self._tail))
        end = data.find(_HEAD_END, start, stop)
        return stop if end < 0 else end + len(_HEAD_END)

    # --- callbacks of the parser (without super(), which every lookup would pay for) --------------

    def on_headers_complete(self) -> None:
        """Begin a request; its body follows."""
        HttpToolsProtocol.on_headers_complete(self)
        self._begun += 1
        self._in_body = True
        self._head_bytes = 0

    def on_chunk_header(self) -> None:
        """Begin a chunk of a body, or after the last one its trailers."""
        self._head_bytes = 0

    def on_body(self, body: bytes) -> None:
        """Hand on a part of a body; where nobody wants it, up to a limit."""
        self._head_bytes = 0
        HttpToolsProtocol.on_body(self, body)
        if self._begun == self._answered:
            self._unwanted_bytes += len(body)
            if self._unwanted_bytes > MAX_UNWANTED_BYTES:
                self._is_refused = True
                self.transport.close()

    def on_message_complete(self) -> None:
        """Await the next head."""
        HttpToolsProtocol.on_message_complete(self)
        self._in_body = False
        self._head_bytes = self._head_lines = 0

    def on_response_complete(self) -> None:
        """Count the answer, and begin with the next request that waits."""
        self._answered += 1
        HttpToolsProtocol.on_response_complete(self)

    # --- the end ----------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser cannot read."""
        self._refuse(MalformedRequest("expected a request of HTTP/1.1"))

    def _refuse(self, refusal: SluiceError) -> None:
        """Read no more. Answer and close, or close after the answers that are under way."""
        self._is_refused = True
        if self._begun - self._answered == int(self._in_body):
            self.transport.write(_response(refusal))
            self.transport.close()
        else:
            self.flow.pause_reading()
            self.shutdown()

    def _look(self) -> None:
        seen = (self._begun, self._answered)
        if seen == self._seen and self._begun == self._answered:
            self.transport.close()
            return
        self._seen = seen
        self._next_look = self.loop.call_later(HEAD_LIMIT_S, self._look)


def _too_large() -> HeadTooLarge:
    return HeadTooLarge(
        f"expected a head of at most {MAX_HEAD_BYTES} bytes and {MAX_HEAD_LINES} headers"
    )


def _response(refusal: SluiceError) -> bytes:
    document = ProblemOut.of(refusal)
    body = dump_json(document)
    head = (
        f"HTTP/1.1 {document.status} {HTTPStatus(document.status).phrase}\r\n"
        "content-type: application/problem+json\r\n"
        f"content-length: {len(body)}\r\n"
        "x-content-type-options: nosniff\r\n"
        "connection: close\r\n\r\n"
    )
    return head.encode() + body
