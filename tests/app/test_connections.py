"""Slow clients: a connection on which nothing comes about is closed, one that waits is not."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn

from app import connections
from app.console.serving import configured
from tests.app.serving import GUARD_S, wait_until

LIMIT_S = 0.2
DRIP_S = 0.02


async def answering(
    scope: MutableMapping[str, Any],
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
) -> None:
    """Answer at once, unread; or, at /late, after several times the limit."""
    if scope["path"] == "/late":
        await asyncio.sleep(4 * LIMIT_S)
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Of a server with the options of the service's own, and little patience."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(connections, "HEAD_LIMIT_S", LIMIT_S)
        config = configured(answering, log_level="critical")
        config.lifespan = "off"
        listener = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        wait_until(lambda: server.started)
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join(GUARD_S)


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=DRIP_S) as connection:
        yield connection


def drips_until_closed(connection: socket.socket) -> bytes:
    """What was answered to a byte every now and then, until there was nobody to take them."""
    answered = b""
    for _ in range(int(GUARD_S / DRIP_S)):
        try:
            connection.sendall(b"x")
            received = connection.recv(1000)
        except TimeoutError:
            continue
        except ConnectionError:
            return answered
        if not received:
            return answered
        answered += received
    raise AssertionError("it was never closed")


def test_a_head_that_never_ends(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
        assert drips_until_closed(connection) == b""


def test_a_body_that_nobody_reads_any_more(port: int) -> None:
    """Its request has been answered; the rest of it trickles in."""
    with connected(port) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
        assert drips_until_closed(connection).endswith(b"ok")


def test_an_answer_that_takes_longer(port: int) -> None:
    """It is under way: the connection stays for it, and for the request after it."""
    with connected(port) as connection:
        connection.settimeout(GUARD_S)
        for path in ("/late", "/"):
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            received = b""
            while not received.endswith(b"ok"):
                received += (piece := connection.recv(1000))
                assert piece
