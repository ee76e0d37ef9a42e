"""sluice_client.trace: what Python movers log is what `fit` reads; threads, tasks, ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from domain.measurement import DirectTrace
from domain.traced_events import NOT_KNOWN, TracedEvents
from fitting import read
from sluice_client import trace as traced
from sluice_client.trace import Trace

ROOT = Path(__file__).parents[2]
STAGES = ("hash", "send")


def trace_of(file: Path) -> DirectTrace:
    trace = read(file.read_bytes()).trace
    assert isinstance(trace, DirectTrace)
    return trace


def events_of(file: Path) -> TracedEvents:
    events = trace_of(file).events
    assert events is not None
    return events


def numbers(events: TracedEvents) -> list[tuple[int, int]]:
    return list(zip(events.message, events.fragment, strict=True))


def test_a_serial_mover(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row a fragment, begins from the first event on, processor times within reason."""
    monkeypatch.setattr(traced, "LONG_NS", 0)
    with Trace(tmp_path / "t.csv", stages=STAGES) as trace:
        for message in range(3):
            with trace.message(message):
                for i in range(4):
                    with trace.stage("hash", 64 << i, fragment=i):
                        sum(range(1000))
                    with trace.stage("send", 64 << i, i):
                        time.sleep(0.001)
    text = (tmp_path / "t.csv").read_text().splitlines()
    assert text[0].startswith("# stage times of fragments")
    assert text[1] == (
        "message_bytes,repetition,message,fragment,hash_us,send_us,"
        "hash_begin_ns,hash_busy_ns,send_begin_ns,send_busy_ns"
    )
    found = trace_of(tmp_path / "t.csv")
    assert list(found.message_bytes) == [64, 128, 256, 512] * 3
    assert list(found.repetitions) == [0] * 4 + [1] * 4 + [2] * 4
    events = events_of(tmp_path / "t.csv")
    assert numbers(events) == [(message, i) for message in range(3) for i in range(4)]
    assert min(map(min, events.begin_ns)) == events.begin_ns[0][0] == 0
    pairs = zip(events.end_ns[0], events.begin_ns[1], strict=True)
    assert all(end <= begin for end, begin in pairs)
    assert all(busy >= 0 for column in events.busy_ns for busy in column)
    naps = zip(events.busy_ns[1], events.duration_ns[1], strict=True)
    assert all(busy < taken for busy, taken in naps)


