"""Settings of DistributedDataParallel, and the buckets that they make."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.bucket_setting import DDP_RULE, MIB, BucketSetting
from domain.errors import InvalidInput
from domain.items import Fill, FillRule, ItemSequence, layout

SIZES = st.lists(st.integers(1, 40 * MIB), min_size=1, max_size=40)

# Parameters of ResNet-18, as floats, in the order of forward. Published buckets of its gradients
# have 2 052 000, 28 852 224 and 15 853 824 bytes at 25 MiB.
_BLOCKS = (
    (64, 64),
    (64, 64),
    (64, 128),
    (128, 128),
    (128, 256),
    (256, 256),
    (256, 512),
    (512, 512),
)


def resnet_18() -> ItemSequence:
    """The gradients, in the order in which they are ready."""
    forward = [64 * 3 * 49, 64, 64]
    for inner, outer in _BLOCKS:
        forward += [inner * outer * 9, outer, outer, outer * outer * 9, outer, outer]
        forward += [inner * outer, outer, outer] if inner != outer else []
    forward += [512 * 1000, 1000]
    return ItemSequence.of([4 * count for count in reversed(forward)])


def ddp_buckets(sizes: list[int], caps: tuple[int, ...]) -> list[int]:
    """Bucket by bucket, as the reducer assigns one tensor after the other."""
    buckets, size, number = list[int](), 0, 0
    for one in sizes:
        size += one
        if size >= caps[number]:
            buckets.append(size)
            size, number = 0, min(number + 1, len(caps) - 1)
    return buckets + ([size] if size else [])


def test_published_buckets_of_resnet_18() -> None:
    sequence = resnet_18()
    assert sequence.total_bytes == 11_689_512 * 4
    found = sequence.fragment_bytes(BucketSetting().cut(sequence))
    assert found == (2_052_000, 28_852_224, 15_853_824)


@given(SIZES, st.lists(st.floats(1e-4, 60.0), max_size=6))
def test_buckets_are_those_of_the_reducer(sizes: list[int], caps: list[float]) -> None:
    sequence, setting = ItemSequence.of(sizes), BucketSetting(tuple(caps))
    found = sequence.fragment_bytes(setting.cut(sequence))
    assert list(found) == ddp_buckets(sizes, setting.caps_bytes)


@given(SIZES, st.floats(1e-4, 60.0))
def test_one_cap_is_the_layout_of_items(sizes: list[int], cap: float) -> None:
    sequence, setting = ItemSequence.of(sizes), BucketSetting((cap,))
    assert setting.cut(sequence) == layout(sequence, setting.caps_bytes[0], DDP_RULE)
    first = FillRule(Fill.UNTIL, MIB)
    assert BucketSetting().cut(sequence) == layout(sequence, 25 * MIB, first)


@given(SIZES, st.data())
def test_any_cut_can_be_set(sizes: list[int], data: st.DataObject) -> None:
    sequence = ItemSequence.of(sizes)
    inner = data.draw(st.sets(st.integers(1, len(sizes)))) - {len(sizes)}
    cut = (*sorted(inner), len(sizes))
    setting = BucketSetting.of_cut(sequence, cut)
    assert setting.cut(sequence) == cut
    assert len(setting.caps_mb) == len(cut)
    if len(cut) > 1:  # as a program that is given the text has it
        text = str(setting).removeprefix("bucket_cap_mb_list=[").removesuffix("]")
        assert tuple(map(float, text.split(", "))) == setting.caps_mb


@given(st.integers(1, 2**40), st.integers(0, 2**30))
def test_a_cap_is_within_its_range(low: int, more: int) -> None:
    (cap,) = BucketSetting.within(low, low + more).caps_mb
    assert low <= int(cap * MIB) <= low + more
    (cap,) = BucketSetting.within(low, None).caps_mb
    assert int(cap * MIB) >= low


def test_a_cap_has_few_decimals() -> None:
    assert BucketSetting.within(700_000, 900_000).caps_mb == (0.7,)
    assert BucketSetting.within(26_000_000, 27_000_000).caps_mb == (25.0,)
    assert str(BucketSetting.within(26_000_000, 27_000_000)) == "bucket_cap_mb=25"
    assert str(BucketSetting.within(817_889, 817_890)) == "bucket_cap_mb=0.78"


def test_what_is_set() -> None:
    assert BucketSetting().keywords == {}
    assert str(BucketSetting()) == "the default"
    assert BucketSetting((0.5,)).keywords == {"bucket_cap_mb": 0.5}
    several = BucketSetting((0.5, 2.0))
    assert several.keywords == {"bucket_cap_mb_list": [0.5, 2.0]}
    assert str(several) == "bucket_cap_mb_list=[0.5, 2]"
    assert [one.name for one in (BucketSetting(), several)] == ["default", "bucket_cap_mb_list"]


def test_the_last_cap_is_that_of_all_behind() -> None:
    sequence = ItemSequence.of([MIB] * 10)
    cut = BucketSetting((1.0, 3.0)).cut(sequence)
    assert [last - first for first, last in pairwise((0, *cut))] == [1, 3, 3, 3]


@pytest.mark.parametrize("cap", [0.0, -1.0, 5e-7, math.nan, math.inf])
def test_a_cap_of_no_byte_is_refused(cap: float) -> None:
    with pytest.raises(InvalidInput, match="at least 1 byte") as refusal:
        BucketSetting((1.0, cap))
    assert refusal.value.field == "caps_mb.1"


def test_an_empty_range_is_refused() -> None:
    with pytest.raises(InvalidInput, match="from_bytes <= to_bytes"):
        BucketSetting.within(3, 2)
