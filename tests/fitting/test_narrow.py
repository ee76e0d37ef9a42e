"""fitting/narrow.py: the samples of certain sizes, and nothing else of a trace."""

from __future__ import annotations

import pytest

import fitting
from domain.errors import UnreadableTrace
from domain.measurement import DirectTrace, MessageTrace, Samples, SignatureTrace

DIRECT = DirectTrace(
    ("a", "b"), (64, 128, 256, 64), (0, 0, 0, 1), ((1, 2, 3, 4), (5, 6, 7, 8)), (6, 8, 10, 12)
)


def test_a_direct_trace() -> None:
    part = fitting.part_within(DIRECT, 64, 128)
    assert isinstance(part, DirectTrace)
    assert (part.stage_names, list(part.message_bytes)) == (("a", "b"), [64, 128, 64])
    assert (list(part.repetitions), list(part.total_us or ())) == ([0, 0, 1], [6, 8, 12])
    assert [list(column) for column in part.stage_us] == [[1, 2, 4], [5, 6, 8]]
    assert fitting.measured_sizes(DIRECT) == ((64, 128, 256),)


def test_messages_from_outside() -> None:
    trace = MessageTrace(Samples((64, 4096), (1, 2)), Samples((64, 128, 256), (3, 4, 5)))
    assert fitting.measured_sizes(trace) == ((64, 4096), (64, 128, 256))
    part = fitting.part_within(trace, 100, 5000)
    assert isinstance(part, MessageTrace)
    assert part.latency is not None
    assert part.interarrival is not None
    assert (list(part.latency.times_us), list(part.interarrival.times_us)) == ([2], [4, 5])
    only = fitting.part_within(trace, 128, 256)
    assert isinstance(only, MessageTrace)
    assert only.latency is None


def test_signatures() -> None:
    """Round trips are cut by their own sizes."""
    trace = SignatureTrace(
        (8, 8, 64),
        (1, 2, 1),
        (0, 0, 5),
        (3, 4, 9),
        Samples((8, 64), (20, 30)),
        handles_replies=False,
    )
    part = fitting.part_within(trace, 64, 64)
    assert isinstance(part, SignatureTrace)
    assert (list(part.bursts), list(part.cost_us), part.handles_replies) == ([1], [9], False)
    assert part.round_trip is not None
    assert list(part.round_trip.times_us) == [30]


@pytest.mark.parametrize("trace", [DIRECT, MessageTrace(Samples((64,), (1,)))])
def test_nothing_left(trace: DirectTrace | MessageTrace) -> None:
    with pytest.raises(UnreadableTrace):
        fitting.part_within(trace, 1000, 2000)
