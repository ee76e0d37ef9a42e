"""What sets the pace, the count beside a size, and notices of machines, in sentences."""

from __future__ import annotations

import pytest

from app.text.in_flight import (
    at_once_words,
    format_in_budget,
    format_whole,
    in_flight_notices,
    limit_sentence,
)
from domain.in_flight import (
    FullRate,
    InFlight,
    InUse,
    Limit,
    LimitKind,
    StageLanes,
    WindowPlaces,
)
from domain.machine import Machine, StageRules, Window
from domain.pipeline import Pipeline
from tests.support.uncertain_machines import line

MIB = 2**20
TWO = Pipeline((line("read", 1.0, 1.0), line("send", 1.0, 1.0)))


def machine(*windows: Window, lanes: int = 1) -> Machine:
    """Two stages, the second one with so many lanes."""
    return Machine(TWO, (StageRules(), StageRules(lanes)), windows)


SLOW = Machine(
    Pipeline((line("read", 1.0, 1.0), line("send", 1.0, 10.0))), (StageRules(), StageRules(10))
)


def found(
    limit: Limit,
    *,
    stages: tuple[StageLanes, ...] = (),
    windows: tuple[WindowPlaces, ...] = (),
    work_us: float = 0.0,
    delays_alone: bool = False,
) -> InFlight:
    """Of fragments of 1 MiB."""
    return InFlight(MIB, limit.period_us, stages, windows, (), limit, work_us, delays_alone)


STAGE = Limit(LimitKind.STAGE, 1, 1, 120.0, 1)
FULL = FullRate(50.0, 8, 8 * MIB)


@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        (STAGE, "send sets the pace: a fragment of 1 MiB takes it 120.0 µs."),
        (
            Limit(LimitKind.SHARED_PART, 1, 1, 120.0, 1),
            "What the lanes of send share sets the pace: a fragment of 1 MiB takes 120.0 µs of it.",
        ),
        (
            Limit(LimitKind.LANES, 1, 1, 400.0, 4),
            "The 4 lanes of send set the pace: a fragment of 1 MiB takes 400.0 µs on one, so that "
            "one ends every 100.0 µs.",
        ),
        (
            Limit(LimitKind.LANES, 1, 1, 400.0, 4, full_rate=FULL),
            "The 4 lanes of send set the pace: a fragment of 1 MiB takes 400.0 µs on one, so that "
            "one ends every 100.0 µs. The full rate, one every 50.00 µs, takes 8 lanes: 8 MiB "
            "under way.",
        ),
        (
            Limit(LimitKind.WINDOW, 0, 1, 400.0, 4, window=0, full_rate=FULL),
            "The window from read to send sets the pace: its 4 places, free again after 400.0 µs, "
            "let a fragment of 1 MiB pass every 100.0 µs. The full rate, one every 50.00 µs, takes "
            "8 places: 8 MiB under way.",
        ),
        (
            Limit(LimitKind.WINDOW, 1, 1, 400.0, 1, window=0),
            "The window over send sets the pace: its 1 place, free again after 400.0 µs, lets "
            "a fragment of 1 MiB pass every 400.0 µs.",
        ),
        (
            Limit(LimitKind.PROCESSOR, 0, 1, 90.0, 1, processor="core"),
            "core sets the pace: read and send take 90.00 µs of it together.",
        ),
        (
            Limit(LimitKind.PROCESSOR, 0, 1, 90.0, 3, processor="core"),
            "core sets the pace: with read 2 fragments ahead of send, a fragment of 1 MiB passes "
            "every 30.00 µs.",
        ),
    ],
)
def test_what_sets_the_pace(limit: Limit, sentence: str) -> None:
    """And what the full rate takes."""
    assert limit_sentence(machine(lanes=4), found(limit)) == sentence


@pytest.mark.parametrize(
    ("model", "size", "message", "words"),
    [
        (SLOW, MIB, 64 * MIB, " on 10 lanes of send"),
        (SLOW, 30 * MIB, 64 * MIB, " on 3 lanes of send"),
        (SLOW, MIB, MIB, ""),
        (machine(lanes=10), MIB, 64 * MIB, " on 2 lanes of send"),
        (machine(), MIB, 64 * MIB, ""),
        (machine(Window(0, 1, 1)), MIB, 64 * MIB, ", 1 at a time"),
        (machine(Window(0, 1, 40)), MIB, 64 * MIB, ", 3 at a time"),
        (machine(Window(0, 1, 4), lanes=2), MIB, 64 * MIB, " on 2 lanes of send"),
        (
            machine(Window(0, 1, bytes=8 * MIB)),
            4 * MIB,
            64 * MIB,
            ", 2 buffers of 4 MiB in your 8 MiB",
        ),
        (
            machine(Window(0, 1, bytes=6 * 10**9)),
            3 * 10**9,
            10**12,
            ", 2 buffers of 3 GB in your 6 GB",
        ),
        (
            machine(Window(0, 1, bytes=10**9)),
            10**9,
            10**12,
            ", 1 buffer of 1 GB in your 1 GB",
        ),
    ],
)
def test_the_count_beside_a_size(model: Machine, size: int, message: int, words: str) -> None:
    """As many as are enough, lanes before windows, and no more than there are fragments."""
    assert at_once_words(model, size, message) == words


