"""Hostile clients of many kinds, as threads of a process of their own.

    python -m bench.mixed PORT CLIENTS SECONDS [idle]

Each takes the kinds in turn, one a second: heads without an end, bodies that are no JSON, wild
numbers, deep nesting, gzip that expands, bodies over every limit or one byte at a time, solves that
are left alone, wrong methods and paths. What each was answered is printed as JSON, by status. With
`idle` they take the processors only while nothing else wants them, as clients elsewhere do.
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
import random
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress

from bench.client import post
from bench.hostile import HEADS, outcome

PAUSE_S = 1.0  # between two of one client
_TIMEOUT_S = 60.0
_SLOW_S = 3.0  # of a body that comes one byte at a time
_NO_JSON = (b"", b"{", b"\xff\xfe", b"NaN", b"[" * 100_000, b'{"a":' * 5_000, b'"' + b"x" * 10**6)
_WILD = (b"NaN", b"1e999", b"-1e308", b"9" * 5_000, b'"NaN"', b"-0", b"null", b"[]", b"0.1")


def hard_question(seed: int, *, time_limit_s: float) -> bytes:
    """A message through stages of many ranges, which no search is done with soon."""
    rng = random.Random(seed)
    stages = []
    for place in range(12):
        ranges = [
            {
                "overhead_us": rng.uniform(1.0, 60.0),
                "ns_per_byte": rng.uniform(0.5, 20.0),
                "up_to_bytes": None if end == 12 else 1 << (end + 8),
            }
            for end in range(13)
        ]
        stages.append({"name": f"s{place}", "ranges": ranges})
    body = {
        "message_bytes": 2**20 + seed,
        "strategy": "exact",
        "relative_gap": 0.0,
        "time_limit_s": time_limit_s,
        "pipeline": {"stages": stages},
    }
    return json.dumps(body).encode()


def _status(port: int, request: bytes, *, reads: bool = True) -> str:
    with socket.create_connection(("127.0.0.1", port), _TIMEOUT_S) as connection:
        with suppress(ConnectionError):  # it may have answered all the same
            connection.sendall(request)
        if not reads:
            return "left"
        try:
            return connection.recv(64)[9:12].decode("latin-1") or "closed"
        except ConnectionError:
            return "closed"


def _typed(path: str, body: bytes, kind: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: {kind}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _slow(port: int, rng: random.Random) -> str:
    head = b"POST /optimize HTTP/1.1\r\nHost: b\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", port), _TIMEOUT_S) as connection:
        connection.sendall(head + b"Content-Length: 4000000\r\n\r\n")
        end_s = time.monotonic() + _SLOW_S
        while time.monotonic() < end_s:
            connection.sendall(b" ")
            time.sleep(0.2 + rng.random() / 10)
    return "left"


def _wild(rng: random.Random) -> bytes:
    value = rng.choice(_WILD)
    return b'{"message_bytes": %b, "pipeline": {"stages": [{"overhead_us": %b}]}}' % (
        value,
        rng.choice(_WILD),
    )


_BOMB = gzip.compress(b"0" * 2**26)
KINDS: Mapping[str, Callable[[int, random.Random], str]] = {
    "no JSON": lambda port, rng: _status(port, post("/optimize", rng.choice(_NO_JSON))),
    "wild numbers": lambda port, rng: _status(port, post("/optimize", _wild(rng))),
    "too long": lambda port, rng: _status(port, post("/compare", b" " * (5 * 2**20))),
    "gzip that expands": lambda port, rng: _status(port, _typed("/fit", _BOMB, "application/gzip")),
    "no measurements": lambda port, rng: _status(
        port, _typed("/fit", rng.randbytes(20_000), "text/csv")
    ),
    "one byte at a time": _slow,
    "a solve that is left": lambda port, rng: _status(
        port, post("/optimize", hard_question(rng.randrange(10**6), time_limit_s=2)), reads=False
    ),
    "no such path": lambda port, rng: _status(
        port, b"GET /%s HTTP/1.1\r\nHost: b\r\n\r\n" % rng.randbytes(8).hex().encode()
    ),
    "another method": lambda port, rng: _status(
        port, b"DELETE /optimize HTTP/1.1\r\nHost: b\r\n\r\n"
    ),
    "heads": lambda port, rng: outcome(port, *rng.choice(list(HEADS.values()))),
}


def attack(port: int, clients: int, seconds: float) -> Counter[str]:
    """Have this many clients ask so for a time; return how often each answer was met."""
    end_s, found, lock = time.monotonic() + seconds, Counter[str](), threading.Lock()

    def work(number: int) -> None:
        rng = random.Random(number)
        for kind in itertools.islice(itertools.cycle(KINDS), number % len(KINDS), None):
            time.sleep(PAUSE_S * rng.random() * 2)
            if time.monotonic() >= end_s:
                return
            try:
                met = KINDS[kind](port, rng)
            except ConnectionError:
                met = "closed"
            except TimeoutError:
                met = "no answer"
            with lock:
                found[f"{kind}: {met}"] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


if __name__ == "__main__":
    _port, _clients, _seconds, *_idle = sys.argv[1:]
    if _idle:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    print(json.dumps(attack(int(_port), int(_clients), float(_seconds))))
