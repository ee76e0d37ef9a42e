"""Advice on buckets of gradients, and what rounds of it decide."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import exp
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.buckets import (
    MARGIN,
    SHARED,
    BucketAdvice,
    advise_buckets,
    buckets_of,
    exact_buckets,
    one_cap_buckets,
    queued_sizes,
    verified_buckets,
)
from domain.bucket_setting import MIB, BucketSetting
from domain.errors import InvalidInput
from domain.items import ItemSequence
from domain.pipeline import FitRange, Stage

SHORT = st.lists(
    st.tuples(st.integers(1, 40), st.integers(0, 60)), min_size=1, max_size=9
)  # bytes, and µs after the one before


def wire_of(overhead_us: float, ns_per_byte: float) -> Stage:
    """An all-reduce of this cost."""
    return Stage.of_line("all-reduce", overhead_us=overhead_us, ns_per_byte=ns_per_byte)


def sequence_of(gaps: list[tuple[int, int]]) -> ItemSequence:
    """Gradients, each ready so long after the one before."""
    ready, times = 0.0, list[float]()
    for _, gap in gaps:
        ready += gap
        times.append(ready)
    return ItemSequence.of([size for size, _ in gaps], times)


def end_us(sequence: ItemSequence, wire: Stage, cut: tuple[int, ...]) -> float:
    """When the last all-reduce ends, one after the other, each when its bucket is full."""
    at, ready = 0.0, sequence.ready_us or (0.0,) * len(sequence)
    for first, last in pairwise((0, *cut)):
        at = max(at, *ready[first:last]) + wire.time_us(sum(sequence.item_bytes[first:last]))
    return at


def all_cuts(count: int) -> list[tuple[int, ...]]:
    """Every cut of so many items."""
    return [
        (*inner, count)
        for number in range(count)
        for inner in combinations(range(1, count), number)
    ]


@given(SHORT, st.integers(0, 50), st.integers(0, 3000))
def test_the_list_is_the_best_of_all_cuts(
    gaps: list[tuple[int, int]], overhead_us: int, ns_per_byte: int
) -> None:
    sequence, wire = sequence_of(gaps), wire_of(float(overhead_us), float(ns_per_byte))
    found = exact_buckets(sequence, wire)
    best_us = min(end_us(sequence, wire, cut) for cut in all_cuts(len(sequence)))
    assert found.predicted_us == pytest.approx(best_us, rel=1e-9, abs=1e-9)
    assert found == buckets_of(sequence, wire, found.setting)
    assert end_us(sequence, wire, found.setting.cut(sequence)) == pytest.approx(
        found.predicted_us, rel=1e-9, abs=1e-9
    )


@given(SHORT, st.integers(0, 50), st.integers(0, 3000))
def test_the_cap_is_the_best_of_all_caps(
    gaps: list[tuple[int, int]], overhead_us: int, ns_per_byte: int
) -> None:
    sequence, wire = sequence_of(gaps), wire_of(float(overhead_us), float(ns_per_byte))
    found = one_cap_buckets(sequence, wire)
    caps = [BucketSetting.within(size, size) for size in range(1, sequence.total_bytes + 1)]
    best_us = min(end_us(sequence, wire, cap.cut(sequence)) for cap in caps)
    assert found.predicted_us == pytest.approx(best_us, rel=1e-9, abs=1e-9)
    assert found.predicted_us >= exact_buckets(sequence, wire).predicted_us - 1e-9


def layers(count: int = 60) -> ItemSequence:
    """Alternating tensors, one every 2 ms."""
    sizes = [60_000 if place % 2 else 4_000 for place in range(count)]
    return ItemSequence.of(sizes, [2000.0 * (place + 1) for place in range(count)])


def advice(
    beside: float = 1.0, *, slowed: float = 0.0, takes_list: bool = True, misfit: float = 0.0
) -> BucketAdvice:
    """Advice on layers, with all-reduces that take so many times as long beside them, which are
    slowed by this share.
    """
    alone = wire_of(6900.0, 40.0)
    both = wire_of(6900.0 * beside, 40.0 * beside)
    return advise_buckets(
        layers(), alone, both, slowed=slowed, takes_list=takes_list, misfit=misfit
    )


def test_the_default_the_cap_and_the_list_are_tried() -> None:
    found = advice()
    assert [one.setting.name for one in found.tried] == [
        "default",
        "bucket_cap_mb",
        "bucket_cap_mb_list",
    ]
    default, cap, several = (one.predicted_us for one in found.tried)
    assert several <= cap < default
    assert not found.is_shared_engine
    assert str(found).count("predicted") == 3


def test_without_the_list_it_is_not_tried() -> None:
    found = advice(takes_list=False)
    assert [one.setting.name for one in found.tried] == ["default", "bucket_cap_mb"]


def test_equal_buckets_are_tried_once() -> None:
    few = ItemSequence.of([4000, 8000], [10.0, 10.0])
    found = advise_buckets(few, wire_of(500.0, 1.0), wire_of(500.0, 1.0))
    assert [str(one.setting) for one in found.tried] == ["the default"]
    kept = verified_buckets(found, {BucketSetting(): [100.0] * 6})
    assert kept.kept == BucketSetting()
    assert kept.sentence.startswith("Keep the default")


@pytest.mark.parametrize("beside", [1.0 + SHARED / 2, 1.0 - SHARED / 2])
def test_a_little_slower_beside_the_calculation_is_as_if_alone(beside: float) -> None:
    found = advice(beside)
    assert found.shared == pytest.approx(beside - 1.0)
    assert found.wire == wire_of(6900.0, 40.0)
    assert "shared_engine" not in str(found)


@pytest.mark.parametrize("beside", [1.0 + 2 * SHARED, 1.0 - 2 * SHARED])
def test_a_shared_engine_is_said_and_nothing_promised(beside: float) -> None:
    found = advice(beside)
    assert found.is_shared_engine
    assert found.wire == wire_of(6900.0 * beside, 40.0 * beside)
    said = str(found)
    assert f"all-reduces take 20% {'more' if beside > 1.0 else 'less'} than alone" in said
    assert "predicted" not in said
    times = {one.setting: [1e6] * 6 for one in found.tried}
    assert "predicted" not in str(verified_buckets(found, times))


def test_a_calculation_that_messages_slow_is_said() -> None:
    found = advice(slowed=2 * SHARED)
    assert found.is_shared_engine
    assert found.wire == wire_of(6900.0, 40.0)
    assert "all-reduces take 0% more than alone and the calculation 20% more" in str(found)
    assert not advice(slowed=SHARED / 2).is_shared_engine


def test_a_wrong_prediction_is_said() -> None:
    found = advice()
    right = {one.setting: [one.predicted_us * 1.05] * 6 for one in found.tried}
    assert "not_as_predicted" not in str(verified_buckets(found, right))
    wrong = {one.setting: [one.predicted_us * 1.3] * 6 for one in found.tried}
    result = verified_buckets(found, wrong)
    assert "not_as_predicted: a setting's steps took 30% more than predicted" in str(result)
    assert result.kept == verified_buckets(found, right).kept  # what was measured counts
    shared = advice(slowed=0.5)
    assert "not_as_predicted" not in str(verified_buckets(shared, wrong))


def test_a_poor_line_is_said() -> None:
    assert "misses a time by 46%" in str(advice(misfit=0.46))
    assert "line_misfit" not in str(advice(misfit=0.05))


def test_a_wire_of_several_lines_is_refused() -> None:
    wire = Stage("all-reduce", (FitRange(1.0, 1.0, 4096), FitRange(2.0, 1.0)))
    with pytest.raises(InvalidInput, match="one line"):
        exact_buckets(layers(), wire)


@given(st.integers(1, 2**40))
def test_sizes_to_time(total_bytes: int) -> None:
    sizes = queued_sizes(total_bytes)
    assert len({size for size, _ in sizes}) == 6
    assert list(sizes) == sorted(sizes)
    for size, count in sizes:
        assert size % 16 == 0
        assert size >= 4096
        assert 3 <= count <= 16
    if total_bytes > 2 * MIB:
        assert sizes[-1][0] == pytest.approx(total_bytes / 2, rel=1e-3)
        assert sizes[0][0] == pytest.approx(total_bytes / 486, rel=1e-2)


# --- what rounds decide ---------------------------------------------------------------------------


def rounds(
    found: BucketAdvice, shares: tuple[float, ...], count: int, noise: float = 0.0, seed: int = 1
) -> dict[BucketSetting, list[float]]:
    """Times of each setting: these shares of the default's, with noise, and a drift of all."""
    random = Random(seed)
    return {
        one.setting: [
            1e5 * (1.0 + 0.3 * number / count) * share * exp(random.gauss(0.0, noise))
            for number in range(count)
        ]
        for one, share in zip(found.tried, shares, strict=True)
    }


