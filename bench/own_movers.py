"""One transfer of a real mover in Python: prints how long it took, without its start-up.

Each imports what it needs itself, so that start-up is short.

    python bench/own_movers.py KIND FOLDER BYTES

Movers over a socket have their far end in a thread of this process, which reads no faster than a
link of RATE bytes a second lets it, after a burst.
"""

from __future__ import annotations

import queue
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

MIB = 1 << 20
RATE = 60e6
_BURST_BYTES = 128 << 10
_ANSWER_S = 0.001  # after a fragment, until its answer is on the way
_WORD = 8


def cut(message: int, size: int) -> Iterator[int]:
    """The sizes of the fragments."""
    for begin in range(0, message, size):
        yield min(size, message - begin)


# --- over a socket --------------------------------------------------------------------------------


class _Link:
    """Tokens of a link, in bytes: a reader waits until there are some."""

    def __init__(self, rate: float) -> None:
        self._rate, self._tokens, self._at_s = rate, float(_BURST_BYTES), time.perf_counter()

    def take(self, count: int) -> None:
        now_s = time.perf_counter()
        self._tokens += (now_s - self._at_s) * self._rate - count
        self._tokens = min(self._tokens, float(_BURST_BYTES))
        self._at_s = now_s
        if self._tokens < 0.0:
            time.sleep(-self._tokens / self._rate)


def _answer(connection: socket.socket, due_s: queue.SimpleQueue[float]) -> None:
    """Send each answer when it is due: a way back that takes its time."""
    while True:
        time.sleep(max(0.0, due_s.get() - time.perf_counter()))
        try:
            connection.sendall(b"k")
        except OSError:
            return


def _serve(connection: socket.socket, answer_s: float, rate: float) -> None:
    """Read length and bytes of each fragment, and have it answered with a byte."""
    link, buffer = _Link(rate), bytearray(64 << 10)
    due_s: queue.SimpleQueue[float] = queue.SimpleQueue()
    threading.Thread(target=_answer, args=(connection, due_s), daemon=True).start()

    def read(count: int) -> bool:
        while count:
            got = connection.recv_into(buffer, min(count, len(buffer)))
            if not got:
                return False
            link.take(got)
            count -= got
        return True

    with connection:
        while head := connection.recv(_WORD, socket.MSG_WAITALL):
            if not read(int.from_bytes(head, "big")):
                return
            due_s.put(time.perf_counter() + answer_s)


@contextmanager
def _connected(answer_s: float, rate: float = RATE) -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    for end in (near, far):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    threading.Thread(target=_serve, args=(far, answer_s, rate), daemon=True).start()
    with near:
        yield near


def _send(connection: socket.socket, data: bytes) -> None:
    connection.sendall(len(data).to_bytes(_WORD, "big") + data)


def _answered(size: int, ahead: int) -> float:
    """4 MiB, an answer a fragment, so many fragments under way."""
    data = bytes(4 * MIB)
    with _connected(_ANSWER_S) as connection:
        begun_s, waiting = time.perf_counter(), 0
        for count in cut(len(data), size):
            _send(connection, data[:count])
            waiting += 1
            if waiting == ahead:
                waiting -= len(connection.recv(1))
        while waiting:
            waiting -= len(connection.recv(waiting))
        return time.perf_counter() - begun_s


def stop(size: int, folder: Path) -> float:
    """Stop and wait: the next fragment goes when the answer is there."""
    return _answered(size, 1)


def window(size: int, folder: Path) -> float:
    """Four fragments under way."""
    return _answered(size, 4)


