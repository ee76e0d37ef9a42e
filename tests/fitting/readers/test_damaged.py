"""Damaged files of every format: readings, or refusals in words, and never slow."""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.conditions import RowChoice
from domain.errors import InvalidInput, UnreadableTrace
from domain.measurement import TraceKind
from fitting import read
from tests.fitting.readers.test_plain_text import PREFIXES
from tests.fitting.readers.test_tools import EXAMPLE, FORMATS, content_of
from tests.support.counts import count

SAMPLES = [content_of(name) for name in FORMATS] + [EXAMPLE.read_bytes()[:4000]]
PIECES = st.sampled_from(
    b'-nan|1e400|\t|\r\n|-1|99999999999999999999|\xff|\0|,|0|{|}|[|"|null|1e-320|true'.split(b"|")
)
WORDS = ("0", "-1", "nan", "1e9", "x", "#", "2048", "65536", "0.001", "99999999999", "")
TESTS = ("osu_latency", "osu_bw", "PingPong", "Uniband", "sendrecv_perf", "fio_clat", "ib_read_lat")
MAX_S = 0.25  # of processor time
COLUMNS = ("size=#1,time=#2:us", "size=#2,rate=#4:GB/s", "size=bytes,time=lat_us")


@contextmanager
def soon() -> Iterator[None]:
    """Check the processor time of what is read, without collections of garbage: one looks through
    all that a campaign has kept of 60 000 cases, 0.3 s at times.
    """
    gc.disable()
    begun = time.thread_time()
    try:
        yield
    finally:
        took_s = time.thread_time() - begun
        gc.enable()
    assert took_s < MAX_S


@settings(max_examples=count(60_000, share=150))
@given(data=st.data())
def test_damaged_files_give_a_reading_or_a_clear_refusal(data: st.DataObject) -> None:
    """Truncated, with pieces put in or taken out: never another exception."""
    content = data.draw(st.sampled_from(SAMPLES))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = data.draw(st.integers(start, min(len(content), start + 40)))
        content = content[:start] + data.draw(PIECES | st.binary(max_size=8)) + content[end:]
    content = content[: data.draw(st.integers(0, len(content)))]
    form = data.draw(st.sampled_from([None, None, *PREFIXES.values()]))
    if form is not None:
        lines = form(content.decode("utf-8", errors="surrogateescape").split("\n"))
        content = "\n".join(lines).encode("utf-8", errors="surrogateescape")
    kind = data.draw(st.none() | st.sampled_from(list(TraceKind)))
    columns = data.draw(st.sampled_from([None, None, None, *COLUMNS]))
    refusals = (UnreadableTrace,) if columns is None else (UnreadableTrace, InvalidInput)
    with soon(), suppress(*refusals):
        reading = read(content, kind=kind, columns=columns)
        assert kind is None or reading.trace.kind is kind


def damaged_lines(content: bytes, random: Random) -> bytes:
    """Lines taken out, doubled, moved, and with other figures: text that may still be read."""
    lines = content.decode("utf-8", errors="replace").split("\n")
    for _ in range(random.randint(1, 6)):
        at, to = random.randrange(len(lines)), random.randrange(len(lines))
        match random.randrange(6):
            case 0 if len(lines) > 1:
                del lines[at]
            case 1:
                lines.insert(to, lines[at])
            case 2:
                lines[at], lines[to] = lines[to], lines[at]
            case 3:
                words = lines[at].split(" ")
                words[random.randrange(len(words))] = random.choice(WORDS)
                lines[at] = " ".join(words)
            case 4:
                lines[at] = re.sub(
                    "[0-9]", lambda _: random.choice("0123456789"), lines[at], count=3
                )
            case _:
                lines[at] = lines[at][: random.randint(0, len(lines[at]))]
    return "\n".join(lines).encode()


@given(random=st.randoms(use_true_random=False))
@settings(max_examples=count(60_000, share=150))
def test_damaged_lines_give_a_reading_or_a_clear_refusal(random: Random) -> None:
    """What a user's editor, grep or a full disk leaves of a file."""
    content = damaged_lines(random.choice(SAMPLES), random)
    choice = RowChoice(
        random.choice([None, None, *TESTS]), random.choice([None, None, 1, 2]), where=None
    )
    with soon(), suppress(UnreadableTrace, InvalidInput):
        read(content, choice=choice)


# A JSON document is one, and of these logs nobody can tell which box belongs to which table.
ONE_RUN = {"direct.json", "indirect.json", "ucx-two-logs.txt"}


@pytest.mark.parametrize("name", sorted(set(FORMATS) - ONE_RUN))
def test_a_file_repeated_has_the_samples_of_both(name: str) -> None:
    """Runs that follow each other in one log: what can be read of one can be read of two."""
    content = content_of(name)
    kind = TraceKind.INDIRECT if name == "ucx-plain.csv" else None
    try:
        once = read(content, kind=kind)
    except UnreadableTrace:
        return
    twice = read(content + content, kind=kind)
    assert twice.trace.kind is once.trace.kind
    assert len(twice.trace) >= len(once.trace)
