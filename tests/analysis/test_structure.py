"""analysis/structure on simulated movers of twelve kinds, and on events of no mover at all.

A campaign traces 45 movers of each kind, and 500 of which no stages overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from analysis.structure.detect import structure_of
from analysis.structure.events import (
    MAX_FRAGMENTS,
    MIN_FRAGMENTS,
    MIN_MESSAGES,
    TracedMessage,
    messages_of,
)
from bench.traced_movers import KINDS, NEVER_PIPELINED, Traced, is_right, lost_by_advice, traced
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


def known_only(drawn: Traced, keeps: Callable[[int, int, int], bool]) -> Traced:
    """Processor times of those events alone of which (message, fragment, stage) are kept."""

    def of_message(place: int, one: TracedMessage) -> TracedMessage:
        fragments, stages = one.busy_us.shape
        kept = [[keeps(place, i, j) for j in range(stages)] for i in range(fragments)]
        return replace(one, busy_us=np.where(kept, one.busy_us, np.nan))

    messages = tuple(of_message(place, one) for place, one in enumerate(drawn.messages))
    return replace(drawn, messages=messages)


@pytest.mark.parametrize("kind", ["core", "pool"])
@pytest.mark.parametrize(
    "keeps",
    [
        lambda message, fragment, stage: fragment == 1,
        lambda message, fragment, stage: fragment % 2 == 0,
        lambda message, fragment, stage: message % 3 == 0,
        lambda message, fragment, stage: message < 5,
        lambda message, fragment, stage: stage == 0,
    ],
    ids=["one a message", "every other", "a third of messages", "five messages", "one stage"],
)
def test_with_few_processor_times_what_is_shared_is_no_chain(
    kind: str, keeps: Callable[[int, int, int], bool]
) -> None:
    """The others' durations contain what they share: they count as nothing, not as work."""
    for seed in range(7_000, 7_002):
        drawn = traced(kind, seed, MESSAGES)
        found = found_in(known_only(drawn, keeps))
        assert found.kind in (StructureKind.SHARED_PROCESSORS, StructureKind.SWEEP), seed
        if found.kind is StructureKind.SHARED_PROCESSORS:
            assert is_right(drawn.mover, found), seed


def test_processor_times_of_whole_messages_are_enough() -> None:
    for kind in ("core", "pool", "chain"):
        drawn = traced(kind, 7_100, MESSAGES)
        assert is_right(
            drawn.mover, found_in(known_only(drawn, lambda message, *_: message % 3 == 0))
        )


def test_a_clock_of_processor_time_that_ticks_says_nothing() -> None:
    for kind in ("core", "pool"):
        drawn = traced(kind, 7_200, MESSAGES)
        coarse = [replace(one, busy_us=one.busy_us // 1e5 * 1e5) for one in drawn.messages]
        assert structure_of(coarse, drawn.stages).kind is StructureKind.SWEEP


@pytest.mark.parametrize("kind", ["window", "turns", "serial"])
def test_a_computer_that_slept_in_a_message_changes_nothing(kind: str) -> None:
    drawn = traced(kind, 7_300, MESSAGES)
    slept = list(drawn.messages)
    one = slept[3]
    later = np.where(one.begin_us > float(np.median(one.begin_us)), 1e9, 0.0)
    slept[3] = replace(one, begin_us=one.begin_us + later, end_us=one.end_us + later)
    assert is_right(drawn.mover, structure_of(slept, drawn.stages))


def test_handing_over_differs_by_stage() -> None:
    """A serial mover one of whose stages waits long for what is handed over."""
    work, hands = np.array([40.0, 30.0, 50.0]), np.array([0.0, 0.5, 60.0])
    begin = np.cumsum(work + hands) - work + np.arange(12)[:, None] * (work + hands).sum()
    one = TracedMessage(4096, begin, begin + work, np.full(begin.shape, np.nan))
    found = structure_of([one] * MIN_MESSAGES, ("read", "pack", "send"))
    assert found.kind is StructureKind.SERIAL
    assert abs(found.evidence.replay_error) < 0.01


def test_long_messages_are_cut() -> None:
    drawn = traced("barrier", 7_400, MIN_MESSAGES)
    long = []
    for one in drawn.messages:
        work = np.tile(one.end_us - one.begin_us, (40, 1))
        begin = np.concatenate([[0.0], np.cumsum(work.T.ravel())[:-1]]).reshape(work.T.shape).T
        long.append(TracedMessage(one.fragment_bytes, begin, begin + work, work))
    found = structure_of(long, drawn.stages)
    assert found.kind is StructureKind.BARRIER
    assert found.evidence.fragments == MAX_FRAGMENTS * MIN_MESSAGES


def test_one_stage_and_few_messages_are_nothing_that_is_known() -> None:
    drawn = traced("chain", 3, MIN_MESSAGES)
    few = structure_of(drawn.messages[:-1], drawn.stages)
    assert few.kind is StructureKind.SWEEP
    assert few.reason == "19 of its messages are whole and have 8 fragments or more, 20 are needed"
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


def events_from(
    rows: Sequence[tuple[int, int, int, int]], *, stages: int = 2, lasts_ns: int = 1000
) -> TracedEvents:
    """Of rows of message, fragment, its bytes, and its begin in the first stage."""
    rows = sorted(rows)
    message, fragment, sizes, begins = zip(*rows, strict=True)
    return TracedEvents(
        tuple(f"stage {place}" for place in range(stages)),
        message,
        fragment,
        sizes,
        tuple(tuple(at + place * lasts_ns for at in begins) for place in range(stages)),
        tuple((lasts_ns,) * len(rows) for _ in range(stages)),
        tuple((NOT_KNOWN,) * len(rows) for _ in range(stages)),
    )


@pytest.mark.parametrize(
    ("numbers", "sizes", "is_kept"),
    [
        ((0, 1, 2, 3), (64,) * 4, True),
        ((5, 6, 7), (64,) * 3, True),
        ((0, 64, 128), (64, 64, 7), True),
        ((0, 64, 164, 174), (64, 100, 10, 7), True),
        ((0, 1, 3, 4), (64,) * 4, False),
        ((0, 64, 192), (64,) * 3, False),
        ((0, 1, 2, 4), (64,) * 4, False),
        ((9,), (64,), True),
    ],
)
def test_messages_without_a_fragment_are_left_out(
    numbers: tuple[int, ...], sizes: tuple[int, ...], is_kept: bool
) -> None:
    """Fewer fragments in a window than there were would be a smaller window."""
    own = [
        (7, number, size, at * 500)
        for at, (number, size) in enumerate(zip(numbers, sizes, strict=True))
    ]
    others = [(6, place, 64, place * 500) for place in range(3)]
    found = messages_of(events_from([*own, *others, (8, 0, 64, 0)]))
    assert [len(one.begin_us) for one in found] == [3, *([len(own)] if is_kept else []), 1]


@given(st.permutations(range(12)), st.integers(1, 5))
def test_fragments_are_in_the_order_in_which_they_began(numbers: list[int], step: int) -> None:
    """A mover may number them from behind, or at random."""
    rows = [(3, number * step, 64, place * 500) for place, number in enumerate(numbers)]
    (found,) = messages_of(events_from(rows))
    assert found.begin_us[:, 0].tolist() == [place * 0.5 for place in range(12)]


def test_of_long_traces_messages_far_apart_are_used() -> None:
    drawn = traced("window", 11, 90)
    found = found_in(drawn)
    assert found.evidence.messages == 64
    assert is_right(drawn.mover, found)
