"""Columns of CSV as people name them: sizes, repetitions, stages, and what is no stage."""

from __future__ import annotations

import pytest

from domain.errors import UnreadableTrace
from domain.measurement import DirectTrace, MessageTrace
from domain.trace_formats import UnrecognisedTrace
from fitting import read


@pytest.mark.parametrize("header", ["bytes,t_min,t_max,t_avg", "size,p50,p99", "size,min"])
def test_statistics_are_no_stages(header: str) -> None:
    """So nobody is told to make stages of them, nor does a unit make them stages."""
    with pytest.raises(UnrecognisedTrace) as refusal:
        read(f"{header}\n64,1,2,3\n".encode())
    assert refusal.value.hint is None
    named = header.replace(",", "_us,") + "_us\n64,1,2,3\n"
    with pytest.raises(UnreadableTrace, match=r"column 2: .* may be a statistic"):
        read(named.replace("_us", "", 1).encode())


@pytest.mark.parametrize(
    ("header", "stages"),
    [
        ("bytes,copy_us,send_us", ("copy", "send")),
        ("msg_size,rep,copy_us,total_us", ("copy",)),
        ("Size (bytes),pack_us,wire_us", ("pack", "wire")),
    ],
)
def test_direct_times_as_people_write_them(header: str, stages: tuple[str, ...]) -> None:
    """Without repetitions, and sizes by other names; both are said back."""
    row = ",1" * header.count(",")
    reading = read(f"{header}\n64{row}\n128{row}\n64{row}\n".encode())
    stated = dict(reading.understood)
    assert isinstance(reading.trace, DirectTrace)
    assert reading.trace.stage_names == stages
    assert stated["size_column"] == header.partition(",")[0]
    if "rep" not in header:
        assert list(reading.trace.repetitions) == [0, 0, 1]
        assert stated["repetitions"].startswith("numbered")


def test_whole_messages_without_repetitions() -> None:
    """Nobody has to make such a column up."""
    trace = read(b"bytes,latency_us,interarrival_us\n64,9,\n64,10.5,2e0\n").trace
    assert isinstance(trace, MessageTrace)
    assert trace.latency is not None
    assert trace.interarrival is not None
    assert list(trace.latency.times_us) == [9.0, 10.5]
    assert list(trace.interarrival.message_bytes) == [64]
