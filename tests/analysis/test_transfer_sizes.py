"""What a file of transfers decides: sizes in turns, in heaps, once each, and a few of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.size_evidence import round_sizes
from analysis.transfer_sizes import decide_size
from domain.errors import InvalidInput
from domain.own_transfers import OwnTransfer, OwnTransfers, SizeDecision, SizeVerdict
from tests.support.counts import count

MIB = 1 << 20
MESSAGE = 64 * MIB
SIZES = tuple(MESSAGE >> octave for octave in range(8))


def true_us(size: int) -> float:
    """Best at 8 MiB."""
    return 1e5 + 2e4 * (size / MIB) + 2e4 * (MESSAGE / size)


def transfers(
    order: Sequence[int], *, noise: float = 0.03, drift: float = 0.0, seed: int = 1
) -> OwnTransfers:
    """A transfer of each size in this order; `drift` is what each run takes longer."""
    random = np.random.default_rng(seed)
    return OwnTransfers(
        MESSAGE,
        tuple(
            OwnTransfer(size, true_us(size) * exp(noise * random.standard_normal() + drift * at))
            for at, size in enumerate(order)
        ),
    )


def verdict_and_size(decision: SizeDecision) -> tuple[SizeVerdict, int | None]:
    """What counts."""
    return decision.verdict, decision.size_bytes


def test_a_full_sweep_in_turns_sets_the_best() -> None:
    """Three rounds of eight sizes: far apart."""
    decision = decide_size(transfers(SIZES * 3), MIB)
    assert verdict_and_size(decision) == (SizeVerdict.SET, 8 * MIB)
    assert decision.gain is not None
    assert decision.gain.low < 1 - true_us(8 * MIB) / true_us(MIB) < decision.gain.high
    assert decision.runs == 24
    assert not decision.condition


def test_the_best_is_kept() -> None:
    """Of the same rounds."""
    decision = decide_size(transfers(SIZES * 6), 8 * MIB)
    assert verdict_and_size(decision) == (SizeVerdict.KEEP, 8 * MIB)


@pytest.mark.parametrize("drift", [-0.01, 0.0, 0.01])
def test_alternating_neighbours_are_pairs(drift: float) -> None:
    """12 % at a noise of 5 %, whichever way the machine drifts: 20 pairs show it."""
    decision = decide_size(transfers([8 * MIB, 16 * MIB] * 20, noise=0.05, drift=drift), 16 * MIB)
    assert verdict_and_size(decision) == (SizeVerdict.SET, 8 * MIB)


@pytest.mark.parametrize("drift", [-0.03, 0.03])
def test_a_drift_in_turns_of_one_order_sets_nothing(drift: float) -> None:
    """The first of each pair comes 3 % sooner in it: sizes are equal, and it is seen."""
    rows = transfers([8 * MIB, 16 * MIB] * 20, noise=0.01, drift=drift).rows
    level = tuple(
        replace(row, latency_us=(row.latency_us or 0.0) / true_us(row.fragment_bytes))
        for row in rows
    )
    decision = decide_size(OwnTransfers(MESSAGE, level), 16 * MIB)
    assert decision.verdict is not SizeVerdict.SET


def test_blocks_and_begins_put_rows_in_order() -> None:
    """The same transfers, shuffled, say the same with their begins."""
    rows = [replace(row, began_s=float(at)) for at, row in enumerate(transfers(SIZES * 3).rows)]
    shuffled = [rows[at] for at in np.random.default_rng(2).permutation(len(rows))]
    first = decide_size(OwnTransfers(MESSAGE, tuple(rows)), MIB)
    assert decide_size(OwnTransfers(MESSAGE, tuple(shuffled)), MIB) == first


def test_heaps_are_set_only_by_a_large_gain_and_on_a_condition() -> None:
    """Each size six times in a row: 8 MiB saves 70 % over 1 MiB, and 6 % over 12 MiB."""
    order = [size for size in (MIB, 12 * MIB, 8 * MIB, 4 * MIB) for _ in range(6)]
    decision = decide_size(transfers(order), MIB)
    assert verdict_and_size(decision) == (SizeVerdict.SET, 8 * MIB)
    assert "if the machine did not change between (24 runs" in decision.sentence()
    assert decide_size(transfers(order), 12 * MIB).verdict is not SizeVerdict.SET


@pytest.mark.parametrize("drift", [-0.03, 0.03])
def test_a_drift_over_heaps_is_no_size(drift: float) -> None:
    """All sizes are equal, and the machine changes by 3 % a run."""
    order = [size for size in SIZES[:4] for _ in range(6)]
    rows = transfers(order, noise=0.01, drift=drift).rows
    level = tuple(
        replace(row, latency_us=(row.latency_us or 0.0) / true_us(row.fragment_bytes))
        for row in rows
    )
    for current in (SIZES[0], SIZES[3]):
        assert decide_size(OwnTransfers(MESSAGE, level), current).verdict is not SizeVerdict.SET


def test_one_row_beside_heaps_makes_them_no_turns() -> None:
    """The machine is a third faster from the 17th row on, and no size differs."""
    order = [size for size in SIZES[:4] for _ in range(8)] + [SIZES[0]]
    rows = tuple(
        OwnTransfer(size, (1000.0 if at < 16 else 670.0) * (1.0 + 0.01 * (at % 3)))
        for at, size in enumerate(order)
    )
    decision = decide_size(OwnTransfers(MESSAGE, rows), SIZES[1])
    assert decision.verdict is not SizeVerdict.SET


def test_times_far_apart_are_decided_and_none_is_below_what_clocks_tell() -> None:
    rows = tuple(OwnTransfer(size, us) for _ in range(8) for size, us in ((1, 1e-6), (2, 1e12)))
    assert decide_size(OwnTransfers(4, rows), 2).size_bytes == 1
    with pytest.raises(InvalidInput, match=r"expected a time of 1e-06 to 1e\+12 µs"):
        OwnTransfer(1, 5e-324)


def test_sizes_that_were_run_once_are_a_reason_to_try_one() -> None:
    """Nothing is set."""
    decision = decide_size(transfers(SIZES), MIB)
    assert decision.verdict is SizeVerdict.TRY
    assert decision.size_bytes is not None
    assert true_us(decision.size_bytes) < 1.02 * true_us(8 * MIB)
    assert "in turns (8 runs" in decision.sentence()
    assert decide_size(transfers(SIZES), 8 * MIB).verdict is SizeVerdict.NOT_DECIDED


def test_a_current_size_that_was_not_run_cannot_be_compared() -> None:
    """The best is worth a try beside it."""
    decision = decide_size(transfers(SIZES[:6] * 4), MIB)
    assert decision.verdict is SizeVerdict.TRY
    assert decision.gain is None


def test_without_a_current_size_the_largest_is_compared_with() -> None:
    """Here the message in one piece."""
    decision = decide_size(transfers(SIZES * 3))
    assert decision.current_bytes == MESSAGE
    assert not decision.is_current_known
    assert "faster than 64 MiB (" in decision.sentence()


def test_one_size_decides_nothing() -> None:
    """However often it was run."""
    decision = decide_size(transfers([MIB] * 20), MIB)
    assert decision.verdict is SizeVerdict.NOT_DECIDED
    assert decision.gain is None


def test_transfers_without_a_time_are_refused() -> None:
    """And a current size that no message has."""
    with pytest.raises(InvalidInput) as refusal:
        decide_size(OwnTransfers(MESSAGE, ()), MIB)
    assert refusal.value.field == "latency_us"
    with pytest.raises(InvalidInput) as refusal:
        decide_size(transfers(SIZES), MESSAGE + 1)
    assert refusal.value.field == "current_bytes"


@given(
    st.lists(st.sampled_from(SIZES), min_size=2, max_size=40),
    st.sampled_from(SIZES),
    st.integers(0, 1000),
    st.floats(1e-3, 1e3),
)
def test_any_order_is_decided_whatever_the_unit(
    order: list[int], current: int, seed: int, scale: float
) -> None:
    """Only sizes that were run are set, and the verdict does not depend on the unit of time."""
    found = transfers(order, noise=0.1, seed=seed)
    decision = decide_size(found, current)
    if decision.verdict is SizeVerdict.SET:
        assert decision.size_bytes in set(order) - {current}
        assert current in order
    scaled = tuple(replace(row, latency_us=(row.latency_us or 0.0) * scale) for row in found.rows)
    assert verdict_and_size(
        decide_size(OwnTransfers(MESSAGE, scaled), current)
    ) == verdict_and_size(decision)


@given(st.integers(0, 10_000))
@settings(max_examples=count(1000, share=20))
def test_equal_sizes_in_turns_are_rarely_set(seed: int) -> None:
    """Two rounds of eight sizes can show nothing; the pairs are too few."""
    random = np.random.default_rng(seed)
    rows = tuple(
        OwnTransfer(size, exp(0.05 * random.standard_normal()))
        for _ in range(2)
        for size in random.permutation(SIZES).tolist()
    )
    assert decide_size(OwnTransfers(MESSAGE, rows), SIZES[3]).verdict is not SizeVerdict.SET


def test_equal_sizes_are_set_in_five_percent_at_most() -> None:
    """Ten rounds in random order, of noise with long tails."""
    runs, found = count(600, share=6), 0
    for seed in range(runs):
        random = np.random.default_rng((11, seed))
        rows = tuple(
            OwnTransfer(size, exp(0.05 * random.standard_t(3)))
            for _ in range(10)
            for size in random.permutation(SIZES[:5]).tolist()
        )
        decision = decide_size(OwnTransfers(MESSAGE, rows), SIZES[2])
        found += decision.verdict is SizeVerdict.SET
    assert found <= 0.05 * runs


@pytest.mark.parametrize("drift", [0.0, 0.02])
def test_two_equal_sizes_that_alternate_are_set_in_five_percent_at_most(drift: float) -> None:
    """20 pairs of one order, with and without a drift of 2 % a run."""
    runs, found = count(1000, share=10), 0
    for seed in range(runs):
        random = np.random.default_rng((13, seed))
        rows = tuple(
            OwnTransfer(size, exp(0.03 * random.standard_normal() + drift * at))
            for at, size in enumerate(SIZES[3:5] * 20)
        )
        decision = decide_size(OwnTransfers(MESSAGE, rows), SIZES[3])
        found += decision.verdict is SizeVerdict.SET
    assert found <= 0.05 * runs


def test_three_sizes_of_a_pure_curve_are_enough() -> None:
    """A run each at 3 % noise, a factor of 8 apart around the best: regret 0.5 % in 95 %."""
    regrets = []
    random = np.random.default_rng(17)
    for _ in range(count(2000, share=10)):
        best = 2.0 ** random.uniform(17.0, 22.0)
        start = 10.0 ** random.uniform(-1.0, 1.5)

        def curve(size: float, best: float = best, start: float = start) -> float:
            return 1000.0 * (start + size / best + best / size)

        middle = 2 ** (round(np.log2(best)) + int(random.integers(-1, 2)))
        rows = tuple(
            OwnTransfer(size, curve(size) * exp(0.03 * random.standard_normal()))
            for size in (middle // 8, middle, middle * 8)
        )
        decision = decide_size(OwnTransfers(MESSAGE, rows), middle * 8)
        assert decision.verdict in (SizeVerdict.TRY, SizeVerdict.NOT_DECIDED)
        if decision.verdict is SizeVerdict.TRY:
            assert decision.size_bytes is not None
            regrets.append(curve(decision.size_bytes) / curve(best) - 1.0)
    assert np.quantile(regrets, 0.95) <= 0.005


def test_round_sizes() -> None:
    """Powers of two, three times these, the message and what else is given."""
    assert round_sizes(64, 8, 10) == (8, 10, 12, 16, 24, 32, 48, 64)
    assert round_sizes(1, 1) == (1,)
