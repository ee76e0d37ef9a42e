"""Hostile and slow clients: heads have limits, and a connection that comes to nothing is closed."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any, Literal, cast
from unittest.mock import Mock

import pytest
import uvicorn
from uvicorn.server import ServerState

from app.http import connections
from app.http.connections import (
    MAX_HEAD_BYTES,
    MAX_HEAD_LINES,
    MAX_PIPELINED,
    MAX_UNWANTED_BYTES,
    Door,
    GuardedConnection,
)
from app.serving import configured
from tests.app.serving import GUARD_S, wait_until

LIMIT_S = 0.2
DRIP_S = 0.02
HOST = b"Host: localhost\r\n"
REQUEST_LINE = b"POST / HTTP/1.1\r\n" + HOST
UNREAD = b"POST /unread HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n"
CHUNKED = REQUEST_LINE + b"Transfer-Encoding: chunked\r\n\r\n"


@dataclass
class Application:
    """Answers with the number of bytes of the body; counts the headers of each request."""

    headers: list[int] = field(default_factory=list)
    looks: int = 0
    door: Door = field(default_factory=lambda: Door(512))

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        """At /unread at once, at /broken by half; at /late once a connection was looked at several
        times.
        """
        received = 0
        more = scope["path"] not in ("/unread", "/broken")
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            received += len(message["body"])
            more = message["more_body"]
        self.headers.append(len(scope["headers"]))
        if scope["path"] == "/late":
            seen = self.looks
            while self.looks < seen + 4:
                await asyncio.sleep(DRIP_S)
            connections.HEAD_LIMIT_S = GUARD_S  # what comes after it may take its time
        body = b"%d bytes;" % received
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if scope["path"] == "/broken":
            raise RuntimeError("no more comes")
        await send({"type": "http.response.body", "body": body})


@dataclass(frozen=True)
class Server:
    port: int
    application: Application


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server with the options of the service's own, and time for every test."""
    with serving_with("auto") as running:
        yield running


@pytest.fixture(scope="module", params=["asyncio", "uvloop"])
def on_loop(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server on each event loop."""
    with serving_with(request.param) as running:
        yield running


@contextmanager
def serving_with(loop: Literal["auto", "asyncio", "uvloop"]) -> Iterator[Server]:
    """A server on this event loop."""
    application = Application()
    config = configured(application, door=application.door, log_level="critical")
    config.lifespan, config.loop = "off", loop
    listener = socket.create_server(("127.0.0.1", 0))
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    wait_until(lambda: running.started)
    yield Server(listener.getsockname()[1], application)
    running.should_exit = True
    thread.join(GUARD_S)


@pytest.fixture
def impatient(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server with little patience, which counts how often it looks at a connection."""
    look = GuardedConnection._look

    def counted(connection: GuardedConnection) -> None:
        server.application.looks += 1
        look(connection)

    monkeypatch.setattr(GuardedConnection, "_look", counted)
    monkeypatch.setattr(connections, "HEAD_LIMIT_S", LIMIT_S)
    return server


@contextmanager
def connected(server: Server, *, timeout_s: float = GUARD_S) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout_s) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield connection


def until_closed(connection: socket.socket) -> bytes:
    """All that is answered."""
    answered = b""
    while True:
        try:
            received = connection.recv(2**16)
        except ConnectionResetError:  # it left unread what had been sent
            return answered
        if not received:
            return answered
        answered += received


def answered(connection: socket.socket, *, count: int = 1) -> bytes:
    """What is answered, up to this many whole answers."""
    received = b""
    while received.count(b"bytes;") < count:
        received += (piece := connection.recv(2**16))
        assert piece, received
    return received


def send_until_refused(connection: socket.socket, pieces: Iterator[bytes]) -> None:
    """Send for as long as somebody takes it."""
    try:
        for piece in pieces:
            connection.sendall(piece)
    except (ConnectionResetError, BrokenPipeError):
        return


