"""The guard of each HTTP connection: no head is parsed that is too large, none waits for ever.

The server's own protocol has no limit on a head: one endless header makes it copy all that it has
so far with each piece, and a million short ones fill the memory. What the parser may be given
without coming to anything is therefore bounded here, to one piece more than the limit. Only names
that the server's class has without an underscore are used.

Nor may one client have all connections that the system has for this process: those of one address
are counted, and what is more is refused before anything of it is read.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from http import HTTPStatus
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from types import FrameType
from typing import ClassVar, cast

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.errors import retry_after_s
from app.schemas.base import dump_json, problem_out
from app.settings import Settings
from domain.errors import HeadTooLarge, MalformedRequest, Overloaded, SluiceError

HEAD_LIMIT_S = 20.0  # after each, a look; a connection without progress does not see the second
MAX_HEAD_BYTES = 2**16  # of a request line and its headers, of a chunk's line, and of all trailers
MAX_HEAD_LINES = 100
MAX_PIPELINED = 8  # requests that wait on one connection for the one before them
MAX_UNWANTED_BYTES = 2**23  # of bodies whose request has been answered: their sender reads at last

_TOO_LARGE = f"expected a head of at most {MAX_HEAD_BYTES} bytes and {MAX_HEAD_LINES} headers"
_NO_BODY = "expected no body where Upgrade comes in pieces or behind another request"
_OF_A_BODY = (b"content-length", b"transfer-encoding")
_UPGRADE = re.compile(rb"\r\nupgrade(?=[ \t]*:)", re.IGNORECASE)
_HEAD_END = b"\r\n\r\n"
_PARSED_BYTES = 2**13  # at a time: thousands of headers are not parsed before they are counted
_TURNED_AWAY_S = 0.5
_UNWANTED_PAUSE_S = 0.002  # after each piece of a body that nobody wants
_SITE_BITS = 64  # of an IPv6 address: the network of one site, whose hosts choose the rest

REFUSALS = ("connections", "head", "malformed", "unwanted_body")


class Door:
    """Counts the open connections of each address, for one server. For the event loop's thread.

    `limit` is the most that one address may have; addresses in `exempt` are proxies, behind which
    are many clients. Once `is_closing`, each answer is the last one of its connection. `refused`
    counts what connections were refused for, one of REFUSALS, and `upgrades` the requests that
    asked for another protocol: in no log, since anybody could fill it.
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
        self.refused = dict.fromkeys(REFUSALS, 0)
        self.upgrades = 0

    @classmethod
    def of(cls, settings: Settings) -> Door:
        """Return the door that these settings ask for."""
        return cls(settings.max_connections_per_address, exempt=settings.trusted_networks)

    @property
    def open_connections(self) -> int:
        """How many are open, of all addresses."""
        return self._open.total()

    def enter(self, address: str) -> str | None:
        """Return the name by which a connection is counted from now on; None for one too many."""
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
        self._is_refused = self._has_ended = False
        self._why: SluiceError | None = None  # of what this refuses, and the parser would take
        # Given to the parser since it last came to something, in whole pieces of what has come.
        self._unbroken_bytes = self._unbroken_lines = 0
        # A head that ends in this piece may have begun in the one before, behind another request.
        self._last_bytes = self._at_most_bytes = 0
        self._unwanted_bytes = 0
        if self._counted is not None:
            self._next_look = self.loop.call_later(HEAD_LIMIT_S, self._look)
            return
        # The refusal goes out before anything is read, and a close at once would take it back from
        # a client that is still sending: it is closed once something has come, or soon.
        self._is_refused = True
        self.door.refused["connections"] += 1
        refusal = Overloaded(f"expected at most {self.door.limit} connections from one address")
        self.transport.write(_response(refusal))
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
        """Parse what has come, as far as the limits allow."""
        if self._is_refused:
            if self._counted is None:
                self.transport.close()
            else:
                self.flow.pause_reading()  # each answer that ends has it read on
            return
        # A piece may begin with the rest of the empty line after a head, and go on with a body.
        if b"pgrade" in data and not self._in_body and data[0] not in b"\r\n":
            data = self._without_upgrade(data)
        for start in range(0, len(data), _PARSED_BYTES):
            if not self._is_refused:
                self._take(data[start : start + _PARSED_BYTES])

    def _take(self, data: bytes) -> None:
        self._unbroken_bytes += len(data)
        self._at_most_bytes = self._last_bytes + self._unbroken_bytes
        self._last_bytes = len(data)
        self._parse(data)
        if self._unbroken_bytes and not self._is_refused:  # the parser has come to nothing
            self._unbroken_lines += data.count(b"\n")
            lines = max(self._unbroken_lines - 2, len(self.headers or ()))  # two are no headers
            if self._unbroken_bytes > MAX_HEAD_BYTES or lines > MAX_HEAD_LINES:
                self._refuse(HeadTooLarge(_TOO_LARGE))

    def _parse(self, data: bytes) -> None:
        """Parse; what asks for another protocol is answered in this one (RFC 9110, section 7.8).

        In place of the server's own, which writes one or two lines for each request that it cannot
        read or that asks for a WebSocket.
        """
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None
        while data:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as asked:
                self.door.upgrades += 1
                data = data[asked.args[0] :]  # what is sent ahead is in this protocol too
            except httptools.HttpParserError:
                self._refuse(self._why or MalformedRequest("expected a request of HTTP/1.1"))
                return

    def _without_upgrade(self, data: bytes) -> bytes:
        """Return what has come with the header Upgrade renamed in its first head.

        The parser would take the body of such a request for another protocol's, and leave it.
        """
        head, end, rest = data.partition(_HEAD_END)
        head, count = _UPGRADE.subn(b"\r\nx-asked", head)
        self.door.upgrades += min(1, count)
        return head + end + rest if count else data

    # --- callbacks of the parser (without super(), which every lookup would pay for) --------------

    def on_headers_complete(self) -> None:
        """Begin a request; its body follows. Raises ValueError, which the parser hands on."""
        self._check_head()
        HttpToolsProtocol.on_headers_complete(self)
        # Who waits to be told to send a body does not send it after a refusal: what he sends next
        # would be read as that body.
        if self.door.is_closing or self.expect_100_continue:
            self.cycle.keep_alive = False
        if not self.cycle.keep_alive:
            self.cycle.transport = cast(asyncio.Transport, _LastAnswer(self))
        self._begun += 1
        self._in_body = True
        self._unbroken_bytes = self._unbroken_lines = 0

    def on_chunk_header(self) -> None:
        """Begin a chunk of a body, or after the last one its trailers."""
        self._unbroken_bytes = 0

    def on_body(self, body: bytes) -> None:
        """Hand on a part of a body; where nobody wants it, up to a limit."""
        self._unbroken_bytes = 0
        HttpToolsProtocol.on_body(self, body)
        if self._begun == self._answered:
            self._unwanted_bytes += len(body)
            if self._unwanted_bytes > MAX_UNWANTED_BYTES:
                self._is_refused = True
                self.door.refused["unwanted_body"] += 1
                self.transport.close()
            elif not self.flow.read_paused:
                # The loop would read for as long as the sender keeps up, megabytes in one turn.
                self.flow.pause_reading()
                self.loop.call_later(_UNWANTED_PAUSE_S, self._read_on)

    def on_message_complete(self) -> None:
        """Await the next head. Raises ValueError where trailers make its request's too large."""
        if len(self.headers) > MAX_HEAD_LINES:
            self._why = HeadTooLarge(_TOO_LARGE)
            raise ValueError(self._why.detail)
        HttpToolsProtocol.on_message_complete(self)
        self._in_body = False
        self._unbroken_bytes = self._unbroken_lines = 0
        if self._has_ended:
            self._is_refused = True
            self.transport.close()

    def on_response_complete(self) -> None:
        """Count the answer, and begin with the next request that waits."""
        self._answered += 1
        HttpToolsProtocol.on_response_complete(self)

    def _check_head(self) -> None:
        """Raise ValueError where a head is too large, too many wait, a body would be left, or it is
        not said once for whom the request is (RFC 9112, 3.2): who stands in between may read
        another one.
        """
        hosts = 0
        for name, _ in self.headers:
            hosts += name == b"host"
        if hosts != 1 and (hosts or self.parser.get_http_version() != "1.0"):
            self._why = MalformedRequest("expected exactly one Host header")
        elif len(self.headers) > MAX_HEAD_LINES or self._begun - self._answered > MAX_PIPELINED:
            self._why = HeadTooLarge(_TOO_LARGE)
        elif self.parser.should_upgrade() and any(name in _OF_A_BODY for name, _ in self.headers):
            self._why = MalformedRequest(_NO_BODY)  # it would be read as a request
        elif self._at_most_bytes > MAX_HEAD_BYTES:  # with what came before and behind it
            line = len(self.parser.get_method()) + len(self.url) + len(b"  HTTP/1.1\r\n\r\n")
            fields = sum(len(name) + len(value) + len(b": \r\n") for name, value in self.headers)
            self._why = HeadTooLarge(_TOO_LARGE) if line + fields > MAX_HEAD_BYTES else None
        if self._why is not None:
            raise ValueError(self._why.detail)

    # --- the end ----------------------------------------------------------------------------------

    def end(self) -> None:
        """Close after the last answer, once its request's body has come: bytes that nobody reads
        would take the answer back from who is still sending. The limits of others hold for it.

        A body of another request, sent ahead of the answer, is nobody's; and what is waited for has
        no limit before an answer is whole.
        """
        is_last = self.cycle.response_complete and self._begun == self._answered + 1
        if is_last and self._in_body and not self.transport.is_closing():
            self._has_ended = True
            self.transport.write_eof()
        else:
            self.transport.close()

    def _refuse(self, refusal: SluiceError) -> None:
        """Read no more. Answer and close, or close after the answers that are under way."""
        if self._has_ended:
            self.transport.close()
            return
        self._is_refused = True
        self.door.refused["head" if isinstance(refusal, HeadTooLarge) else "malformed"] += 1
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


class _LastAnswer:
    """What the last request of a connection is answered on."""

    def __init__(self, connection: GuardedConnection) -> None:
        self.write = connection.transport.write
        self.is_closing = connection.transport.is_closing
        self.close = connection.end


def _response(refusal: SluiceError) -> bytes:
    document = problem_out(refusal)
    body = dump_json(document)
    later = f"retry-after: {retry_after_s()}\r\n" if document.status == 503 else ""
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
        self.at_end: Callable[[], object] = lambda: None  # called once no port is to be open

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End; afterwards a signal that asked for it may end the process at once."""
        self.at_end()
        await super().shutdown(sockets)

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
