"""The frames between the server and its solvers."""

from __future__ import annotations

import socket
import threading
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from app.pool.frames import Assembler, Frame, Kind, receive, send

FRAMES = st.lists(st.builds(Frame, st.sampled_from(Kind), st.binary(max_size=200)), max_size=8)


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
        arrived += assembler.feed(data[start:end])
    assert arrived == frames


def test_a_frame_larger_than_the_channel() -> None:
    """And then the end of the channel, which is not an error."""
    here, there = socket.socketpair()
    payload = bytes(range(256)) * 20_000

    def send_and_close() -> None:
        with here:
            send(here, Kind.TASK, payload)

    with there:
        sender = threading.Thread(target=send_and_close)
        sender.start()
        assert receive(there) == Frame(Kind.TASK, payload)
        assert receive(there) is None
        sender.join()


def test_a_frame_that_is_cut_off_is_none() -> None:
    data = sent([Frame(Kind.SOLUTION, b"half of this is lost")])
    here, there = socket.socketpair()
    with there:
        with here:
            here.sendall(data[:-5])
        assert receive(there) is None