def test_the_fastest_is_kept() -> None:
    found = advice()
    result = verified_buckets(found, rounds(found, (1.0, 0.9, 0.8), 6))
    assert result.kept == found.tried[2].setting
    assert result.sentence.startswith("Set bucket_cap_mb_list=[")
    assert "20.0% less time than the default's, measured" in result.sentence
    assert str(result).count("measured") == 4


def test_the_simpler_one_is_kept_within_the_margin() -> None:
    found = advice()
    result = verified_buckets(found, rounds(found, (1.0, 0.8, 0.8 * exp(-MARGIN / 2)), 6))
    assert result.kept == found.tried[1].setting
    result = verified_buckets(found, rounds(found, (1.0, 0.8, 0.8 * exp(-2 * MARGIN)), 6))
    assert result.kept == found.tried[2].setting


@pytest.mark.parametrize("shares", [(1.0, 1.1, 1.2), (1.0, 1.0, 1.0), (1.0, 0.995, 0.992)])
def test_the_default_stays_unless_it_is_beaten(shares: tuple[float, ...]) -> None:
    found = advice()
    result = verified_buckets(found, rounds(found, shares, 8))
    assert result.kept == BucketSetting()
    assert result.kept.keywords == {}


def test_five_rounds_decide_nothing() -> None:
    found = advice()
    assert verified_buckets(found, rounds(found, (1.0, 0.9, 0.8), 5)).kept == BucketSetting()


def test_noise_seldom_beats_the_default() -> None:
    found = advice()
    wrong = sum(
        verified_buckets(found, rounds(found, (1.0, 1.0, 1.0), 8, 0.05, seed)).kept
        != BucketSetting()
        for seed in range(300)
    )
    assert wrong <= 15  # one in twenty; the margin makes it fewer


def test_a_gain_is_found_in_noise() -> None:
    found = advice()
    right = sum(
        verified_buckets(found, rounds(found, (1.0, 0.85, 0.8), 8, 0.05, seed)).kept
        != BucketSetting()
        for seed in range(100)
    )
    assert right >= 95


@pytest.mark.parametrize("change", ["missing", "short", "none", "zero"])
def test_what_is_no_rounds_is_refused(change: str) -> None:
    found = advice()
    times = rounds(found, (1.0, 0.9, 0.8), 6)
    last = found.tried[2].setting
    if change == "missing":
        del times[last]
    elif change == "short":
        times[last].pop()
    elif change == "none":
        times = {setting: [] for setting in times}
    else:
        times[last][0] = 0.0
    with pytest.raises(InvalidInput) as refusal:
        verified_buckets(found, times)
    assert refusal.value.field == "times_us"
