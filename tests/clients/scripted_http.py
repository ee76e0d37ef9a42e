"""A server that does what a script says, one step a request, and remembers the requests."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

GUARD_S = 30.0  # against tests that hang; nothing that works comes near


@dataclass(frozen=True, slots=True)
class Request:
    """What came: the request line's first two words, headers in lower case, the body."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Step = Callable[[socket.socket], None]


def answer(
    document: Any = None,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
    body: bytes | None = None,
) -> Step:
    """A whole answer, JSON unless it has a body of its own."""
    content = json.dumps(document).encode() if body is None else body
    lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(content)}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return lambda connection: connection.sendall("\r\n".join([*lines, "", ""]).encode() + content)


def problem(status: int, code: str, *, headers: dict[str, str] | None = None) -> Step:
    """A problem document."""
    document = {
        "type": f"urn:sluice:problem:{code}",
        "title": "Said",
        "status": status,
        "code": code,
        "detail": "as the script says",
        "errors": [],
    }
    return answer(document, status=status, headers=headers)


def close(connection: socket.socket) -> None:
    """Say nothing at all."""


def reset(connection: socket.socket) -> None:
    """Break the connection."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def break_off(connection: socket.socket) -> None:
    """Begin an answer and leave."""
    connection.sendall(b"HTTP/1.1 200 Said\r\nContent-Length: 1000\r\n\r\n{")


def pieces(*parts: bytes, is_whole: bool = True) -> Step:
    """An answer in chunks, with its end or without."""

    def step(connection: socket.socket) -> None:
        connection.sendall(
            b"HTTP/1.1 200 Said\r\nContent-Type: text/event-stream\r\n"
            b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        )
        for part in parts:
            connection.sendall(b"%x\r\n%s\r\n" % (len(part), part))
        if is_whole:
            connection.sendall(b"0\r\n\r\n")

    return step


@dataclass(slots=True)
class Scripted:
    """The running server: its address, and what came so far."""

    address: str
    requests: list[Request] = field(default_factory=list)
    silence: threading.Event = field(default_factory=threading.Event)

    def stay_silent(self, connection: socket.socket) -> None:
        """A step: no answer until the test is over."""
        self.silence.wait(GUARD_S)


@contextmanager
def scripted(make: Callable[[Scripted], Sequence[Step]]) -> Iterator[Scripted]:
    """Serve the steps that `make` gives; a request more than there are steps gets 418."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = Scripted(f"http://127.0.0.1:{listener.getsockname()[1]}")
    steps = iter(make(server))
    ended = threading.Event()

    def serve() -> None:
        while not ended.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(GUARD_S)
                if (request := _read(connection)) is not None:
                    server.requests.append(request)
                    with suppress(OSError):  # the client may leave before the end
                        next(steps, problem(418, "no_more_steps"))(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        ended.set()
        server.silence.set()
        socket.create_connection(listener.getsockname()).close()
        thread.join(GUARD_S)
        listener.close()


def _read(connection: socket.socket) -> Request | None:
    data = b""
    while b"\r\n\r\n" not in data:
        if not (part := connection.recv(65536)):
            return None
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(65536)
    method, target, _ = first.split(" ")
    return Request(method, target, headers, body)
