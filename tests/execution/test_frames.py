"""The frames between an engine and its workers."""

from __future__ import annotations

import os
import socket
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.execution.operation_process import (
    STEPS,
    Assembler,
    BadFrame,
    Frame,
    Kind,
    TaskFrame,
    receive_task,
    send,
    send_task,
)

FRAMES = st.lists(st.builds(Frame, st.sampled_from(Kind), st.binary(max_size=200)), max_size=8)
U64 = st.integers(0, 2**64 - 1)


def sent(frames: list[Frame]) -> bytes:
    here, there = socket.socketpair()
    with here, there:
        for frame in frames:
            send(here, frame.kind, frame.payload)
        here.close()
        return b"".join(iter(lambda: there.recv(4096), b""))


@given(FRAMES, st.lists(st.integers(0, 1700)))
def test_frames_arrive_whole_however_the_bytes_are_cut(
    frames: list[Frame], cuts: list[int]
) -> None:
    data = sent(frames)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    assembler = Assembler()
    arrived: list[Frame] = []
    for start, end in pairwise(edges):
        arrived += assembler.feed(data[start:end], max_bytes=200)
    assert arrived == frames


def test_what_is_no_frame_is_not_waited_for() -> None:
    """A kind that does not exist, and a length that no result may have."""
    for data in (b"\xff\x00\x00\x00\x00", b"\x00\x00\x00\x00\x00", b"\x06\x00\x00\x00\xc9"):
        with pytest.raises(BadFrame):
            list(Assembler().feed(data, max_bytes=200))


@given(U64, U64)
def test_steps_read_back(done: int, total: int) -> None:
    assert STEPS.unpack(STEPS.pack(done, total)) == (done, total)


@given(U64, U64, st.binary(max_size=200), st.integers(0, 3))
def test_tasks_read_back(memory_bytes: int, result_bytes: int, work: bytes, files: int) -> None:
    """With as many descriptors, of the same file."""
    here, there = socket.socketpair()
    read, write = os.pipe()
    with here, there:
        send_task(here, TaskFrame(memory_bytes, result_bytes, work, (read,) * files))
        found = receive_task(there)
        assert found is not None
        assert (found.memory_bytes, found.result_bytes, found.work) == (
            memory_bytes,
            result_bytes,
            work,
        )
        assert [os.fstat(file).st_ino for file in found.files] == [os.fstat(read).st_ino] * files
    for descriptor in (read, write, *found.files):
        os.close(descriptor)


def test_a_task_larger_than_the_channel(tmp_path: Path) -> None:
    """With its file; and then the end of the channel, which is not an error."""
    (tmp_path / "file").write_bytes(b"content")
    here, there = socket.socketpair()
    work = bytes(range(256)) * 20_000

    def send_and_close() -> None:
        with here, open(tmp_path / "file", "rb") as file:
            send_task(here, TaskFrame(1, 2, work, (file.fileno(),)))

    with there:
        sender = threading.Thread(target=send_and_close)
        sender.start()
        found = receive_task(there)
        assert found is not None
        assert found.work == work
        assert os.pread(found.files[0], 100, 0) == b"content"
        os.close(found.files[0])
        assert receive_task(there) is None
        sender.join()


def test_a_task_that_is_cut_off_is_none() -> None:
    here, there = socket.socketpair()
    with here, there:
        send_task(here, TaskFrame(1, 2, b"half of this is lost"))
        data = there.recv(4096)
    for length in (3, 8, len(data) - 5):
        here, there = socket.socketpair()
        with there:
            with here:
                here.sendall(data[:length])
            assert receive_task(there) is None
