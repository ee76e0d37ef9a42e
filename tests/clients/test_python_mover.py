"""The mover from Python: built and installed as its Makefile does, buffers of all kinds, errors."""

from __future__ import annotations

import array
import os
import shutil
import socket
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sluice_client.mover import Mover, MoverError, Stalled, TimedOut
from tests.clients.c_support import CLIENT, TABLES, require, run

pytestmark = pytest.mark.usefixtures("native_kernels")

PEER, PROTOCOL, CLOSED, TRUNCATED = -37, -38, -41, -39
TABLE = TABLES / "v1" / "worked-example.slt"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shared library, installed below a folder of its own with the one that it needs."""
    folder = tmp_path_factory.mktemp("mover")
    shutil.copytree(CLIENT, folder / "c", ignore=shutil.ignore_patterns("build"))
    prefix = folder / "prefix"
    make = [require("make"), "-s", "-C", folder / "c" / "mover", f"PREFIX={prefix}", "CFLAGS=-O1"]
    run([*make, "WERROR=-Werror", "install"])
    installed = {str(path.relative_to(prefix)) for path in prefix.rglob("*mover*")}
    assert installed >= {
        "bin/sluice-mover",
        "include/sluice_mover.h",
        "lib/libsluice-mover.a",
        "lib/libsluice-mover.so",
        "lib/libsluice-mover.so.0",
        "lib/libsluice-mover.so.0.1.0",
        "lib/pkgconfig/sluice-mover.pc",
    }
    assert "hiding" in run([prefix / "bin" / "sluice-mover", "exchange", "all", "--bytes", "9"])
    return prefix / "lib" / "libsluice-mover.so"


def pair(library: Path, **options: int) -> tuple[Mover, Mover]:
    """Two movers of this process, each the other's peer 0."""
    ends = socket.socketpair()
    movers = (Mover(library=library, **options), Mover(library=library, **options))
    for mover, end in zip(movers, ends, strict=True):
        assert mover.add_peer(end) == 0
        assert end.fileno() == -1
    return movers


@pytest.fixture
def movers(library: Path) -> Iterator[tuple[Mover, Mover]]:
    both = pair(library)
    yield both
    for one in both:
        one.close()


def test_buffers_of_all_kinds(movers: tuple[Mover, Mover]) -> None:
    """Bytes, arrays and grids arrive as they were, without a copy in Python."""
    here, there = movers
    grid = np.arange(300_000, dtype=np.float64).reshape(500, 600)
    for sent, taken in (
        (b"read only", bytearray(9)),
        (array.array("d", [1.5, 2.5]), array.array("d", [0.0, 0.0])),
        (grid, np.zeros_like(grid)),
        (b"", bytearray()),
    ):
        arriving, leaving = there.receive(0, 3, taken), here.send(0, 3, sent)
        left, came = leaving.wait(60), arriving.wait(60)
        assert leaving.is_done()
        assert leaving.wait() == left
        assert left.moved_bytes == came.moved_bytes == memoryview(sent).nbytes
        assert bytes(memoryview(sent)) == bytes(memoryview(taken))
    assert here.statistics()["messages_sent"] == 4
    assert there.statistics()["bytes_received"] == here.statistics()["bytes_sent"]


def test_fragments_are_the_tables(library: Path) -> None:
    """Those of the table that was current when a message began; others may be asked for."""
    ends = socket.socketpair()
    with Mover(library=library, table=TABLE) as here, Mover(library=library) as there:
        here.add_peer(ends[0])
        there.add_peer(ends[1])
        assert here.send(0, 1, bytes(333)).wait(60).fragments == 2
        assert here.send(0, 1, bytes(333), fragment_bytes=50).wait(60).fragments == 7
        here.swap_table(TABLES / "v1" / "aligned.slt")
        with pytest.raises(MoverError, match="damaged"):
            here.swap_table(TABLES / "malformed" / "damaged.slt")
        with pytest.raises(ValueError, match="without a table"):
            there.swap_table(TABLE)
        for _ in range(2):
            assert there.receive(0, 1, bytearray(333)).wait(60).fragments in (2, 7)
    with pytest.raises(MoverError, match="damaged"):
        Mover(library=library, table=TABLES / "malformed" / "damaged.slt")


def test_waiting_lets_others_run(movers: tuple[Mover, Mover]) -> None:
    """The interpreter's lock is given away: another thread sends what this one waits for."""
    here, there = movers
    taken = bytearray(5)
    later = threading.Timer(0.05, lambda: here.send(0, 9, b"hello").wait(60))
    later.start()
    assert there.receive(0, 9, taken).wait(60).message_bytes == 5
    later.join()
    assert taken == b"hello"


