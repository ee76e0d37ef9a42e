"""The guard of each HTTP connection: no head is parsed that is too large, none waits for ever.

The server's own protocol has no limit on a head: one endless header makes it copy all that it has
so far with each piece, and a million short ones fill the memory. What a connection may have the
parser keep is therefore bounded here, before it is parsed. Only names that the server's class has
without an underscore are used, and none of what it keeps for a request under way.

Nor may one client have all connections that the system has for this process: those of one address
are counted, and what is more is refused before anything of it is read.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from http import HTTPStatus
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from types import FrameType
from typing import ClassVar

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.schemas.base import ProblemOut, dump_json
from domain.errors import HeadTooLarge, MalformedRequest, Overloaded, SluiceError

HEAD_LIMIT_S = 20.0  # after each, a look; a connection without progress does not see the second
MAX_HEAD_BYTES = 2**16  # of a request line and its headers, of a chunk's line, and of all trailers
MAX_HEAD_LINES = 100
MAX_PIPELINED = 8  # requests that wait on one connection for the one before them
MAX_UNWANTED_BYTES = 2**23  # of bodies whose request has been answered: their sender reads at last

_HEAD_END = b"\r\n\r\n"
# Parsed at once of a body without a length: where it ends, more headers may be than are accepted.
_BODY_PIECE_BYTES = 2**13


_TURNED_AWAY_S = 0.5
_UNWANTED_PAUSE_S = 0.002  # after each piece of a body that nobody wants
_SITE_BITS = 64  # of an IPv6 address: the network of one site, whose hosts choose the rest


class Door:
    """Counts the open connections of each address, for one server. For the event loop's thread.

    `limit` is the most that one address may have; addresses in `exempt` are proxies, behind which
    are many clients. Once `is_closing`, each answer is the last one of its connection.
    """

    def __init__(
        self,
        limit: int,
        *,
        exempt: Sequence[IPv4Network | IPv6Network] = (),
        is_closing: bool = False,
    ) -> None:
        self.limit = limit
        self.is_closing = is_closing
        self._exempt = tuple(exempt)
        self._open: Counter[str] = Counter()

    @property
    def open_connections(self) -> int:
        """How many are open, of all addresses."""
        return self._open.total()

    def enter(self, address: str) -> str | None:
        """Return under which name a connection is counted from now on; None where it is one too
        many.
        """
        name = _counted_as(address, self._exempt)  # "" where they are not limited
        if name and self._open[name] >= self.limit:
            return None
        self._open[name] += 1
        return name

    def leave(self, name: str) -> None:
        """Forget a connection that was counted under this name."""
        self._open[name] -= 1
        if self._open[name] <= 0:
            del self._open[name]


@lru_cache(4096)
def _counted_as(address: str, exempt: tuple[IPv4Network | IPv6Network, ...]) -> str:
    """Return the name under which an address is counted, "" where it is not limited."""
    try:
        found: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    except ValueError:  # no address: a socket of this machine's files
        return ""
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if any(found in one for one in exempt):
        return ""
    if isinstance(found, IPv6Address) and not found.is_loopback:
        return str(ip_network((found, _SITE_BITS), strict=False))
    return str(found)


class GuardedConnection(HttpToolsProtocol):
    """A connection that is closed where it asks too much, or makes no progress.

    Where between two looks nothing was asked or answered, it is closed. A request under way is
    progress: how long its body may take and how long its answer is the application's to say.
    """

    door: ClassVar[Door]  # of the server; `guarded_by` gives it one

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to watch; turn away one that is too many."""
        super().connection_made(transport)
        self._counted = self.door.enter(self.client[0] if self.client else "")
        self._begun = self._answered = 0  # requests
        self._seen = (-1, -1)
        self._in_body = False
        self._is_refused = False
        self._head_bytes = 0  # given to the parser since it last came to something
        self._body_bytes = 0
        self._head_lines = 0
        self._tail = b""  # the last bytes that it was given: the end of a head may come in parts
        self._unwanted_bytes = 0
        if self._counted is not None:
            self._next_look = self.loop.call_later(HEAD_LIMIT_S, self._look)
            return
        # The refusal goes out before anything is read, and a close at once would take it back from
        # a client that is still sending: it is closed once something has come, or soon.
        self._is_refused = True
        self.transport.write(
            _response(
                Overloaded(f"expected at most {self.door.limit} connections from one address")
            )
        )
        self._next_look = self.loop.call_later(_TURNED_AWAY_S, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Watch no longer."""
        self._next_look.cancel()
        if self._counted is not None:
            self.door.leave(self._counted)
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:  # of a reset one: it would hold all of this
            self.timeout_keep_alive_task.cancel()

    def data_received(self, data: bytes) -> None:
        """Parse what has come, head by head, as far as the limits allow."""
        if self._is_refused:
            if self._counted is None:
                self.transport.close()
            else:
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
            left = _declared_length(self.headers) - self._body_bytes
            return max(min(stop, start + _BODY_PIECE_BYTES), min(len(data), start + left))
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
        if self.door.is_closing:
            self.cycle.keep_alive = False
        self._begun += 1
        self._in_body = True
        self._head_bytes = self._body_bytes = 0

    def on_chunk_header(self) -> None:
        """Begin a chunk of a body, or after the last one its trailers."""
        self._head_bytes = 0

    def on_body(self, body: bytes) -> None:
        """Hand on a part of a body; where nobody wants it, up to a limit."""
        self._head_bytes = 0
        self._body_bytes += len(body)
        HttpToolsProtocol.on_body(self, body)
        if self._begun == self._answered:
            self._unwanted_bytes += len(body)
            if self._unwanted_bytes > MAX_UNWANTED_BYTES:
                self._is_refused = True
                self.transport.close()
            elif not self.flow.read_paused:
                # The loop would read for as long as the sender keeps up, megabytes in one turn.
                self.flow.pause_reading()
                self.loop.call_later(_UNWANTED_PAUSE_S, self._read_on)

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

    def _read_on(self) -> None:
        if self._begun == self._answered:  # else a request has it read on, once it may
            self.flow.resume_reading()

    def _look(self) -> None:
        seen = (self._begun, self._answered)
        if seen == self._seen and self._begun == self._answered:
            self.transport.close()
            return
        self._seen = seen
        self._next_look = self.loop.call_later(HEAD_LIMIT_S, self._look)


def _declared_length(headers: Sequence[tuple[bytes, bytes]]) -> int:
    """Return a body's length by its head, which the parser has checked; 0 where chunks say it."""
    length = 0
    for name, value in headers:
        if name == b"transfer-encoding":
            return 0
        if name == b"content-length" and value.isdigit():
            length = int(value)
    return length


def _too_large() -> HeadTooLarge:
    return HeadTooLarge(
        f"expected a head of at most {MAX_HEAD_BYTES} bytes and {MAX_HEAD_LINES} headers"
    )


def _response(refusal: SluiceError) -> bytes:
    document = ProblemOut.of(refusal)
    body = dump_json(document)
    later = f"retry-after: {Overloaded.retry_after_s}\r\n" if document.status == 503 else ""
    head = (
        f"HTTP/1.1 {document.status} {HTTPStatus(document.status).phrase}\r\n"
        f"{later}"
        "content-type: application/problem+json\r\n"
        f"content-length: {len(body)}\r\n"
        "x-content-type-options: nosniff\r\n"
        f"x-request-id: {secrets.token_hex(16)}\r\n"
        "connection: close\r\n\r\n"
    )
    return head.encode() + body


def guarded_by(door: Door) -> type[GuardedConnection]:
    """Return the kind of connection of one server."""
    return type("GuardedConnection", (GuardedConnection,), {"door": door})


# --- the server's end -----------------------------------------------------------------------------


class DrainingServer(uvicorn.Server):
    """A server that goes on for `drain_s` after SIGTERM, for those who have yet to learn of it.

    `begin` is called first; by then every new request has to hear that the service is not ready. A
    further signal, or Ctrl-C, does not wait.
    """

    def __init__(self, config: uvicorn.Config, drain_s: float, begin: Callable[[], None]) -> None:
        super().__init__(config)
        self._drain_s = drain_s
        self._begin = begin
        self._until_s: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end."""
        if sig == signal.SIGTERM and self.started and self._until_s is None and self._drain_s > 0:
            self._until_s = time.monotonic() + self._drain_s
            self._begin()
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Return whether the port is to be closed now; asked ten times a second."""
        if self._until_s is not None and not self.should_exit and time.monotonic() >= self._until_s:
            super().handle_exit(signal.SIGTERM, None)
        return await super().on_tick(counter)