def endless(piece: bytes) -> Iterator[bytes]:
    """Sixteen times what is ever accepted: nobody takes all of it and closes nevertheless."""
    yield from [piece * (2**16 // len(piece))] * 512


def head_of(length: int) -> bytes:
    """A head of this many bytes."""
    start = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: "
    return start + b"x" * (length - len(start) - 4) + b"\r\n\r\n"


def headers_of(count: int) -> bytes:
    """A head of this many headers."""
    others = b"".join(b"X-%d: y\r\n" % i for i in range(count - 1))
    return b"GET / HTTP/1.1\r\n" + HOST + others + b"\r\n"


def problem_of(answer: bytes) -> tuple[int, str]:
    """The status and the code of a refusal, which is the last that was answered."""
    head, _, body = answer.rpartition(b"\r\n\r\n")
    assert b"\r\ncontent-type: application/problem+json\r\n" in head
    assert b"\r\nconnection: close" in head
    document = json.loads(body)
    assert head.startswith(b"HTTP/1.1 %d " % document["status"])
    return document["status"], document["code"]


class TestUpgrades:
    """Nothing here speaks another protocol: what asks for one is answered in HTTP/1.1."""

    ASKS = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

    def test_all_of_a_connection_are_answered_and_counted(self, server: Server) -> None:
        before = server.application.door.upgrades
        with connected(server) as connection:
            for _ in range(100):
                connection.sendall(self.ASKS)
                assert answered(connection).startswith(b"HTTP/1.1 200")
        assert server.application.door.upgrades == before + 100

    @pytest.mark.parametrize("cut", [1, 20, 30])
    def test_what_is_sent_ahead_is_not_lost(self, server: Server, cut: int) -> None:
        """Also the part of a head that arrives with it."""
        following = headers_of(2)
        with connected(server) as connection:
            connection.sendall(self.ASKS + following[:cut])
            first = answered(connection)
            connection.sendall(following[cut:] + self.ASKS)
            rest = answered(connection, count=2)
        assert (first + rest).count(b"HTTP/1.1 200") == 3

    @pytest.mark.parametrize("name", [b"Upgrade", b"upgrade"])
    def test_a_body_is_its_requests_and_no_next_one(self, server: Server, name: bytes) -> None:
        """Of a known length or in chunks: what looks like a request in it is none."""
        inner = b"GET /profiles HTTP/1.1\r\nHost: x\r\n\r\n"
        asks = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n" + name + b": h2c\r\n"
        length = b"Content-Length: %d\r\n\r\n" % len(inner)
        chunked = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(inner)
        for body in (length + inner, chunked + inner + b"\r\n0\r\n\r\n"):
            with connected(server) as connection:
                connection.sendall(asks + body + headers_of(1))
                sent = answered(connection, count=2)
                assert sent.count(b"HTTP/1.1 ") == 2
                assert b"%d bytes;" % len(inner) in sent

    def test_a_body_behind_another_request_is_refused(self, server: Server) -> None:
        """What looks like a request in it is none, and is not begun."""
        inner = b"GET /profiles HTTP/1.1\r\nHost: x\r\n\r\n"
        asks = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n"
        seen = len(server.application.headers)
        with connected(server) as connection:
            connection.sendall(
                headers_of(1) + asks + b"Content-Length: %d\r\n\r\n" % len(inner) + inner
            )
            sent = until_closed(connection)
        assert sent.startswith(b"HTTP/1.1 200")
        assert sent.count(b"bytes;") == 1
        assert len(server.application.headers) == seen + 1

    @pytest.mark.parametrize("cut", [-1, -2, -3, -4])
    def test_a_body_behind_a_head_cut_at_its_end_is_left_as_it_is(
        self, server: Server, cut: int
    ) -> None:
        """What looks like the header in it is a part of it."""
        body = b"\r\nupgrade: x\r\n\r\n"
        head = REQUEST_LINE + b"Content-Length: %d\r\n\r\n" % len(body)
        before = server.application.door.upgrades
        with connected(server) as connection:
            connection.sendall(head[:cut])
            threading.Event().wait(DRIP_S)
            connection.sendall(head[cut:] + body)
            assert b"%d bytes;" % len(body) in answered(connection)
        assert server.application.door.upgrades == before

    def test_a_body_behind_a_head_in_pieces_is_refused(self, server: Server) -> None:
        """The parser has left it: it would be read as a request."""
        asks = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUPGRADE: h2c\r\n"
        body = b"GET /profiles HTTP/1.1\r\nHost: x\r\n\r\n"
        with connected(server) as connection:
            connection.sendall(asks + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            sent = until_closed(connection)
        assert sent.count(b"HTTP/1.1 ") <= 2
        assert b"/profiles" not in sent


class TestHeads:
    @pytest.mark.parametrize(
        "head",
        [
            pytest.param(head_of(MAX_HEAD_BYTES), id="of as many bytes as are accepted"),
            pytest.param(headers_of(MAX_HEAD_LINES), id="of as many headers as are accepted"),
            pytest.param(b"\r\n\r\n" + headers_of(3), id="after empty lines"),
        ],
    )
    @pytest.mark.parametrize("before", [0, 2])
    def test_accepted(self, server: Server, head: bytes, before: int) -> None:
        """The first of a connection as well as one after others."""
        with connected(server) as connection:
            for _ in range(before):
                connection.sendall(headers_of(2))
                answered(connection)
            connection.sendall(head)
            assert answered(connection).startswith(b"HTTP/1.1 200")

    @pytest.mark.parametrize(
        "head",
        [
            pytest.param(head_of(MAX_HEAD_BYTES + 1), id="of a byte more"),
            pytest.param(headers_of(MAX_HEAD_LINES + 1), id="of a header more"),
            pytest.param(headers_of(200_000), id="of many more"),
            pytest.param(b"GET /" + b"x" * MAX_HEAD_BYTES, id="with a long path"),
            pytest.param(b"\r\n" * 2 * MAX_HEAD_LINES, id="of empty lines"),
        ],
    )
    @pytest.mark.parametrize("before", [0, 2])
    def test_refused(self, server: Server, head: bytes, before: int) -> None:
        """And the connection is closed; the application sees nothing of it."""
        with connected(server) as connection:
            for _ in range(before):
                connection.sendall(headers_of(2))
                answered(connection)
            seen = len(server.application.headers)
            send_until_refused(connection, iter([head]))
            assert problem_of(until_closed(connection)) == (431, "head_too_large")
            assert len(server.application.headers) == seen

    @pytest.mark.parametrize("length", [5, 100_000])
    def test_after_a_body(self, server: Server, length: int) -> None:
        """Both in one piece: where the body ends is for the parser to say."""
        body = REQUEST_LINE + b"Content-Length: %d\r\n\r\n" % length + b"x" * length
        with connected(server) as connection:
            connection.sendall(body + headers_of(MAX_HEAD_LINES))
            assert b"%d bytes;" % length in answered(connection, count=2)
            send_until_refused(connection, iter([body + headers_of(100_000)]))
            assert b"200 OK" in until_closed(connection)

    @pytest.mark.parametrize("piece_bytes", [1, 3, 1000])
    def test_in_pieces(self, server: Server, piece_bytes: int) -> None:
        with connected(server) as connection:
            head = head_of(3000) if piece_bytes < 1000 else head_of(MAX_HEAD_BYTES)
            for start in range(0, len(head), piece_bytes):
                connection.sendall(head[start : start + piece_bytes])
            assert answered(connection).startswith(b"HTTP/1.1 200")

    def test_in_two_pieces_the_second_with_a_body(self, server: Server) -> None:
        """Wherever it is divided; the lines of the body are none of the head."""
        body = b"\n" * 300
        head = REQUEST_LINE + b"Content-Length: 300\r\n\r\n"
        with connected(server) as connection:
            for cut in range(1, len(head)):
                connection.sendall(head[:cut])
                connection.sendall(head[cut:] + body)
                assert b"300 bytes;" in answered(connection)

    def test_one_that_trickles_in_for_ever(self, server: Server) -> None:
        """Bytes count however they arrive."""

        def pieces() -> Iterator[bytes]:
            yield b"GET / HTTP/1.1\r\nX: "
            for _ in range(MAX_HEAD_BYTES):
                yield b"x"

        with connected(server) as connection:
            send_until_refused(connection, pieces())
            assert problem_of(until_closed(connection)) == (431, "head_too_large")

    def test_what_is_no_http(self, server: Server) -> None:
        with connected(server) as connection:
            connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
            assert problem_of(until_closed(connection)) == (400, "malformed_request")

    def test_another_protocol_is_not_taken_up(self, server: Server) -> None:
        """A connection that changed over would have no guard."""
        upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        key = b"Sec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\n\r\n"
        with connected(server) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + upgrade + key)
            assert answered(connection).startswith(b"HTTP/1.1 200")


class TestHosts:
    """For whom a request is, it says once; in HTTP/1.0 it need not (RFC 9112, 3.2)."""

    @pytest.mark.parametrize(
        ("version", "hosts"),
        [
            pytest.param(b"1.1", b"", id="none"),
            pytest.param(b"1.1", b"Host: a\r\nHost: a\r\n", id="the same twice"),
            pytest.param(b"1.1", b"Host: a\r\nhOST: b\r\n", id="two"),
            pytest.param(b"1.1", b"Host:\r\nHost:\r\n", id="two without a name"),
            pytest.param(b"1.1", HOST * 50, id="many"),
            pytest.param(b"1.0", b"Host: a\r\nHost: b\r\n", id="two of HTTP/1.0"),
            pytest.param(b"1.1", b"X-Host: a\r\nHosts: a\r\n", id="others"),
        ],
    )
    @pytest.mark.parametrize("before", [0, 2])
    @pytest.mark.parametrize("piece_bytes", [7, 10_000])
    def test_refused(
        self, on_loop: Server, version: bytes, hosts: bytes, before: int, piece_bytes: int
    ) -> None:
        """And the connection is closed; the application sees nothing of it."""
        head = b"POST / HTTP/" + version + b"\r\n" + hosts + b"Content-Length: 3\r\n\r\nabc"
        with connected(on_loop) as connection:
            for _ in range(before):
                connection.sendall(headers_of(1))
                answered(connection)
            seen = len(on_loop.application.headers)
            pieces = range(0, len(head), piece_bytes)
            send_until_refused(connection, (head[at : at + piece_bytes] for at in pieces))
            answer = until_closed(connection)
            assert problem_of(answer) == (400, "malformed_request")
            assert b"exactly one Host" in answer
            assert len(on_loop.application.headers) == seen

    @pytest.mark.parametrize(
        ("version", "hosts"),
        [(b"1.0", b""), (b"1.0", HOST), (b"1.1", HOST), (b"1.1", b"hOsT:\r\n")],
    )
    def test_accepted(self, on_loop: Server, version: bytes, hosts: bytes) -> None:
        with connected(on_loop) as connection:
            connection.sendall(b"GET / HTTP/" + version + b"\r\n" + hosts + b"\r\n")
            assert answered(connection).startswith(b"HTTP/1.1 200")

    def test_refused_behind_a_request_under_way(self, on_loop: Server) -> None:
        """That one is answered; nothing is written into the middle of its answer."""
        with connected(on_loop) as connection:
            connection.sendall(headers_of(1) + b"GET / HTTP/1.1\r\n\r\n" + headers_of(1))
            answer = until_closed(connection)
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert answer.count(b"bytes;") == 1


class TestBodies:
    def test_chunks(self, server: Server) -> None:
        """With what may stand beside them."""
        with connected(server) as connection:
            chunks = b"5;name=value\r\nhello\r\n" * 3000 + b"0\r\nX-Sum: 1\r\n\r\n"
            connection.sendall(CHUNKED + chunks)
            assert b"15000 bytes;" in answered(connection)

    @pytest.mark.parametrize(
        ("start", "piece"),
        [
            pytest.param(b"5;", b"x", id="a chunk's extension"),
            pytest.param(b"0\r\nX: ", b"x", id="one trailer"),
            pytest.param(b"0\r\n", b"X: y\r\n", id="many trailers"),
            pytest.param(b"0", b"0", id="a chunk's length"),
        ],
    )
    def test_endless_beside_its_bytes(self, server: Server, start: bytes, piece: bytes) -> None:
        seen = len(server.application.headers)
        with connected(server) as connection:
            connection.sendall(CHUNKED + start)
            send_until_refused(connection, endless(piece))
            assert problem_of(until_closed(connection))[0] in (400, 431)
        assert len(server.application.headers) == seen

    @pytest.mark.parametrize("number", [MAX_HEAD_LINES, 5000])
    def test_too_many_trailers_in_one_piece(self, server: Server, number: int) -> None:
        """They are headers, wherever they stand."""
        with connected(server) as connection:
            connection.sendall(CHUNKED + b"0\r\n" + b"a: b\r\n" * number + b"\r\n")
            assert until_closed(connection).startswith(b"HTTP/1.1 431")

    def test_broken_after_its_head(self, server: Server) -> None:
        with connected(server) as connection:
            connection.sendall(CHUNKED + b"what\r\n")
            assert problem_of(until_closed(connection)) == (400, "malformed_request")

    def test_of_a_request_that_is_answered(self, server: Server) -> None:
        """The rest of it is read for a while, so that its sender comes to read the answer."""
        with connected(server) as connection:
            connection.sendall(UNREAD % MAX_UNWANTED_BYTES)
            answered(connection)
            connection.sendall(b"x" * MAX_UNWANTED_BYTES + headers_of(3))
            answered(connection)
        with connected(server) as connection:
            connection.sendall(UNREAD % (16 * MAX_UNWANTED_BYTES))
            answered(connection)
            send_until_refused(connection, endless(b"x"))
            assert until_closed(connection) == b""

    @pytest.mark.parametrize("last", [b"HTTP/1.1\r\nConnection: close", b"HTTP/1.0"])
    @pytest.mark.parametrize("rest", [b"", headers_of(3)])
    def test_of_the_last_request_that_is_answered(
        self, on_loop: Server, last: bytes, rest: bytes
    ) -> None:
        """Its sender comes to read the answer too, and the connection ends with the body."""
        seen = len(on_loop.application.headers)
        for body, length in (
            (b"x" * (MAX_UNWANTED_BYTES // 4), b"Content-Length: %d" % (MAX_UNWANTED_BYTES // 4)),
            (b"f\r\n%b\r\n" % (b"x" * 15) * 4096 + b"0\r\n\r\n", b"Transfer-Encoding: chunked"),
        ):
            if b"1.0" in last and b"chunked" in length:
                continue
            with connected(on_loop) as connection:
                head = b"POST /unread " + last + b"\r\n" + HOST + length
                connection.sendall(head + b"\r\n\r\n")
                first = answered(connection)
                connection.sendall(body)
                send_until_refused(connection, iter((rest,)))
                assert first + until_closed(connection) == first
            seen += 1
        assert len(on_loop.application.headers) == seen

    def test_of_a_last_request_that_is_endless(self, on_loop: Server) -> None:
        """The limit of unwanted bodies is its too."""
        with connected(on_loop) as connection:
            close = b"\r\nConnection: close\r\n\r\n"
            connection.sendall((UNREAD % (16 * MAX_UNWANTED_BYTES)).replace(b"\r\n\r\n", close))
            answered(connection)
            send_until_refused(connection, endless(b"x"))

    def test_of_an_answer_that_breaks_off_it_is_not_waited_for(self, on_loop: Server) -> None:
        """Nothing would end it."""
        with connected(on_loop) as connection:
            close = b"\r\nConnection: close\r\n\r\n"
            asked = (UNREAD % MAX_UNWANTED_BYTES).replace(b"\r\n\r\n", close)
            connection.sendall(asked.replace(b"/unread", b"/broken"))
            assert until_closed(connection).endswith(b"\r\n\r\n")
            send_until_refused(connection, endless(b"x"))

    def test_behind_the_last_request_of_a_service_that_ends(self, on_loop: Server) -> None:
        """What came with it is not begun, as nobody would hear of it."""
        application = on_loop.application
        seen = len(application.headers)
        ahead = REQUEST_LINE + b"Content-Length: 1\r\n\r\n"
        application.door.is_closing = True
        try:
            with connected(on_loop) as connection:
                connection.sendall(ahead + b"x" + UNREAD % 5 + b"x")
                assert until_closed(connection).count(b"HTTP/1.1 200 OK") == 1
        finally:
            application.door.is_closing = False
        assert len(application.headers) == seen + 1

    def test_of_who_waits_to_be_told_to_send_it(self, on_loop: Server) -> None:
        """He is told the answer, and that no other follows."""
        with connected(on_loop) as connection:
            expects = b"\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n"
            connection.sendall((UNREAD % MAX_UNWANTED_BYTES).replace(b"\r\n\r\n", expects))
            assert until_closed(connection).startswith(b"HTTP/1.1 200 OK")

    def test_of_who_waits_and_is_refused_nobody_waits_for_it(self, on_loop: Server) -> None:
        """He is told that the connection ends, as what he sent next would be read as his body."""
        expects = b"\r\nExpect: 100-continue\r\n\r\n"
        with connected(on_loop) as connection:
            connection.sendall((UNREAD % 5).replace(b"\r\n\r\n", expects))
            answer = until_closed(connection)
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert b"\r\nconnection: close\r\n" in answer
        assert b"100 Continue" not in answer

    @pytest.mark.parametrize("waits", [True, False])
    def test_of_who_is_told_to_send_it_is_read(self, on_loop: Server, waits: bool) -> None:
        """He is answered whole, whether he waits or not."""
        expects = REQUEST_LINE + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n"
        with connected(on_loop) as connection:
            connection.sendall(expects if waits else expects + b"abcde")
            answer = connection.recv(2**16)
            assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
            if waits:
                connection.sendall(b"abcde")
            assert (answer + until_closed(connection)).endswith(b"5 bytes;")

    def test_such_a_rest_is_read_in_pieces(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A sender that keeps up does not keep the loop from all others."""
        pieces: list[GuardedConnection] = []
        data_received = GuardedConnection.data_received

        def counted(connection: GuardedConnection, data: bytes) -> None:
            if len(data) > 1000:
                pieces.append(connection)
            data_received(connection, data)

        def sent(connection: socket.socket) -> None:
            with suppress(OSError):  # not all of it is read
                connection.sendall(b"x" * 10**6)

        monkeypatch.setattr(GuardedConnection, "data_received", counted)
        monkeypatch.setattr(connections, "_UNWANTED_PAUSE_S", GUARD_S)
        with connected(server) as connection, connected(server) as other:
            connection.sendall(UNREAD % 1_000_000)
            answered(connection)
            sender = threading.Thread(target=sent, args=(connection,), daemon=True)
            sender.start()
            wait_until(lambda: bool(pieces))
            for _ in range(3):
                other.sendall(headers_of(1))
                answered(other)
            assert len(pieces) == 1
            # That nobody hears of a paused connection's end would hold up what awaits that all end.
            pieces[0].loop.call_soon_threadsafe(pieces[0].transport.close)
            sender.join(GUARD_S)


class TestManyAtOnce:
    def test_pipelined_requests(self, server: Server) -> None:
        with connected(server) as connection:
            connection.sendall(headers_of(1) * MAX_PIPELINED)
            assert answered(connection, count=MAX_PIPELINED).count(b"200 OK") == MAX_PIPELINED
            connection.sendall(headers_of(1))
            answered(connection)

    def test_more_of_them_than_may_wait(self, server: Server) -> None:
        """Those that were read are answered; the client has to ask again for the rest."""
        with connected(server) as connection:
            send_until_refused(connection, iter([headers_of(1) * 20_000]))
            count = until_closed(connection).count(b"bytes;")
            assert MAX_PIPELINED <= count <= MAX_PIPELINED + 1

    @pytest.mark.parametrize("length", [MAX_HEAD_BYTES + 1000, 2 * MAX_HEAD_BYTES])
    def test_too_large_a_head_in_a_piece_with_others(self, server: Server, length: int) -> None:
        """Wherever the pieces that come end."""
        seen = len(server.application.headers)
        with connected(server) as connection:
            connection.sendall(headers_of(1) * 3 + head_of(length) + headers_of(1))
            sent = until_closed(connection)
        assert b"HTTP/1.1 431" in sent or sent.count(b"HTTP/1.1 200") <= 3
        assert len(server.application.headers) <= seen + 3

    def test_too_large_a_head_behind_a_request_under_way(self, impatient: Server) -> None:
        """Nothing is written into the middle of its answer."""
        with connected(impatient) as connection:
            connection.sendall(b"GET /late HTTP/1.1\r\nHost: localhost\r\n\r\n")
            send_until_refused(connection, iter([headers_of(1000)]))
            answer = until_closed(connection)
            assert answer.startswith(b"HTTP/1.1 200 OK")
            assert answer.endswith(b"bytes;")


def drips_until_closed(connection: socket.socket) -> bytes:
    """What was answered to a byte every now and then, until there was nobody to take them."""
    received = b""
    for _ in range(int(GUARD_S / DRIP_S)):
        try:
            connection.sendall(b"x")
            piece = connection.recv(1000)
        except TimeoutError:
            continue
        except ConnectionError:
            return received
        if not piece:
            return received
        received += piece
    raise AssertionError("it was never closed")


class TestSlowness:
    def test_a_head_that_never_ends(self, impatient: Server) -> None:
        with connected(impatient, timeout_s=DRIP_S) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
            assert drips_until_closed(connection) == b""

    def test_a_body_that_nobody_reads_any_more(self, impatient: Server) -> None:
        """Its request has been answered; the rest of it trickles in."""
        with connected(impatient, timeout_s=DRIP_S) as connection:
            connection.sendall(UNREAD % 100_000)
            assert drips_until_closed(connection).endswith(b"bytes;")

    def test_an_answer_that_takes_longer(self, impatient: Server) -> None:
        """It is under way: the connection stays for it, and for the request after it.

        However busy the machine: several looks fall into the answer, and at most one, which finds
        it answered, between it and the next request.
        """
        with connected(impatient) as connection:
            for path in (b"/late", b"/"):
                connection.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
                answered(connection)


class TestConnectionsOfAnAddress:
    def test_one_too_many_is_refused_until_another_one_ends(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With a problem document and a time to try again, before anything of it is read."""
        door = server.application.door
        wait_until(lambda: not door.open_connections)
        monkeypatch.setattr(door, "limit", 2)
        with connected(server) as first, connected(server) as second:
            for one in (first, second):
                one.sendall(CHUNKED + b"0\r\n\r\n")
                assert one.recv(2**16).startswith(b"HTTP/1.1 200")
            with connected(server) as third:
                head, _, body = until_closed(third).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 503")
            assert re.search(rb"retry-after: [123]\r\n", head)
            assert json.loads(body)["code"] == "overloaded"
            assert "at most 2 connections" in json.loads(body)["detail"]
            first.sendall(CHUNKED + b"0\r\n\r\n")
            assert first.recv(2**16).startswith(b"HTTP/1.1 200")
        wait_until(lambda: not door.open_connections)
        with connected(server) as again:
            again.sendall(CHUNKED + b"0\r\n\r\n")
            assert again.recv(2**16).startswith(b"HTTP/1.1 200")

    def test_who_is_counted_together(self) -> None:
        """Addresses, of IPv6 the networks of sites; neither trusted proxies nor local sockets."""
        door = Door(1, exempt=(ip_network("10.0.0.0/8"),))
        assert door.enter("192.0.2.1") is not None
        assert door.enter("::ffff:192.0.2.1") is None
        assert door.enter("192.0.2.2") is not None
        name = door.enter("2001:db8:0:1::1")
        assert name is not None
        assert door.enter("2001:db8:0:1:ffff::2") is None
        assert door.enter("2001:db8:0:2::1") is not None
        assert door.enter("::1") is not None
        for unlimited in ("10.1.2.3", ""):
            assert [door.enter(unlimited) for _ in range(3)] == [""] * 3
        door.leave(name)
        assert door.enter("2001:db8:0:1::3") is not None


def made(application: Any) -> tuple[GuardedConnection, Mock]:
    """A connection without a client, and its transport."""
    config = configured(application, log_level="error")
    config.load()
    kind = cast(type[GuardedConnection], config.http_protocol_class)
    connection, transport = kind(config, ServerState(), {}), Mock(spec=asyncio.Transport)
    transport.get_extra_info.return_value = None
    transport.is_closing.return_value = False
    connection.connection_made(transport)
    return connection, transport


def test_a_connection_that_is_reset_keeps_no_timer() -> None:
    """It would hold the connection and all that belongs to it for as long as it runs."""

    async def reset() -> asyncio.TimerHandle:
        connection, _ = made(Application())
        timer = asyncio.get_running_loop().call_later(GUARD_S, pytest.fail)
        connection.timeout_keep_alive_task = timer
        connection.connection_lost(ConnectionResetError())
        return timer

    assert asyncio.run(reset()).cancelled()


def test_requests_behind_an_unwanted_body_wait_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ends the pause after the body does not read what is held back for a request."""
    monkeypatch.setattr(connections, "_UNWANTED_PAUSE_S", 0.0)
    application = Application()

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/held":
            await asyncio.Event().wait()
        await application(scope, receive, send)

    async def is_paused() -> bool:
        connection, transport = made(answer)
        connection.data_received(UNREAD % 5)
        while not application.headers:
            await asyncio.sleep(0)
        await asyncio.sleep(DRIP_S)
        connection.data_received(b"x" * 5 + b"GET /held HTTP/1.1\r\nHost: x\r\n\r\n" * 2)
        await asyncio.sleep(DRIP_S)
        transport.is_closing.return_value = True  # nor is the second begun where the first ends
        connection.connection_lost(None)
        return connection.flow.read_paused

    assert asyncio.run(is_paused())
