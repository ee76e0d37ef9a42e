"""The race of sizes: what it asks for, what it says, and that it goes on from its rows."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, exp
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.size_race import MIN_RUNS, RacePlan, SizeRace
from analysis.transfer_sizes import decide_size
from domain.errors import InvalidInput
from domain.own_transfers import OwnTransfers, SizeVerdict, TransferStatus

MIB = 1 << 20
MESSAGE = 64 * MIB
Times = Callable[[int], float | None]


def on_curve(size: int) -> float:
    """Best at 8 MiB: 8 fragments of 20 ms, and 160 ms for the first."""
    return 1e5 + 2e4 * (size / MIB) + 2e4 * ceil(MESSAGE / size)


def noisy(true_us: Callable[[int], float], noise: float = 0.03, seed: int = 1) -> Times:
    """Runs with a noise of 3 %."""
    random = np.random.default_rng(seed)
    return lambda size: true_us(size) * exp(noise * random.standard_normal())


def run(race: SizeRace, times: Times, most: int = 10_000) -> SizeRace:
    """Run a race to its end, or for so many runs; None is a failure."""
    for _ in range(most):
        size = race.next()
        if size is None:
            break
        time_us = times(size)
        race.tell(size, time_us, reason="" if time_us else f"no parts of {size}")
    return race


@pytest.mark.parametrize("current", [16 * 1024, MIB, 3 * MIB, MESSAGE, None])
def test_a_size_that_is_much_faster_is_set(current: int | None) -> None:
    """From anywhere, in 40 runs at most, with an interval that holds the truth."""
    race = run(SizeRace(RacePlan(MESSAGE, current)), noisy(on_curve))
    decision = race.decision()
    assert decision.verdict is SizeVerdict.SET
    assert decision.size_bytes in (6 * MIB, 8 * MIB, 12 * MIB)
    assert len(race.rows()) <= 40
    assert decision.gain is not None
    assert decision.current_bytes == (current or MESSAGE)
    gain = 1.0 - on_curve(decision.size_bytes) / on_curve(decision.current_bytes)
    assert decision.gain.low <= gain <= decision.gain.high


def test_the_best_size_is_kept() -> None:
    """With two blocks and no more runs than that takes."""
    race = run(SizeRace(RacePlan(MESSAGE, 8 * MIB)), noisy(on_curve))
    assert race.decision().verdict is SizeVerdict.KEEP
    assert race.decision().size_bytes == 8 * MIB
    assert len(race.rows()) < 30


def test_the_order_of_runs() -> None:
    """The current size warms up and is run; then the whole; then steps of 2 outwards, on both
    sides, until they take three times the best.
    """
    race = run(SizeRace(RacePlan(MESSAGE, 8 * MIB, seed=4)), lambda size: on_curve(size))
    rows = race.rows()
    assert rows[0].status is TransferStatus.WARM_UP
    assert [row.fragment_bytes // MIB for row in rows[:3]] == [8, 8, 64]
    mapped = {row.fragment_bytes / MIB for row in rows if row.block == 0}
    assert mapped == {8, 4, 2, 1, 16, 32, 64}
    assert on_curve(MIB) > 3 * on_curve(8 * MIB) > on_curve(2 * MIB)


def test_pairs_stand_together_in_random_order() -> None:
    """A block compares the two sizes in neighbouring runs, and either comes first."""
    firsts = set()
    for seed in range(4):
        race = run(SizeRace(RacePlan(MESSAGE, 4 * MIB, seed=seed)), noisy(on_curve, 0.1, seed))
        places = dict[int | None, list[int]]()
        for place, row in enumerate(race.rows()):
            if row.challenge is not None:
                places.setdefault(row.block, []).append(place)
        pairs = [found for found in places.values() if len(found) == 2]
        assert len(pairs) >= len(places) - 1  # the last block may be cut off
        assert all(second == first + 1 for first, second in pairs)
        firsts |= {race.rows()[first].fragment_bytes == 4 * MIB for first, _ in pairs}
    assert firsts == {True, False}


def test_a_warm_up_that_fails_is_made_again() -> None:
    """And the current size is run all the same."""
    times = iter([None, 5.0, *[4.0] * 40])
    race = run(SizeRace(RacePlan(8, 8)), lambda size: next(times), 4)
    first, second, third, *_ = race.rows()
    assert [row.status.value for row in (first, second, third)] == ["refused", "warm_up", "ok"]
    assert third.fragment_bytes == 8


@given(st.integers(0, 10_000), st.floats(1e-3, 1e3), st.sampled_from([0.01, 0.05, 0.2]))
@settings(max_examples=15)
def test_the_unit_of_time_changes_nothing(seed: int, scale: float, noise: float) -> None:
    """The same sizes are asked for, and the verdict is the same."""
    plan = RacePlan(MESSAGE, MIB, seed=seed)
    plain = run(SizeRace(plan), noisy(on_curve, noise, seed))
    scaled = run(SizeRace(plan), noisy(lambda size: scale * on_curve(size), noise, seed))
    sizes = [row.fragment_bytes for row in plain.rows()]
    assert [row.fragment_bytes for row in scaled.rows()] == sizes
    first, second = plain.decision(), scaled.decision()
    assert (first.verdict, first.size_bytes) == (second.verdict, second.size_bytes)


@given(
    st.integers(1, 1 << 30),
    st.floats(0.0, 1.0),
    st.dictionaries(st.integers(0, 60), st.floats(1.0, 1e6), max_size=30),
    st.integers(0, 1000),
)
@settings(max_examples=40)
def test_only_sizes_that_were_run_are_set(
    message: int, share: float, levels: dict[int, float], seed: int
) -> None:
    """Of any times at all, failures among them; and no race takes more runs than it may."""
    current = max(1, min(message, round(message * share)))
    random = np.random.default_rng(seed)

    def time_us(size: int) -> float | None:
        level = levels.get(size.bit_length() + size % 7, 1e3)
        return None if random.random() < 0.1 or level > 9e5 else level * random.uniform(0.9, 1.1)

    race = run(SizeRace(RacePlan(message, current, seed=seed)), time_us)
    decision = race.decision()
    assert len(race.rows()) <= 40
    timed = {row.fragment_bytes for row in race.rows() if row.latency_us is not None}
    assert decision.verdict is not SizeVerdict.TRY
    if decision.verdict is SizeVerdict.SET:
        assert decision.size_bytes in timed - {current}
    else:
        assert decision.size_bytes == current
    assert not {size for size, _ in decision.refused} & {
        size.fragment_bytes for size in decision.sizes
    }


@given(st.integers(1, 39), st.integers(0, 200))
@settings(max_examples=25)
def test_a_race_goes_on_from_its_rows(stop: int, seed: int) -> None:
    """What was run stays, challenges keep their numbers, and the file decides as the race does."""
    times = noisy(lambda size: 1e6 + 0.2 * on_curve(size), 0.05, seed)
    first = run(SizeRace(RacePlan(MESSAGE, MIB, seed=seed)), times, stop)
    second = run(SizeRace(RacePlan(MESSAGE, MIB, seed=seed), first.rows()), times)
    assert second.rows()[: len(first.rows())] == first.rows()
    assert len(second.rows()) <= len(first.rows()) + 40
    numbers = [row.challenge for row in second.rows() if row.challenge is not None]
    assert sorted(numbers) == numbers
    read = SizeRace(RacePlan(MESSAGE, MIB), second.rows())
    assert read.decision() == second.decision()
    if numbers:
        assert decide_size(OwnTransfers(MESSAGE, second.rows()), MIB) == second.decision()


def test_a_size_that_fails_twice_is_refused_and_named() -> None:
    """boto3 and parts below 5 MiB: the race goes on without them."""
    race = run(
        SizeRace(RacePlan(MESSAGE, MESSAGE)),
        lambda size: on_curve(size) if size >= 5 * MIB else None,
    )
    decision = race.decision()
    assert decision.verdict is SizeVerdict.SET
    assert dict(decision.refused)[4 * MIB] == f"no parts of {4 * MIB}"
    failed = [row.fragment_bytes for row in race.rows() if row.latency_us is None]
    assert all(failed.count(size) == 2 for size in failed)


def test_a_current_size_that_fails_ends_the_race() -> None:
    """After two runs, with the reason."""
    race = run(SizeRace(RacePlan(MESSAGE, MIB)), lambda size: None)
    assert [row.fragment_bytes for row in race.rows()] == [MIB, MIB]
    decision = race.decision()
    assert decision.verdict is SizeVerdict.NOT_DECIDED
    assert decision.is_current_refused
    assert decision.sentence().endswith(f"fails at your 1 MiB: no parts of {MIB}.")


def test_a_program_that_keeps_failing_ends_the_race() -> None:
    """Sizes that also work fail in more than a fifth of the runs."""
    counts = dict[int, int]()

    def time_us(size: int) -> float | None:
        counts[size] = counts.get(size, 0) + 1
        return None if counts[size] == 1 else 1e6

    race = run(SizeRace(RacePlan(MESSAGE, MIB, max_runs=100)), time_us)
    assert len(race.rows()) < 15
    assert race.next() is None


def test_a_size_that_takes_too_long_is_not_run_again() -> None:
    """One run is enough."""
    race = SizeRace(RacePlan(MESSAGE, MESSAGE))
    for _ in range(40):
        size = race.next()
        if size is None:
            break
        if size < 4 * MIB:
            race.tell(size, None, is_too_long=True)
        else:
            race.tell(size, on_curve(size))
    ended = [row for row in race.rows() if row.status is TransferStatus.ENDED]
    assert [row.fragment_bytes for row in ended] == [2 * MIB]
    assert dict(race.decision().refused) == {2 * MIB: ""}


def test_what_a_run_will_take_is_the_longer_of_its_neighbours() -> None:
    """Or the longest that this size took."""
    race = SizeRace(RacePlan(MESSAGE, 8 * MIB))
    assert race.expected_us(8 * MIB) is None
    run(race, lambda size: on_curve(size), 3)
    assert race.expected_us(8 * MIB) == on_curve(8 * MIB)
    assert race.expected_us(16 * MIB) == on_curve(64 * MIB)
    assert race.expected_us(MIB) == on_curve(8 * MIB)


def test_suggested_sizes_are_in_the_map() -> None:
    """Also one that is not round."""
    plan = RacePlan(MESSAGE, 8 * MIB, suggested_bytes=(5_000_000,))
    race = run(SizeRace(plan), lambda size: on_curve(size), 4)
    assert race.rows()[3].fragment_bytes == 5_000_000


def test_a_message_of_one_byte_has_one_size() -> None:
    """It is kept."""
    decision = run(SizeRace(RacePlan(1)), lambda size: 5.0).decision()
    assert (decision.verdict, decision.size_bytes) == (SizeVerdict.KEEP, 1)


def test_only_the_size_that_is_next_may_be_told() -> None:
    """Another one would be filed under it."""
    race = SizeRace(RacePlan(MESSAGE, MIB))
    with pytest.raises(InvalidInput):
        race.tell(2 * MIB, 1.0)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"message_bytes": 0}, "message_bytes"),
        ({"current_bytes": 0}, "current_bytes"),
        ({"current_bytes": MESSAGE + 1}, "current_bytes"),
        ({"max_runs": MIN_RUNS - 1}, "max_runs"),
        ({"smallest_bytes": 0}, "smallest_bytes"),
        ({"suggested_bytes": (0,)}, "suggested_bytes"),
    ],
)
def test_a_plan_that_cannot_be_run_is_refused(values: dict[str, Any], field: str) -> None:
    """By the name of the field."""
    with pytest.raises(InvalidInput) as refusal:
        RacePlan(**{"message_bytes": MESSAGE} | values)
    assert refusal.value.field == field
