"""What the advice does to users whose machines are known: who is harmed, and what is missed.

A campaign judges all of them, and every kind by itself; else it is a twentieth, always the same.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from bench.cases.advice import CLOCKS, FILES, GRID, MIN_SET, MOST_TIMES, SEED, USERS
from bench.users.cliffs import cliff_user, judged_grid
from bench.users.kinds import Kind, user_of
from bench.users.machines import Clock, Curve, Machine, Noise, Piece, repeated
from bench.users.switched import judged_files, switched_file
from bench.users.ticks import over_measured, ticking_user
from bench.users.verdicts import (
    GREAT_HARM,
    MAX_HARMED,
    MAX_MISSED,
    MIN_COVERED,
    Verdict,
    judged_users,
    tally,
)
from tests.support.counts import count, is_campaign


@cache
def verdicts() -> tuple[Verdict, ...]:
    """What came of the users; shared by the tests."""
    return tuple(judged_users(count(USERS), SEED))


@cache
def grid() -> dict[float, list[Verdict]]:
    """What came of the grid of cliffs, by slope."""
    return judged_grid(count(GRID), SEED)


# --- what is asked of the advice ------------------------------------------------------------------


def test_users_are_not_harmed() -> None:
    """More than 1 % slower than before: one in 200 at most, and nobody by more than 10 %."""
    found = tally(verdicts())
    assert found.sets > found.users // 3
    assert found.harmed_share <= MAX_HARMED
    assert found.worst_loss <= GREAT_HARM


def test_gains_are_not_missed() -> None:
    """Of those above 10 %, 3 % at most."""
    found = tally(verdicts())
    assert found.could_gain > found.users // 4
    assert found.missed_share <= MAX_MISSED


@pytest.mark.parametrize("kind", [*Kind] if is_campaign() else [None])
def test_intervals_hold_the_truth(kind: Kind | None) -> None:
    """Said 90 %, and in 80 % of every kind at least; of all together where they are few."""
    found = tally(one for one in verdicts() if kind is None or one.user.kind is kind)
    assert found.stated > 0
    assert found.covered_share >= MIN_COVERED


def test_a_cliff_above_the_last_sizes_harms_nobody() -> None:
    """However steep it is, and whether one, two or three sizes lie above it."""
    found = [one for slope, some in grid().items() if slope > 1.0 for one in some]
    assert [(one.user.seed, one.loss) for one in found if one.is_harmed] == []


def test_where_there_is_no_cliff_gains_are_set() -> None:
    assert tally(grid()[1.0]).missed_share <= 1.0 - MIN_SET


def test_files_with_a_switch_are_not_contradicted() -> None:
    """What is to be set is never slower than what is in use by the file's own times."""
    found = judged_files(count(FILES), SEED)
    assert {one.number: one.gain for one in found if one.is_slowed} == {}


@pytest.mark.parametrize("number", range(count(CLOCKS)))
def test_a_coarse_clock_says_no_times_that_nobody_saw(number: int) -> None:
    """The interval ends below ten times the sum of all that was measured."""
    found = over_measured(ticking_user(number, SEED))
    assert found is None or found <= MOST_TIMES


# --- what judges it -------------------------------------------------------------------------------


def machine(*noises: Noise, clock: Clock | None = None) -> Machine:
    """Two stages of 10 us + 1 ns/B and 20 us + 0.5 ns/B."""
    curves = (Curve((Piece(0.0, 10.0, 1.0),)), Curve((Piece(0.0, 20.0, 0.5),)))
    return Machine(curves, noises or (Noise(0.0, 0.0),) * 2, clock or Clock(), 1024, 65536)


def test_without_noise_a_message_takes_what_the_recurrence_says() -> None:
    """Three fragments of 10 kB: the second stage takes 25 us each, the first 20."""
    cut = repeated(30_000, 10_000)
    assert cut == (10_000,) * 3
    assert machine().chain_us(cut) == pytest.approx(20.0 + 3 * 25.0)
    assert machine().expected_us((1,), cut) == pytest.approx(95.0)


def test_fragments_that_vary_hold_each_other_up() -> None:
    """Two equal stages: the mean of maxima is above the maximum of means, for one piece equal."""
    curves = (Curve((Piece(0.0, 10.0, 1.0),)),) * 2
    noisy = Machine(curves, (Noise(0.3, 0.3),) * 2, Clock(), 1024, 65536)
    assert noisy.expected_us((1,), (1000,) * 50) > 1.03 * noisy.chain_us((1000,) * 50)
    whole = noisy.expected_us((1,), (50_000,))
    assert whole == pytest.approx(noisy.chain_us((50_000,)), rel=0.01)


@pytest.mark.parametrize(
    "noise",
    [
        Noise(0.2, 0.05),
        Noise(0.1, 0.1, slow_share=0.3, slow_factor=2.0, slow_run=5.0),
        Noise(0.02, 0.02, rare_share=0.02),
        Noise(0.02, 0.02, walk=0.05),
        Noise(0.02, 0.02, drift=0.4, drifts_at_once=True),
    ],
)
def test_times_have_the_mean_that_they_are_said_to_have(noise: Noise) -> None:
    """Over many repetitions of a file, read by either clock."""
    for rounds in (True, False):
        one = machine(noise, noise, clock=Clock(0.5, rounds))
        rows = one.measured(np.random.default_rng(3), (1024, 65536), 4000)
        for stage in range(2):
            found = np.mean([times[stage] for size, _, times in rows if size == 65536])
            assert found == pytest.approx(one.mean_us(65536)[stage], rel=0.04)


def test_a_seed_is_a_user() -> None:
    """The same whatever else was made."""
    for kind in Kind:
        assert user_of((5, 1), kind) == user_of((5, 1), kind)
    assert cliff_user(1.6, 2, 3, 5) == cliff_user(1.6, 2, 3, 5)
    assert switched_file(3, 5) == switched_file(3, 5)


def test_a_cliff_lies_above_the_last_sizes() -> None:
    """Of one stage: its times are in line up to there, and steeper above."""
    for above in (1, 2, 3):
        one = cliff_user(2.5, above, 4, 5)
        bends = [curve.pieces[1].above_bytes for curve in one.machine.curves if curve.pieces[1:]]
        assert len(bends) == 1
        assert one.sizes[-above - 1] <= bends[0] < one.sizes[-above]


def test_a_file_is_priced_by_its_medians() -> None:
    """In a straight line between its sizes; what is in use gains nothing over itself."""
    file = switched_file(3, 5)
    assert file.gain(repeated(file.message_bytes, file.current_bytes)) == 0.0
    sizes = sorted({size for size, _, _ in file.rows})
    between = (sizes[0] + sizes[1]) // 2
    low, middle, high = (file.own_us((size,)) for size in (sizes[0], between, sizes[1]))
    assert min(low, high) <= middle <= max(low, high)
