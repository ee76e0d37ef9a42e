"""analysis/structure.py on simulated movers of twelve kinds, and on events of no mover at all.

A campaign traces 45 movers of each kind, and 500 of which no stages overlap.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from analysis.structure import (
    MIN_FRAGMENTS,
    MIN_MESSAGES,
    TracedMessage,
    messages_of,
    structure_of,
)
from bench.traced_movers import (
    KINDS,
    NEVER_PIPELINED,
    Traced,
    is_right,
    lost_by_advice,
    traced,
)
from domain.structure import Structure, StructureKind
from domain.traced_events import NOT_KNOWN, TracedEvents
from tests.support.counts import count

MESSAGES = 50
SEEDS = range(20_000, 20_000 + count(45, share=15))
Outcome = tuple[Traced, Structure]


def found_in(drawn: Traced) -> Structure:
    return structure_of(drawn.messages, drawn.stages)


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    """What is found of each mover."""
    drawn = [traced(kind, seed, MESSAGES) for kind in KINDS for seed in SEEDS]
    return [(one, found_in(one)) for one in drawn]


def test_structure_stages_and_number_are_right(outcomes: list[Outcome]) -> None:
    """Of 95 % of all movers, and of 85 % of each kind."""
    right = [is_right(one.mover, found) for one, found in outcomes]
    assert np.mean(right) >= 0.95
    for kind in KINDS if len(SEEDS) > 20 else ():
        of_kind = [
            ok for (one, _), ok in zip(outcomes, right, strict=True) if one.mover.kind == kind
        ]
        assert np.mean(of_kind) >= 0.85, kind


def test_advice_from_what_was_found_loses_little_or_is_the_command(
    outcomes: list[Outcome],
) -> None:
    lost = {(one.mover.kind, lost_by_advice(one, found)) for one, found in outcomes}
    assert [(kind, share) for kind, share in lost if share is not None and share > 0.05] == []


@pytest.mark.parametrize("kind", NEVER_PIPELINED)
def test_no_mover_whose_stages_wait_is_a_chain(kind: str) -> None:
    for seed in range(30_000, 30_000 + count(170, share=17)):
        found = found_in(traced(kind, seed, MIN_MESSAGES))
        assert found.kind is not StructureKind.CHAIN, seed


def test_without_processor_times_no_stages_are_a_chain() -> None:
    """Durations in flow contain what stages share."""
    for kind in ("core", "pool", "chain"):
        found = found_in(traced(kind, 1, MESSAGES, has_busy_time=False))
        assert not found.is_priced
        assert not found.has_busy_time
    assert "_busy_ns" in found.reason


def test_one_stage_and_few_messages_are_nothing_that_is_known() -> None:
    drawn = traced("chain", 3, MIN_MESSAGES)
    few = structure_of(drawn.messages[:-1], drawn.stages)
    assert few.kind is StructureKind.SWEEP
    assert few.reason == "19 of its messages have 8 fragments or more, 20 are needed"
    alone = [
        replace(
            one,
            begin_us=one.begin_us[:, :1],
            end_us=one.end_us[:, :1],
            busy_us=one.busy_us[:, :1],
        )
        for one in drawn.messages
    ]
    assert structure_of(alone, ("one",)).reason == "one stage overlaps with nothing"
    assert structure_of((), ("one", "two")).kind is StructureKind.SWEEP


@given(shift_us=st.floats(0.0, 1e9), seed=st.integers(0, 5), kind=st.sampled_from(KINDS))
@settings(max_examples=8)
def test_when_a_message_began_does_not_matter(shift_us: float, seed: int, kind: str) -> None:
    drawn = traced(kind, seed, MIN_MESSAGES)
    later = [
        replace(one, begin_us=one.begin_us + shift_us, end_us=one.end_us + shift_us)
        for one in drawn.messages
    ]
    assert structure_of(later, drawn.stages).kind is found_in(drawn).kind


EVENTS = arrays.arrays(
    np.float64,
    st.tuples(st.just(MIN_MESSAGES), st.integers(MIN_FRAGMENTS, 12), st.integers(2, 4), st.just(3)),
    elements=st.one_of(st.just(0.0), st.floats(0.0, 1e9), st.sampled_from([1.0, 2.0, 1e9])),
)


@given(EVENTS, st.booleans())
@settings(max_examples=count(400))
def test_events_of_no_mover_are_found_to_be_something(
    events: np.ndarray[tuple[int, int, int, int], np.dtype[np.float64]], has_busy: bool
) -> None:
    messages = [
        TracedMessage(
            4096,
            one[..., 0],
            one[..., 0] + one[..., 1],
            one[..., 2] if has_busy else one[..., 2] * np.nan,
        )
        for one in events
    ]
    names = tuple(f"stage {place}" for place in range(events.shape[2]))
    found = structure_of(messages, names)
    assert found.stages == names
    assert found.sentence
    assert np.isfinite([*found.handing_over_us, *found.queue_us]).all()


def test_messages_are_taken_from_traced_events() -> None:
    events = TracedEvents(
        ("hash", "send"),
        message=(4, 4, 5, 7),
        fragment=(0, 1, 0, 0),
        fragment_bytes=(4096, 100, 512, 64),
        begin_ns=((10_000, 10_900, 20_000, 30_000), (10_950, 12_100, NOT_KNOWN, 30_500)),
        duration_ns=((880, 890, 10, 20), (1100, 1090, NOT_KNOWN, 30)),
        busy_ns=((870, 880, NOT_KNOWN, 20), (NOT_KNOWN, NOT_KNOWN, NOT_KNOWN, 25)),
    )
    first, last = messages_of(events)
    assert (first.fragment_bytes, last.fragment_bytes) == (4096, 64)
    assert first.begin_us.tolist() == [[0.0, 0.95], [0.9, 2.1]]
    np.testing.assert_allclose(first.end_us, [[0.88, 2.05], [1.79, 3.19]])
    np.testing.assert_array_equal(first.busy_us, [[0.87, np.nan], [0.88, np.nan]])
    assert last.begin_us.tolist() == [[0.0, 0.5]]


def test_of_long_traces_messages_far_apart_are_used() -> None:
    drawn = traced("window", 11, 90)
    found = found_in(drawn)
    assert found.evidence.messages == 64
    assert is_right(drawn.mover, found)
