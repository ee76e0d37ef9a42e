"""An owner that asks too often, as a process: python -m bench.neighbour PORT KEY PER_S SECONDS.

Prints what it was answered, by status, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter

from bench.client import Connection, post

CONNECTIONS = 16
STAGES = [
    {"name": f"stage {j}", "overhead_us": 5.0 + j, "ns_per_byte": 10.0 + 3 * j} for j in range(4)
]


def question(message_bytes: int) -> bytes:
    """A small optimisation; another size is another question, which is solved and stored."""
    body = {"message_bytes": message_bytes, "pipeline": {"stages": STAGES}}
    return json.dumps(body).encode()


def asked_by(key: str, request: bytes) -> bytes:
    """The request with the key of who asks."""
    line, rest = request.split(b"\r\n", 1)
    return line + f"\r\nAuthorization: Bearer {key}\r\n".encode() + rest


def main(port: int, key: str, per_s: float, seconds: float) -> None:
    """Ask at this rate whatever is answered: each connection has its own share of it."""
    seen: list[Counter[int]] = [Counter() for _ in range(CONNECTIONS)]
    interval_s, begun_s = CONNECTIONS / per_s, time.monotonic()

    def ask(number: int) -> None:
        connection, due_s = Connection(port), begun_s + number / per_s
        size = 10_000 + number
        while due_s < begun_s + seconds:
            time.sleep(max(0.0, due_s - time.monotonic()))
            status, _ = connection.ask(asked_by(key, post("/optimize", question(size))))
            seen[number][status] += 1
            size, due_s = size + CONNECTIONS, due_s + interval_s
        connection.close()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(sum(seen, Counter())))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