def test_what_goes_wrong_has_a_name(library: Path) -> None:
    here, there = pair(library, early_bytes=20_000, max_peers=1)
    with pytest.raises(TypeError, match="written to"):
        here.receive(0, 1, b"constant")
    with pytest.raises(TypeError, match="one piece"):
        here.send(0, 1, memoryview(bytearray(10))[::2])
    with pytest.raises(MoverError):
        here.send(7, 1, b"nobody")
    waiting = here.receive(0, 1, bytearray(4))
    with pytest.raises(TimedOut, match="receive from peer 0, tag 1: 0 of 4 bytes"):
        waiting.wait(0.01)
    assert not waiting.is_done()
    waiting.cancel()
    with pytest.raises(MoverError, match="cancelled"):
        waiting.wait()
    there.send(0, 2, bytes(100)).wait(60)
    with pytest.raises(MoverError, match="longer") as caught:
        here.receive(0, 2, bytearray(10)).wait(60)
    assert caught.value.code == TRUNCATED
    held = there.send(0, 3, bytes(100_000))
    with pytest.raises(TimedOut, match="closed before all"):
        there.close(timeout_s=0.05)
    with pytest.raises(MoverError) as caught:
        held.wait()
    assert caught.value.code == CLOSED
    here.close()
    here.close()


def test_who_has_no_credit_is_told(library: Path) -> None:
    ends = socket.socketpair()
    with Mover(library=library, early_bytes=5000, max_peers=1, stall_s=0.05) as there:
        here = Mover(library=library, stall_s=0.05)
        here.add_peer(ends[0])
        there.add_peer(ends[1])
        held = here.send(0, 4, bytes(50_000))
        with pytest.raises(Stalled, match=r"stalled: send to peer 0, tag 4: .* of 50000") as caught:
            held.wait()
        assert caught.value.report is not None
        assert caught.value.report.tag == 4
        here.close(drain=False)


def test_a_peer_that_talks_nonsense(library: Path) -> None:
    ends = socket.socketpair()
    with Mover(library=library) as here:
        here.add_peer(ends[0])
        waiting = here.receive(0, 1, bytearray(4))
        ends[1].sendall(b"GET / HTTP/1.1\r\n\r\n" * 3)
        with pytest.raises(MoverError, match="protocol") as caught:
            waiting.wait(60)
        assert caught.value.code == PROTOCOL
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with datagrams, pytest.raises(MoverError, match="refused"):
            here.add_peer(datagrams)
    ends[1].close()


def test_without_a_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SLUICE_MOVER_LIBRARY", os.fspath(tmp_path / "none.so"))
    with pytest.raises(OSError, match="none"):
        Mover()


def test_a_buffer_stays_while_the_agent_may_write_to_it(movers: tuple[Mover, Mover]) -> None:
    """Whoever drops the ticket, and the array, has not taken them from the agent."""
    here, there = movers
    grid = np.zeros(100_000)
    kept = weakref.ref(grid)
    here.receive(0, 1, grid)
    del grid
    assert kept() is not None
    there.send(0, 1, np.ones(100_000)).wait(60)
    behind = here.receive(0, 2, bytearray(1))
    there.send(0, 2, b"x").wait(60)
    behind.wait(60)
    written = kept()
    assert written is not None
    del written
    here.close(drain=False)
    assert kept() is None


def test_a_mover_that_is_dropped_ends_its_agent(library: Path) -> None:
    here, there = pair(library)
    arriving = there.receive(0, 1, bytearray(1))
    here.receive(0, 1, bytearray(100))
    del here
    with pytest.raises(MoverError) as raised:
        arriving.wait(60)
    assert raised.value.code == PEER
    there.close(drain=False)


@pytest.mark.parametrize(("peer", "tag"), [(2**32, 1), (0, 2**32), (0, -1), (True, 0), (0, 1.0)])
def test_numbers_that_c_would_cut_are_refused(
    movers: tuple[Mover, Mover], peer: int, tag: int
) -> None:
    """They would name another peer or tag."""
    with pytest.raises(ValueError, match=r"expected (peer|tag) to be a whole number from 0 to"):
        movers[0].send(peer, tag, b"x")
    with pytest.raises(ValueError, match="expected fragment_bytes to be a whole number"):
        movers[0].send(0, 0, b"x", fragment_bytes=-1)


def test_a_timeout_may_be_endless(movers: tuple[Mover, Mover]) -> None:
    movers[1].receive(0, 1, bytearray(1))
    assert movers[0].send(0, 1, b"x").wait(float("inf")).moved_bytes == 1
