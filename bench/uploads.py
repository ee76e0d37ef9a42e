"""Clients that post files, as a process: python -m bench.uploads PORT KIND CLIENTS SECONDS.

KIND is `crafted`, files whose lines a careless pattern takes minutes for, or `trace`, a real one.
Prints what they were answered, by status, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path

from bench.client import Connection

_TRACE = Path(__file__).parents[1] / "examples" / "local-path-direct.csv"
_KIB = 1024
_REFUSED_PAUSE_S = 1.0  # the shortest Retry-After


def crafted() -> Sequence[bytes]:
    """Return files of up to 1 MiB that patterns of quadratic time stop at: digits, blanks, marks,
    empty lines, and many long rows of a format that is read.
    """
    return (
        b"8," + b"1" * 65_000 + b"x\n",
        b"| Test:" + b" " * 64 * _KIB + b"\n",
        b"#" + b" " * 64 * _KIB + b"Size\n",
        b"\n" * 64 * _KIB,
        b"# OSU MPI Latency Test\n# Size Latency (us)\n" + (b"8 " + b"1" * 16_000 + b"x\n") * 60,
        b"step,size,us\n" + (b"a,1" + b"0" * 4_000 + b",1\n") * 200,
        b'{"a":' * 20_000,
    )


def files() -> Mapping[str, Sequence[bytes]]:
    """Return the files of each kind."""
    return {"crafted": crafted(), "trace": (_TRACE.read_bytes(),)}


def upload(content: bytes) -> bytes:
    """Return a `POST /fit` of a file as it goes over the wire."""
    head = "POST /fit HTTP/1.1\r\nHost: bench\r\nContent-Type: text/plain\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


def main(port: int, kind: str, clients: int, seconds: float) -> None:
    """Post one file after the other on each connection; who is refused waits a second."""
    seen = [Counter[str]() for _ in range(clients)]
    end_s = time.monotonic() + seconds

    def post(number: int) -> None:
        for content in cycle(files()[kind]):
            if time.monotonic() >= end_s:
                return
            try:
                connection = Connection(port)
                status, _ = connection.ask(upload(content))
                connection.close()
            except OSError as error:
                seen[number][type(error).__name__] += 1
                continue
            seen[number][str(status)] += 1
            if status == 503:
                time.sleep(_REFUSED_PAUSE_S)

    threads = [threading.Thread(target=post, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(sum(seen, Counter[str]())))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
