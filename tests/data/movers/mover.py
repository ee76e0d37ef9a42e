"""Real movers of eight kinds, each traced and timed in one run: `python mover.py KIND FOLDER`.

Writes KIND.csv, stage times with begins of messages of 1 MiB in four sizes, and KIND.sweep.csv, the
times of whole messages in seven sizes, by turns. Links sleep for what they would send; hashes and
copies compute. The standard library alone.
"""

from __future__ import annotations

import hashlib
import os
import queue
import socket
import sys
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path

MESSAGE = 1 << 20
TRACED = (16384, 32768, 65536, 131072)
SIZES = (*TRACED, 262144, 524288, 1048576)
ROUNDS, TRACED_ROUNDS = 31, 9
SOURCE = os.urandom(MESSAGE)

Event = tuple[int, int, int, int, int, int, int]  # message, fragment, size, stage, begin, end, busy
events: list[Event] = []


class Span:
    """Times a stage on a fragment."""

    def __init__(self, message: int, fragment: int, size: int, stage: int) -> None:
        self.key = (message, fragment, size, stage)

    def __enter__(self) -> None:
        self.begin, self.busy = time.monotonic_ns(), time.thread_time_ns()

    def __exit__(self, *_: object) -> None:
        busy, end = time.thread_time_ns() - self.busy, time.monotonic_ns()
        events.append((*self.key, self.begin, end, min(busy, end - self.begin)))


def pieces(size: int) -> list[memoryview]:
    """The message in fragments of this size."""
    view = memoryview(SOURCE)
    return [view[start : start + size] for start in range(0, MESSAGE, size)]


def digest(data: memoryview) -> None:
    """Compute on a fragment, without the lock of the interpreter."""
    hashlib.sha256(data).digest()


def check(data: memoryview) -> None:
    """Compute on a fragment three times, without the lock of the interpreter."""
    for _ in range(3):
        zlib.crc32(data)


def link(data: memoryview, overhead_us: float = 200.0, ns_per_byte: float = 6.0) -> None:
    """Wait as a link of a limited rate does."""
    time.sleep((overhead_us + len(data) * ns_per_byte / 1000.0) / 1e6)


def serial(message: int, size: int) -> None:
    """One loop: hash, check, link."""
    for fragment, data in enumerate(pieces(size)):
        for stage, work in enumerate((digest, check, link)):
            with Span(message, fragment, size, stage):
                work(data)


def staged(works: tuple[Callable[[memoryview], None], ...], message: int, size: int) -> None:
    """A thread a stage, with queues between them that are never full."""
    queues: list[queue.SimpleQueue[memoryview]] = [queue.SimpleQueue() for _ in works]
    parts = pieces(size)
    for data in parts:
        queues[0].put(data)

    def run(stage: int) -> None:
        for fragment in range(len(parts)):
            data = queues[stage].get()
            with Span(message, fragment, size, stage):
                works[stage](data)
            if stage + 1 < len(works):
                queues[stage + 1].put(data)

    together([threading.Thread(target=run, args=(stage,)) for stage in range(len(works))])


def together(threads: list[threading.Thread]) -> None:
    """Run threads to their ends."""
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def a_thread_a_stage(message: int, size: int) -> None:
    """Hash beside a link."""
    staged((digest, link), message, size)


def one_core(message: int, size: int) -> None:
    """Two threads that compute, on one core."""
    staged((digest, digest), message, size)


def bucket(message: int, size: int) -> None:
    """Hash beside a link that is fast for 256 KiB, and then refilled."""
    left = [262144.0]

    def limited(data: memoryview) -> None:
        left[0] -= len(data)
        link(data, 100.0, 1.0 if left[0] >= 0 else 12.0)

    staged((digest, limited), message, size)


def answered(message: int, size: int, window: int) -> None:
    """Hash, then a link with an answer 2 ms after each fragment; so many are under way."""
    free = threading.Semaphore(window)
    sent: queue.SimpleQueue[tuple[int, memoryview]] = queue.SimpleQueue()
    count = len(pieces(size))

    def send() -> None:
        for fragment, data in enumerate(pieces(size)):
            free.acquire()
            with Span(message, fragment, size, 0):
                digest(data)
            sent.put((fragment, data))

    def carry() -> None:
        for _ in range(count):
            fragment, data = sent.get()
            with Span(message, fragment, size, 1):
                link(data, 300.0, 3.0)
            threading.Timer(0.002, free.release).start()

    together([threading.Thread(target=send), threading.Thread(target=carry)])