def test_of_short_stages_processor_time_is_read_once_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most once in so long: of the first event, here, and after the first one of message 1."""

    def known(long_ns: int) -> list[bool]:
        monkeypatch.setattr(traced, "LONG_NS", long_ns)
        with Trace(tmp_path / "t.csv", stages=("hash",)) as trace:
            for i in range(6):
                if i == 3:
                    time.sleep(0.05)
                with trace.stage("hash", 64, i % 3, message=i // 3):
                    pass
        return [busy >= 0 for busy in events_of(tmp_path / "t.csv").busy_ns[0]]

    assert known(0) == [True] * 6
    assert known(10**18) == [True] + [False] * 5
    assert known(40_000_000) == [True, False, False, False, True, False]


def test_threads_share_a_trace(tmp_path: Path) -> None:
    """A stage a thread and several lanes: every event is there, joined by its numbers."""
    with Trace(tmp_path / "t.csv", stages=("hash", "send", "store")) as trace:

        def run(name: str, first: int) -> None:
            for i in range(first, 2000, 2):
                with trace.stage(name, 64, fragment=i, message=i % 7):
                    pass

        with ThreadPoolExecutor(6) as pool:
            for name in ("hash", "send", "store"):
                for first in (0, 1):
                    pool.submit(run, name, first)
    events = events_of(tmp_path / "t.csv")
    assert numbers(events) == sorted((i % 7, i) for i in range(2000))
    assert events.missing == 0
    assert len(trace_of(tmp_path / "t.csv")) == 2000


def test_tasks_have_no_processor_time_and_their_own_message(tmp_path: Path) -> None:
    """Whether the block is `async with` or `with`."""

    async def move(trace: Trace, message: int) -> None:
        with trace.message(message):
            for i in range(5):
                with trace.stage("hash", 64, fragment=i):
                    await asyncio.sleep(0)
                async with trace.stage("send", 64, fragment=i):
                    await asyncio.sleep(0.001)

    async def run() -> None:
        with Trace(tmp_path / "t.csv", stages=STAGES) as trace:
            await asyncio.gather(*(move(trace, message) for message in range(10)))

    asyncio.run(run())
    events = events_of(tmp_path / "t.csv")
    assert numbers(events) == [(message, i) for message in range(10) for i in range(5)]
    assert {busy for column in events.busy_ns for busy in column} == {NOT_KNOWN}
    assert events.missing == 0


def test_a_task_has_the_message_of_who_started_it(tmp_path: Path) -> None:
    async def send(trace: Trace) -> None:
        async with trace.stage("send", 64, fragment=0):
            await asyncio.sleep(0)

    async def run(trace: Trace) -> None:
        with trace.message(41):
            task = asyncio.create_task(send(trace))
        with trace.message(42):
            await task

    with Trace(tmp_path / "t.csv", stages=("send",)) as trace:
        asyncio.run(run(trace))
    assert numbers(events_of(tmp_path / "t.csv")) == [(41, 0)]


def test_functions_and_coroutines_are_decorated(tmp_path: Path) -> None:
    with Trace(tmp_path / "t.csv", stages=STAGES) as trace:

        @trace.staged(
            "hash",
            fragment_bytes=lambda data, at, of: len(data),
            fragment=lambda data, at, of: at,
            message=lambda data, at, of: of,
        )
        def digest(data: bytes, at: int, of: int) -> int:
            """Sum."""
            return sum(data) + at + of

        @trace.staged("send", fragment_bytes=lambda data, **_: len(data), fragment=lambda _, at: at)
        async def send(data: bytes, *, at: int) -> str:
            await asyncio.sleep(0)
            return f"sent {at}"

        assert digest(b"abc", 2, 5) == 294 + 7
        assert (digest.__name__, digest.__doc__) == ("digest", "Sum.")
        with trace.message(5):
            assert asyncio.run(send(b"abc", at=2)) == "sent 2"
        with pytest.raises(TypeError, match="got a generator"):

            @trace.staged("hash", fragment_bytes=len, fragment=len)
            def produce(data: bytes) -> Any:
                yield data

    events = events_of(tmp_path / "t.csv")
    assert (numbers(events), events.missing) == ([(5, 2)], 0)
    assert events.busy_ns[0][0] >= 0
    assert events.busy_ns[1][0] == NOT_KNOWN


def test_what_a_stage_lacks_is_empty_and_what_raises_is_no_event(tmp_path: Path) -> None:
    with Trace(tmp_path / "t.csv", stages=STAGES) as trace:
        for i in range(3):
            with trace.stage("hash", 64, i, message=0):
                pass
            if i == 1:
                with pytest.raises(OSError, match="lost"), trace.stage("send", 64, i, message=0):
                    raise OSError("lost")
            else:
                with trace.stage("send", 64, i, message=0):
                    pass
    events = events_of(tmp_path / "t.csv")
    assert [begin < 0 for begin in events.begin_ns[1]] == [False, True, False]
    assert len(trace_of(tmp_path / "t.csv")) == 2


def test_a_fragment_that_a_stage_has_twice_counts_once(tmp_path: Path) -> None:
    with Trace(tmp_path / "t.csv", stages=STAGES) as trace:
        for name in ("hash", "hash", "send", "send"):
            with trace.stage(name, 64, 0, message=0):
                pass
    assert len(events_of(tmp_path / "t.csv")) == 1
    assert "# 2 events are left out" in (tmp_path / "t.csv").read_text()


def test_rows_that_wait_too_long_are_joined_by_the_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory does not grow where a stage is far behind."""
    monkeypatch.setattr(traced, "WAITING", 4)
    with Trace(tmp_path / "t.csv", stages=STAGES) as trace:
        for name in STAGES:
            for i in range(50):
                with trace.stage(name, 64, i, message=0):
                    pass
            assert len(trace._waiting) <= 4
    events = events_of(tmp_path / "t.csv")
    assert (len(events), events.missing) == (50, 0)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("wire", 64, 0), "name: expected one of hash, send"),
        (("hash", 0, 0), "fragment_bytes: expected 1 to"),
        (("hash", 64, -1), "fragment: expected a number from 0"),
        (("hash", 64, 2**48 + 1), "fragment: expected a number from 0"),
        (("hash", 64, 0, None), "message: expected its number"),
        (("hash", 64, 0, -3), "message: expected a number from 0"),
    ],
)
def test_wrong_numbers_are_refused_by_name(
    tmp_path: Path, arguments: tuple[Any, ...], rule: str
) -> None:
    name, size, fragment, *message = (*arguments, 1)[:4]
    with Trace(tmp_path / "t.csv", stages=STAGES) as trace:
        with pytest.raises(ValueError, match=rule):
            trace.stage(name, size, fragment, message=message[0])
        with pytest.raises(TypeError):
            trace.stage("hash", 1.5, 0, message=0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "stages", [(), "hash", ("a", "a"), ("a,b",), ("",), ("a\n",), ("total",), ("a",) * 65]
)
def test_names_that_no_file_can_have(tmp_path: Path, stages: Any) -> None:
    with pytest.raises(ValueError, match="stages: "):
        Trace(tmp_path / "t.csv", stages=stages)
    assert not (tmp_path / "t.csv").exists()


