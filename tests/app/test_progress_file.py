"""How far a child is: what was told last, or nothing that could mislead."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator

import pytest

from app.progress_file import MOST_STEPS, Steps, read_steps, write_steps


@pytest.fixture
def descriptor() -> Iterator[int]:
    """Of a file without a name."""
    with tempfile.TemporaryFile() as file:
        yield file.fileno()


def test_the_last_word_counts(descriptor: int) -> None:
    """Nothing before the first; the file does not grow."""
    assert read_steps(descriptor) is None
    for done in (0, 3, 7):
        write_steps(descriptor, done, 7)
        assert read_steps(descriptor) == Steps(done, 7)
    assert os.fstat(descriptor).st_size == 20


@pytest.mark.parametrize("at", range(20))
def test_a_record_that_is_not_whole_is_not_believed(descriptor: int, at: int) -> None:
    """Any byte of it changed, or missing from there on."""
    write_steps(descriptor, 3, 1000)
    record = os.pread(descriptor, 20, 0)
    os.pwrite(descriptor, bytes([record[at] ^ 0x40]), at)
    assert read_steps(descriptor) is None
    os.ftruncate(descriptor, at)
    assert read_steps(descriptor) is None


@pytest.mark.parametrize("steps", [(8, 7), (1, 0), (0, MOST_STEPS + 1), (2**63, 2**63)])
def test_numbers_that_cannot_be_are_not_believed(descriptor: int, steps: tuple[int, int]) -> None:
    """More than all, or more than a column of the database holds."""
    write_steps(descriptor, *steps)
    assert read_steps(descriptor) is None


def test_reader_and_writer_at_the_same_time(descriptor: int) -> None:
    """What is read was written in one piece, and never falls."""
    last = 20_000

    def tell() -> None:
        for done in range(last + 1):
            write_steps(descriptor, done, last)

    writer, seen = threading.Thread(target=tell), [0]
    writer.start()
    while seen[-1] < last:
        steps = read_steps(descriptor)
        if steps is not None:
            assert steps.total == last
            seen.append(steps.done)
    writer.join()
    assert seen == sorted(seen)