def stop_and_wait(message: int, size: int) -> None:
    """One under way."""
    answered(message, size, 1)


def window_of_four(message: int, size: int) -> None:
    """Four under way."""
    answered(message, size, 4)


def four_connections(message: int, size: int) -> None:
    """Hash, then four links that each take the next fragment."""
    ready: queue.SimpleQueue[tuple[int, memoryview] | None] = queue.SimpleQueue()

    def produce() -> None:
        for fragment, data in enumerate(pieces(size)):
            with Span(message, fragment, size, 0):
                digest(data)
            ready.put((fragment, data))
        for _ in range(4):
            ready.put(None)

    def connection() -> None:
        while (one := ready.get()) is not None:
            with Span(message, one[0], size, 1):
                link(one[1], 1000.0, 40.0)

    together([threading.Thread(target=one) for one in (produce, *[connection] * 4)])


def relay(message: int, size: int) -> None:
    """A middle that has received a whole fragment before it sends it on."""
    near, middle = socket.socketpair()
    out, far = socket.socketpair()
    count = len(pieces(size))

    def send() -> None:
        for fragment, data in enumerate(pieces(size)):
            with Span(message, fragment, size, 0):
                link(data, 150.0, 2.0)
                near.sendall(data)

    def forward() -> None:
        for fragment in range(count):
            data = memoryview(middle.recv(size, socket.MSG_WAITALL))
            with Span(message, fragment, size, 1):
                link(data, 150.0, 4.0)
                out.sendall(data)

    def receive() -> None:
        for fragment in range(count):
            data = memoryview(far.recv(size, socket.MSG_WAITALL))
            with Span(message, fragment, size, 2):
                digest(data)

    together([threading.Thread(target=one) for one in (send, forward, receive)])
    for one in (near, middle, out, far):
        one.close()


MOVERS = {
    "serial": (serial, ("hash", "check", "link")),
    "stop_and_wait": (stop_and_wait, ("hash", "link")),
    "window_of_four": (window_of_four, ("hash", "link")),
    "bucket": (bucket, ("hash", "link")),
    "a_thread_a_stage": (a_thread_a_stage, ("hash", "link")),
    "one_core": (one_core, ("hash", "hash_again")),
    "four_connections": (four_connections, ("hash", "link")),
    "relay": (relay, ("send", "forward", "hash")),
}


def write(kind: str, folder: Path) -> None:
    """Run a mover and write its trace and its sweep."""
    move, names = MOVERS[kind]
    if kind == "one_core":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    move(0, SIZES[0])
    events.clear()
    sweep, message = ["message_bytes,fragment_bytes,latency_us"], 0
    for turn in range(ROUNDS):
        for place in range(len(SIZES)):
            size = SIZES[(place + 3 * turn) % len(SIZES)]
            begin = time.monotonic_ns()
            move(message, size)
            sweep.append(f"{MESSAGE},{size},{(time.monotonic_ns() - begin) / 1e3:.1f}")
            message += 1
    (folder / f"{kind}.sweep.csv").write_text("\n".join(sweep) + "\n")
    traced = TRACED_ROUNDS * len(SIZES)  # messages
    kept = [one for one in events if one[2] in TRACED and one[0] < traced]
    first = min(one[4] for one in kept)
    rows: dict[tuple[int, int, int], dict[int, tuple[int, int, int]]] = {}
    for number, fragment, size, stage, start, end, busy in kept:
        rows.setdefault((number, fragment, size), {})[stage] = (start - first, end - start, busy)
    columns = [f"{name}_us" for name in names]
    columns += [f"{name}{part}" for name in names for part in ("_begin_ns", "_busy_ns")]
    lines = [",".join(["message_bytes,repetition,message,fragment", *columns])]
    for repetition, ((number, fragment, size), stages) in enumerate(sorted(rows.items())):
        spans = [stages[stage] for stage in range(len(names))]
        times = [f"{lasts / 1e3:.3f}" for _, lasts, _ in spans]
        begins = [f"{start},{busy}" for start, _, busy in spans]
        lines.append(",".join([f"{size},{repetition},{number},{fragment}", *times, *begins]))
    (folder / f"{kind}.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]))