@pytest.mark.parametrize(
    ("size", "budget", "text"),
    [
        (2_998_099_832, 6 * 10**9, "2.998 GB"),
        (750_000_000, 6 * 10**9, "750 MB"),
        (3 * MIB, 8 * MIB, "3 MiB"),
        (4096, 12_345, "4 KiB"),
        (4096, 1_024_000, "4 KiB"),
        (900, 3_000, "0.9 kB"),
    ],
)
def test_sizes_are_told_in_the_units_of_a_budget(size: int, budget: int, text: str) -> None:
    """Those of 1000 where it is whole in them alone."""
    assert format_in_budget(size, budget) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (2_000_000_000, "2 GB"),
        (1_000_000_000_000, "1 TB"),
        (512_000_000, "512 MB"),
        (8 * MIB, "8 MiB"),
        (2**20 * 10**6, "1000000 MiB"),
        (97_542, "95.26 KiB (97\u202f542 B)"),
    ],
)
def test_whole_sizes_are_told_as_they_were_given(size: int, text: str) -> None:
    """In units of 1000 where they are whole in these alone."""
    assert format_whole(size) == text


def lanes(
    used: int | None, fewest: int, *, alone_us: float = 400.0, shared_us: float = 0.0
) -> StageLanes:
    """Four lanes of the second stage, one of which has the last round."""
    return StageLanes(1, InUse(4, used, fewest), alone_us, shared_us, 1, alone_us)


def notices(of: InFlight, *windows: Window) -> dict[str, str]:
    """The sentences by their codes, of a message that takes 1 ms."""
    model = machine(*windows, lanes=4)
    return {one.code: one.detail for one in in_flight_notices(model, of, 1_000.0)}


def test_a_plain_limit_says_nothing() -> None:
    """Nor lanes that are all needed."""
    assert notices(found(STAGE, stages=(lanes(4, 4),))) == {}


def test_a_window_that_limits() -> None:
    """With what would let the full rate through."""
    limit = Limit(LimitKind.WINDOW, 0, 1, 400.0, 2, window=0, full_rate=FULL)
    assert notices(found(limit), Window(0, 1, 2)) == {
        "window_limits": "the window from read to send sets the pace: its 2 places come back after "
        "400.0 µs; 8, 8 MiB, would let the full rate through"
    }


def test_lanes_that_idle() -> None:
    """Never in use, not needed, or in the last round of lanes that limit."""
    assert notices(found(STAGE, stages=(lanes(3, 2),))) == {
        "lanes_idle": "stage send: 3 of 4 lanes are in use at once at most; 3 of 4 lanes are "
        "enough with their best size"
    }
    limit = Limit(LimitKind.LANES, 1, 1, 400.0, 4)
    assert notices(found(limit, stages=(lanes(4, 4),))) == {
        "lanes_idle": "stage send: the last round over the lanes has 1 fragment, and what idles in "
        "it costs up to 300.0 µs of 1.000 ms"
    }


def test_lanes_near_the_knee() -> None:
    """With both rates."""
    of = found(STAGE, stages=(lanes(4, 4, alone_us=400.0, shared_us=90.0),))
    assert notices(of) == {
        "near_the_knee": "stage send: its 4 lanes could do 10486 MB/s together, and share 11651 "
        "MB/s: so near to that, movers were 18 to 26 % slower than is said here"
    }


def test_a_processor_that_limits() -> None:
    """With its share of the whole."""
    limit = Limit(LimitKind.PROCESSOR, 0, 1, 90.0, 1, processor="core")
    of = found(limit, work_us=900.0)
    assert notices(of) == {
        "processor_bound": "core is at work for 900.0 µs of 1.000 ms: no cut hides what it does "
        "for both read and send"
    }
    (notice,) = in_flight_notices(machine(), of, 1_000.0)
    assert dict(notice.values) == {"work_us": 900.0, "share": 0.9}


def test_words_that_change_nothing() -> None:
    """A window as wide as its stages, and delays with nothing over them."""
    places = WindowPlaces(0, InUse(2, 2, 1), None, never_binds=True)
    assert notices(found(STAGE, windows=(places,), delays_alone=True), Window(0, 1, 2)) == {
        "window_never_binds": "the window from read to send of 2 places changes nothing for "
        "fragments of one size: its stages handle no more at once",
        "delays_change_no_cut": "no window and no processor is over the delays: they add what they "
        "are to every cut, and change none",
    }
