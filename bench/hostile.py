"""Clients that send heads without an end, as threads of a process of their own.

    python -m bench.hostile PORT CLIENTS SECONDS

Each client takes the kinds of heads in turn and connects again a quarter of a second after it
was refused. What became of the connections is printed as JSON.
"""

from __future__ import annotations

import itertools
import json
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping

PAUSE_S = 0.25
_WAIT_S = 30.0
_SENT_BYTES = 2**24
_REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
_CHUNKED = b"POST /optimize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
_LONG = b"x" * 2**16

# How a connection begins, and what then follows without end.
HEADS = {
    "one endless header": (_REQUEST + b"X-Long: ", _LONG),
    "endless headers": (_REQUEST, b"a:b\r\n" * 2**14),
    "an endless path": (b"GET /", _LONG),
    "endless empty lines": (b"", b"\r\n" * 2**15),
    "an endless extension of a chunk": (_CHUNKED + b"5;", _LONG),
    "endless trailers": (_CHUNKED + b"0\r\n", b"a:b\r\n" * 2**14),
}
REQUESTS = {"endless requests": (b"", (_REQUEST + b"\r\n") * 2**11)}  # which cost what others cost


def outcome(port: int, start: bytes, following: bytes) -> str:
    """Return what became of one connection: its refusal's status, "closed" or "accepted".

    Accepted is one that is still open when nothing has come about on it for half a minute.
    """
    with socket.create_connection(("127.0.0.1", port), _WAIT_S) as connection:
        try:
            connection.sendall(start)
            for _ in range(_SENT_BYTES // len(following)):
                connection.sendall(following)
        except TimeoutError:
            return "accepted"
        except ConnectionError:
            pass
        return _end(connection)


def _end(connection: socket.socket) -> str:
    answer = b""
    try:
        while piece := connection.recv(2**16):
            answer += piece
    except TimeoutError:
        return "accepted"
    except ConnectionError:
        pass
    *_, last = (b"closed", *answer.split(b"HTTP/1.1 ")[1:])
    status = last[:3].decode()
    return status if status in ("400", "431") else "closed"


def attack(
    port: int, clients: int, seconds: float, kinds: Mapping[str, tuple[bytes, bytes]]
) -> Counter[str]:
    """Have this many clients connect again and again; return how often each outcome was met."""
    end_s = time.monotonic() + seconds
    found: Counter[str] = Counter()
    lock = threading.Lock()

    def work(names: Iterator[str]) -> None:
        for kind in names:
            if time.monotonic() >= end_s:
                return
            met = outcome(port, *kinds[kind])
            with lock:
                found[f"{kind}: {met}"] += 1
            time.sleep(PAUSE_S)

    names = list(kinds)
    threads = [
        threading.Thread(target=work, args=(itertools.cycle(names[i:] + names[:i]),))
        for i in (number % len(names) for number in range(clients))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


if __name__ == "__main__":
    _port, _clients, _seconds = sys.argv[1:]
    print(json.dumps(attack(int(_port), int(_clients), float(_seconds), HEADS)))
