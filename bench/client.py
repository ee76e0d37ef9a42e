"""A small HTTP/1.1 client on raw sockets, so that the service and not the client is measured.

One thread and one connection per unit of concurrency, kept alive; requests are bytes made before
the clock starts, and of an answer only the status and the length are read.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench.timing import Timing

_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Load:
    """What a run of requests took: wall time, the client's own processor time, each request's."""

    wall_s: float
    client_cpu_s: float
    timing: Timing
    failures: int

    @property
    def per_second(self) -> float:
        """Requests per second."""
        return len(self.timing.samples_ms) / self.wall_s


def get(path: str) -> bytes:
    """A GET as it goes over the wire."""
    return f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode()


def post(path: str, body: bytes) -> bytes:
    """A POST of JSON as it goes over the wire."""
    head = f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Connection:
    """One kept-alive connection."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: bytes) -> tuple[int, bytes]:
        """Send a request; the status and the body of its answer."""
        self._socket.sendall(request)
        data = self._more(b"")
        while (end := data.find(b"\r\n\r\n")) < 0:
            data = self._more(data)
        length = _content_length(data[:end])
        while len(data) < end + 4 + length:
            data = self._more(data)
        return int(data[9:12]), data[end + 4 :]

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _more(self, data: bytes) -> bytes:
        part = self._socket.recv(65536)
        if not part:
            raise ConnectionError("the service closed the connection")
        return data + part


def _content_length(head: bytes) -> int:
    name = b"\r\ncontent-length:"
    start = head.lower().find(name)
    if start < 0:
        raise ConnectionError("an answer without content-length")
    return int(head[start + len(name) :].split(b"\r\n", 1)[0])


def send_all(port: int, requests: Sequence[bytes], *, concurrency: int) -> Load:
    """Send all requests, shared out among the connections as they become free."""
    waiting = iter(requests)
    lock = threading.Lock()
    samples: list[float] = []
    failures: list[int] = []
    connections = [Connection(port) for _ in range(concurrency)]

    def work(connection: Connection) -> None:
        while True:
            with lock:
                request = next(waiting, None)
            if request is None:
                return
            started_s = time.perf_counter()
            try:
                status, _ = connection.ask(request)
            except OSError:
                return  # what stays without an answer is counted below
            samples.append((time.perf_counter() - started_s) * 1e3)
            if status != 200:
                failures.append(status)

    threads = [threading.Thread(target=work, args=(one,), daemon=True) for one in connections]
    cpu_s, started_s = time.process_time(), time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall_s, cpu_s = time.perf_counter() - started_s, time.process_time() - cpu_s
    for connection in connections:
        connection.close()
    if len(samples) != len(requests):
        missing = len(requests) - len(samples)
        raise ConnectionError(f"{missing} of {len(requests)} requests were not answered")
    return Load(wall_s, cpu_s, Timing(tuple(samples)), len(failures))
