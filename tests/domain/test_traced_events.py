"""domain/traced_events.py: what is an event, and every rule that a refusal names."""

from __future__ import annotations

from array import array
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

from contract.limits import MAX_MESSAGE_BYTES, MAX_STAGES
from domain.errors import UnreadableTrace
from domain.traced_events import (
    MAX_EVENT_NS,
    MAX_NUMBER,
    NOT_KNOWN,
    TracedEvents,
    one_after_the_other,
)

EVENTS = TracedEvents(
    ("hash", "send"),
    message=(0, 0, 3),
    fragment=(0, 1, 0),
    fragment_bytes=(4096, 4096, 512),
    begin_ns=((0, 900, 5000), (950, NOT_KNOWN, 6000)),
    duration_ns=((880, 890, 0), (1100, NOT_KNOWN, 5)),
    busy_ns=((870, NOT_KNOWN, 0), (NOT_KNOWN, NOT_KNOWN, 7)),
)


def test_rows_ends_and_what_is_missing() -> None:
    assert len(EVENTS) == 3
    assert [list(ends) for ends in EVENTS.end_ns] == [[880, 1790, 5000], [2050, NOT_KNOWN, 6005]]
    assert EVENTS.missing == 1
    assert np.array(EVENTS.begin_ns).T.shape == (3, 2)


def test_it_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        EVENTS.message = ()  # type: ignore[misc]


def test_arrays_are_columns_too() -> None:
    assert len(replace(EVENTS, message=array("q", EVENTS.message))) == 3


def test_the_limits_themselves_are_taken() -> None:
    found = TracedEvents(
        tuple(f"s{place}" for place in range(MAX_STAGES)),
        (MAX_NUMBER,),
        (MAX_NUMBER,),
        (MAX_MESSAGE_BYTES,),
        ((MAX_EVENT_NS,),) * MAX_STAGES,
        ((MAX_EVENT_NS,),) * MAX_STAGES,
        ((MAX_EVENT_NS,),) * MAX_STAGES,
    )
    assert len(found) == 1


BEGINS, DURATIONS, BUSY = EVENTS.begin_ns, EVENTS.duration_ns, EVENTS.busy_ns


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"stages": ()}, "events of 1 to 64 stages"),
        ({"stages": ("hash", "hash")}, "a name of its own"),
        ({"stages": ("hash",)}, "of every stage"),
        ({"busy_ns": BUSY[:1]}, "of every stage"),
        ({"message": ()}, "at least one fragment"),
        ({"fragment": (0, 1)}, "the same length"),
        ({"busy_ns": (BUSY[0], BUSY[1][:2])}, "the same length"),
        ({"message": (-1, 0, 3)}, "numbers of messages from 0"),
        ({"fragment": (0, 1, MAX_NUMBER + 1)}, "numbers of fragments from 0"),
        ({"fragment_bytes": (4096, 0, 512)}, "fragments of 1 to"),
        ({"fragment_bytes": (4096, MAX_MESSAGE_BYTES + 1, 512)}, "fragments of 1 to"),
        ({"message": (3, 0, 0)}, "in ascending order"),
        ({"fragment": (0, 0, 0)}, "once, in ascending order"),
        ({"begin_ns": ((0, -2, 5000), BEGINS[1])}, "whole numbers of ns"),
        ({"busy_ns": (BUSY[0], (-1, -1, MAX_EVENT_NS + 1))}, "whole numbers of ns"),
        ({"begin_ns": (BEGINS[0], (950, 3, 6000))}, "a duration where there is a begin"),
        ({"duration_ns": (DURATIONS[0], (1100, 0, 5))}, "a duration where there is a begin"),
        ({"busy_ns": (BUSY[0], (-1, 0, 7))}, "no busy time of an event that is missing"),
        (
            {
                "begin_ns": ((0, -1, 5000), BEGINS[1]),
                "duration_ns": ((880, -1, 0), DURATIONS[1]),
            },
            "an event or more of every fragment",
        ),
    ],
)
def test_what_breaks_a_rule_is_refused(changes: dict[str, Any], rule: str) -> None:
    with pytest.raises(UnreadableTrace, match=rule) as caught:
        replace(EVENTS, **changes)
    assert caught.value.field == "measurements"


def test_parts_follow_each_other() -> None:
    both = one_after_the_other([EVENTS, EVENTS])
    assert list(both.message) == [0, 0, 3, 4, 4, 7]
    assert list(both.begin_ns[1]) == [950, NOT_KNOWN, 6000, 6955, NOT_KNOWN, 12005]
    assert one_after_the_other([EVENTS]).missing == EVENTS.missing
    with pytest.raises(UnreadableTrace, match="events of the same stages"):
        one_after_the_other([EVENTS, replace(EVENTS, stages=("hash", "wire"))])
    with pytest.raises(UnreadableTrace, match="numbers of messages"):
        one_after_the_other([EVENTS, replace(EVENTS, message=(0, 0, MAX_NUMBER))])