def test_a_full_disk_does_not_stop_the_mover(tmp_path: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    trace = Trace("/dev/full", stages=STAGES)
    for i in range(200):
        for name in STAGES:
            with trace.stage(name, 64, i, message=0):
                pass
    with pytest.raises(OSError, match="No space"):
        trace.close()
    trace.close()


def test_after_closing_nothing_is_written(tmp_path: Path) -> None:
    trace = Trace(tmp_path / "t.csv", stages=("hash",))
    with trace.stage("hash", 64, 0, message=0):
        pass
    trace.flush()
    assert len(events_of(tmp_path / "t.csv")) == 1
    with trace.stage("hash", 64, 1, message=0):
        trace.close()
    assert len(events_of(tmp_path / "t.csv")) == 1


MOVER = """
import os, signal, sys, threading
from sluice_client.trace import Trace
def moved():
    trace = Trace("t.csv", stages=("hash", "send"))
    for i in range(1000):
        for name in ("hash", "send"):
            with trace.stage(name, 64, i, message=0): pass
moved()
"""


@pytest.mark.parametrize(
    ("ending", "least"),
    [
        ("", 1000),
        ("raise SystemExit(3)", 1000),
        ("if os.fork() == 0: sys.exit(0)\nos.wait()", 1000),
        ("os.kill(os.getpid(), signal.SIGKILL)", 1000 - traced.ROWS),
        ("os._exit(0)", 1000 - traced.ROWS),
    ],
    ids=["end", "exit", "fork", "kill", "_exit"],
)
def test_what_a_process_leaves(tmp_path: Path, ending: str, least: int) -> None:
    """All of it; where it is killed all but the last rows, and never half a row."""
    subprocess.run(
        [sys.executable, "-c", MOVER + ending],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT / "clients" / "python" / "src")},
        check=False,
        timeout=60,
    )
    found = trace_of(tmp_path / "t.csv")
    assert least <= len(found) <= 1000
    assert list(found.repetitions) == list(range(len(found)))


def test_a_signal_that_ends_the_process_by_an_exception(tmp_path: Path) -> None:
    """As Ctrl-C does."""
    code = MOVER + "os.kill(os.getpid(), signal.SIGINT)\nimport time; time.sleep(60)"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT / "clients" / "python" / "src")},
        stderr=subprocess.DEVNULL,
        check=False,
        timeout=60,
    )
    assert ended.returncode == -signal.SIGINT
    assert len(trace_of(tmp_path / "t.csv")) == 1000


def test_rows_are_in_the_file_after_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traced, "_FLUSH_NS", 0)
    with Trace(tmp_path / "t.csv", stages=("hash",)) as trace:
        with trace.stage("hash", 64, 0, message=0):
            pass
        assert len(events_of(tmp_path / "t.csv")) == 1


def test_a_thread_names_its_message(tmp_path: Path) -> None:
    """What it inherits depends on the Python, so that it is told."""
    with Trace(tmp_path / "t.csv", stages=("hash",)) as trace:

        def run() -> None:
            with trace.message(9), trace.stage("hash", 64, 0):
                pass

        thread = threading.Thread(target=run)
        with trace.message(8):
            thread.start()
            thread.join()
    assert numbers(events_of(tmp_path / "t.csv")) == [(9, 0)]
