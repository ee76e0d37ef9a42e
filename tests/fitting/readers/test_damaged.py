"""Damaged files of every format: readings, or refusals in words, and never slow."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
COLUMNS = ("size=#1,time=#2:us", "size=#2,rate=#4:GB/s", "size=bytes,time=lat_us")


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
    refusals = UnreadableTrace if columns is None else (UnreadableTrace, InvalidInput)
    try:
        reading = read(content, kind=kind, columns=columns)
    except refusals:
        return
    assert kind is None or reading.trace.kind is kind


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