def lanes(size: int, folder: Path) -> float:
    """8 MiB over four connections of their own rate, a part each at a time."""
    parts: queue.SimpleQueue[int] = queue.SimpleQueue()
    for count in cut(8 * MIB, size):
        parts.put(count)

    def work() -> None:
        data = bytes(8 * MIB)
        with _connected(0.004, RATE / 2) as connection:
            while True:
                try:
                    count = parts.get_nowait()
                except queue.Empty:
                    return
                _send(connection, data[:count])
                connection.recv(1)

    begun_s = time.perf_counter()
    workers = [threading.Thread(target=work) for _ in range(4)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    return time.perf_counter() - begun_s


def threads(size: int, folder: Path) -> float:
    """4 MiB read, compressed and sent, a thread each, queues of one between them."""
    import zlib

    message = 4 * MIB
    read: queue.Queue[bytes | None] = queue.Queue(1)
    packed: queue.Queue[bytes | None] = queue.Queue(1)

    def reader() -> None:
        with (folder / "source.bin").open("rb", buffering=0) as source:
            for count in cut(message, size):
                read.put(source.read(count))
        read.put(None)

    def packer() -> None:
        while (data := read.get()) is not None:
            packed.put(zlib.compress(data, 1))
        packed.put(None)

    with _connected(0.0, RATE / 3) as connection:
        begun_s, count = time.perf_counter(), 0
        for work in (reader, packer):
            threading.Thread(target=work, daemon=True).start()
        while (data := packed.get()) is not None:
            _send(connection, data)
            count += 1
        while count:
            count -= len(connection.recv(count))
        return time.perf_counter() - begun_s


# --- on this machine ------------------------------------------------------------------------------


def copy(size: int, folder: Path) -> float:
    """32 MiB, file to file, by shutil.copyfileobj."""
    import shutil

    begun_s = time.perf_counter()
    with (
        (folder / "source.bin").open("rb", buffering=0) as source,
        (folder / "target.bin").open("wb", buffering=0) as target,
    ):
        shutil.copyfileobj(source, target, size)
    return time.perf_counter() - begun_s


def sqlite(size: int, folder: Path) -> float:
    """4 MiB into a database, a transaction a fragment."""
    import sqlite3

    data, place = bytes(4 * MIB), folder / "rows.db"
    place.unlink(missing_ok=True)
    with sqlite3.connect(place, isolation_level=None) as rows:
        rows.execute("PRAGMA synchronous=OFF")
        rows.execute("CREATE TABLE parts (number INTEGER PRIMARY KEY, bytes BLOB)")
        begun_s = time.perf_counter()
        for count in cut(len(data), size):
            rows.execute("BEGIN")
            rows.execute("INSERT INTO parts (bytes) VALUES (?)", (data[:count],))
            rows.execute("COMMIT")
        return time.perf_counter() - begun_s


def gzip(size: int, folder: Path) -> float:
    """4 MiB in blocks through a pipe into gzip, whose output is read by a thread."""
    import subprocess

    begun_s = time.perf_counter()
    with (
        (folder / "source.bin").open("rb", buffering=0) as source,
        subprocess.Popen(
            ["gzip", "-1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        ) as packer,
    ):
        assert packer.stdin is not None
        assert packer.stdout is not None
        sink = threading.Thread(target=packer.stdout.read)
        sink.start()
        for count in cut(4 * MIB, size):
            packer.stdin.write(source.read(count))
        packer.stdin.close()
        sink.join()
    return time.perf_counter() - begun_s


def pipe(size: int, folder: Path) -> float:
    """16 MiB to another process by multiprocessing, which hashes each fragment and answers."""
    import subprocess
    from multiprocessing.connection import Pipe

    near, far = Pipe()
    words = [sys.executable, "-S", __file__, "hashing", str(folder), str(far.fileno())]
    with subprocess.Popen(words, pass_fds=(far.fileno(),)) as other:
        near.recv_bytes()
        data = bytes(16 * MIB)
        begun_s = time.perf_counter()
        for count in cut(len(data), size):
            near.send_bytes(data[:count])
            near.recv_bytes()
        time_s = time.perf_counter() - begun_s
        other.kill()
    return time_s


def hashing(descriptor: int, folder: Path) -> float:
    """The other process of `pipe`."""
    import hashlib
    from multiprocessing.connection import Connection

    end = Connection(descriptor)
    end.send_bytes(b"ready")
    while True:
        end.send_bytes(hashlib.sha1(end.recv_bytes(), usedforsecurity=False).digest())


def checksum(size: int, folder: Path) -> float:
    """32 MiB read by a thread and hashed by another, a queue of two between them."""
    import hashlib

    blocks: queue.Queue[bytes | None] = queue.Queue(2)

    def reader() -> None:
        with (folder / "source.bin").open("rb", buffering=0) as source:
            for count in cut(32 * MIB, size):
                blocks.put(source.read(count))
        blocks.put(None)

    begun_s, digest = time.perf_counter(), hashlib.sha1(usedforsecurity=False)
    threading.Thread(target=reader, daemon=True).start()
    while (data := blocks.get()) is not None:
        digest.update(data)
    return time.perf_counter() - begun_s


KINDS: dict[str, Callable[[int, Path], float]] = {
    one.__name__: one
    for one in (stop, window, lanes, threads, copy, sqlite, gzip, pipe, hashing, checksum)
}


def main(words: list[str]) -> int:
    """Run one transfer, and print its time."""
    kind, folder, size = words
    sys.stdout.write(f"{KINDS[kind](int(size), Path(folder)):.7f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
