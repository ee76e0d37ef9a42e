"""The plan table: what it refuses, and what a reader computes between its entries."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.errors import InvalidInput
from domain.plan_table import MAX_STRETCH_BYTES, PlanTable, TableCut, TableRepeat
from domain.problem import FragmentLimits, Problem
from tests.support.counts import count
from tests.support.plan_tables import (
    a_line_pipeline,
    a_plan_table,
    positions_of,
    the_sparse_example,
)

UNITS = (1, 2, 8, 60, 4096)


@st.composite
def tables(draw: st.DrawFn) -> PlanTable:
    """Plan tables of up to four blocks, some aligned, some with huge messages."""
    unit = draw(st.sampled_from(UNITS))
    start, blocks = draw(st.sampled_from((1, 17, 2**20, 2**45))), []
    start = max(start, 3 * unit)
    for _ in range(draw(st.integers(1, 4))):
        fragments = draw(st.integers(1, min(9, start // unit - 1)))
        length = draw(st.sampled_from((0, 1, 2, 30, 5000, 2**20)))
        blocks.append((start, start + length, fragments))
        start += length + 1
    if start > 2**40:
        unit = max(unit, 2**20)
        blocks = [(low, high, min(fragments, 5)) for low, high, fragments in blocks]
    limits = FragmentLimits(alignment_bytes=unit)
    return a_plan_table(blocks, limits=limits, seed=draw(st.integers(0, 2**32)))


@settings(max_examples=count(2000), deadline=None)
@given(tables(), st.data())
def test_a_computed_cut_is_the_interpolated_one_rounded(
    table: PlanTable, data: st.DataObject
) -> None:
    """Positions by exact fractions; sizes are floor or ceiling in units; the sum is the message."""
    unit = table.limits.alignment_bytes
    for message in _messages(table, data):
        low, high = _around(table.cuts, message)
        sizes = table.cut_at(message)
        assert sum(sizes) == message
        assert Problem(table.pipeline, message, table.limits, table.fragment_cap).admits(sizes)
        if low is high:
            assert sizes == low.fragment_bytes
            continue
        share = _share_used(low, high, message)
        for end, first, second in zip(
            positions_of(sizes),
            positions_of(low.fragment_bytes),
            positions_of(high.fragment_bytes),
            strict=True,
        ):
            exact = (first + (second - first) * share) / unit
            assert end == unit * floor(exact + Fraction(1, 2))
        for size, first, second in zip(
            sizes[:-1], low.fragment_bytes, high.fragment_bytes, strict=False
        ):
            exact = (first + (second - first) * share) / unit
            assert size // unit in (floor(exact), ceil(exact))


@settings(max_examples=count(1000), deadline=None)
@given(tables(), st.data())
def test_the_last_of_bytes_is_a_floor_or_a_ceiling_too(
    table: PlanTable, data: st.DataObject
) -> None:
    """Where the unit is a byte, against the exact share of the message."""
    if table.limits.alignment_bytes > 1:
        return
    for message in _messages(table, data):
        low, high = _around(table.cuts, message)
        share = Fraction(message - low.message_bytes, high.message_bytes - low.message_bytes or 1)
        first, second = low.fragment_bytes[-1], high.fragment_bytes[-1]
        exact = first + (second - first) * share if low is not high else Fraction(first)
        assert table.cut_at(message)[-1] in (floor(exact), ceil(exact))


@settings(max_examples=count(2000), deadline=None)
@given(tables(), st.data())
def test_a_repeated_size_never_costs_a_further_fragment(
    table: PlanTable, data: st.DataObject
) -> None:
    """At most its entry's fragments, aligned, less than 1.5 units above the exact size."""
    unit = table.limits.alignment_bytes
    for message in _messages(table, data):
        low, high = _around(table.repeats, message)
        size = table.repeated_size_at(message)
        assert ceil(Fraction(message, size)) <= low.fragments
        assert size % unit == 0 or low.fragments == 1
        if low.fragments == high.fragments and low is not high:
            share = Fraction(message - low.message_bytes, high.message_bytes - low.message_bytes)
            exact = low.size_bytes + (high.size_bytes - low.size_bytes) * share
            assert exact <= size < exact + Fraction(3, 2) * unit
        else:
            assert size == low.size_bytes


def test_certificates_are_those_of_the_entry_before() -> None:
    """For both, at an entry and behind it."""
    table = a_plan_table()
    for cut in table.cuts[:-1]:
        assert table.relative_gap_at(cut.message_bytes) == cut.relative_gap
    assert table.relative_gap_at(199) == table.cuts[2].relative_gap
    assert table.repeat_gap_at(1000) == table.repeats[-1].relative_gap


@pytest.mark.parametrize("message", [0, -1, 1001, 2**60])
def test_a_message_outside_the_range_is_refused(message: int) -> None:
    """By each of the four lookups, which name it."""
    table = a_plan_table()
    for lookup in (
        table.cut_at,
        table.repeated_size_at,
        table.relative_gap_at,
        table.repeat_gap_at,
    ):
        with pytest.raises(InvalidInput) as refusal:
            lookup(message)
        assert refusal.value.field == "message_bytes"


@settings(max_examples=count(3000), deadline=None)
@given(st.integers(2, 70), st.integers(1, 300), st.integers(1, 300), st.integers(0, 2**32))
def test_what_a_pair_of_cuts_would_spoil_between_them_is_refused(
    unit: int, low: int, high: int, seed: int
) -> None:
    """With alignment, least and greatest sizes: each pair is refused or right at every byte."""
    rng = random.Random(seed)
    limits = FragmentLimits(rng.choice((1, 1, 5, 30)), rng.choice((None, None, 300)), unit)
    cuts = [(unit * rng.randint(1, 4), last) for last in (low, high)]
    sizes = sorted(cuts, key=sum)
    try:
        table = _of_cuts([(sum(cut), cut) for cut in sizes], limits)
    except InvalidInput:
        return
    for message in range(table.min_message_bytes, table.max_message_bytes + 1):
        assert Problem(table.pipeline, message, limits).admits(table.cut_at(message))


def test_a_last_fragment_without_margin_is_refused() -> None:
    """(16, 1) and (32, 1) in units of 8 would give (24, 0) for 24 bytes."""
    with pytest.raises(InvalidInput, match="too small"):
        _of_cuts([(17, (16, 1)), (33, (32, 1))], FragmentLimits(alignment_bytes=8))
    kept = _of_cuts([(17, (16, 1)), (33, (16, 17))], FragmentLimits(alignment_bytes=8))
    assert [kept.cut_at(message)[0] for message in (18, 24, 32)] == [16, 16, 16]


def test_a_last_fragment_may_become_too_large() -> None:
    """The greatest size needs the same margin."""
    limits = FragmentLimits(max_fragment_bytes=16, alignment_bytes=8)
    with pytest.raises(InvalidInput, match="too large"):
        _of_cuts([(24, (8, 16)), (32, (16, 16))], limits)


BAD_CUTS = {
    "does not begin": ([(2, (2,)), (9, (9,))], FragmentLimits(), (1, 9)),
    "does not end": ([(1, (1,)), (8, (8,))], FragmentLimits(), (1, 9)),
    "empty": ([], FragmentLimits(), (1, 9)),
    "falls": ([(1, (1,)), (9, (9,)), (5, (5,)), (9, (9,))], FragmentLimits(), (1, 9)),
    "stands": ([(1, (1,)), (1, (1,)), (9, (9,))], FragmentLimits(), (1, 9)),
    "too far": ([(1, (1,)), (2**31 + 1, (2**31 + 1,))], FragmentLimits(), None),
    "counts": ([(1, (1,)), (9, (4, 5))], FragmentLimits(), (1, 9)),
    "sum": ([(1, (1,)), (9, (8,))], FragmentLimits(), (1, 9)),
    "no fragment": ([(1, ()), (9, (9,))], FragmentLimits(), (1, 9)),
    "zero": ([(4, (4, 0)), (9, (4, 5))], FragmentLimits(), (4, 9)),
    "negative": ([(4, (5, -1)), (9, (4, 5))], FragmentLimits(), (4, 9)),
    "alignment": ([(9, (5, 4))], FragmentLimits(alignment_bytes=4), None),
    "minimum": ([(9, (6, 3))], FragmentLimits(min_fragment_bytes=4), None),
    "maximum": ([(9, (6, 3))], FragmentLimits(max_fragment_bytes=5), None),
    "cap": ([(9, (3, 3, 3))], FragmentLimits(max_fragments=2), None),
    "shift": (
        [(2**40, (2**39, 2**39)), (2**40 + 2, (2**38, 2**40 + 2 - 2**38))],
        FragmentLimits(),
        None,
    ),
}


@pytest.mark.parametrize("name", BAD_CUTS)
def test_bad_cuts_are_refused(name: str) -> None:
    """Each breaks one rule."""
    cuts, limits, span = BAD_CUTS[name]
    with pytest.raises(InvalidInput):
        _of_cuts(cuts, limits, span=span)


BAD_REPEATS = {
    "size zero": ([(4, 0), (9, 9)], FragmentLimits()),
    "size negative": ([(4, -1), (9, 9)], FragmentLimits()),
    "shrinks": ([(6, 5), (8, 4)], FragmentLimits()),
    "half a unit": ([(9, 9), (16, 18)], FragmentLimits(alignment_bytes=4)),
    "count lost": ([(4, 4), (9, 3)], FragmentLimits()),
    "alignment": ([(9, 5)], FragmentLimits(alignment_bytes=4)),
    "minimum": ([(9, 3)], FragmentLimits(min_fragment_bytes=4)),
    "remainder": ([(9, 6)], FragmentLimits(min_fragment_bytes=4)),
    "remainder between": ([(64, 16), (256, 64)], FragmentLimits(16, None, 16)),
    "maximum": ([(9, 6)], FragmentLimits(max_fragment_bytes=5)),
    "greatest behind": ([(4, 9), (9, 5)], FragmentLimits(max_fragment_bytes=5)),
    "cap": ([(9, 3)], FragmentLimits(max_fragments=2)),
    "growth": ([(2, 2), (4, 2**40)], FragmentLimits()),
}


@pytest.mark.parametrize("name", BAD_REPEATS)
def test_bad_repeated_sizes_are_refused(name: str) -> None:
    """Each breaks one rule."""
    sizes, limits = BAD_REPEATS[name]
    with pytest.raises(InvalidInput) as refusal:
        _of_repeats(sizes, limits)
    assert refusal.value.field == "repeats"


@settings(max_examples=count(2000), deadline=None)
@given(st.integers(1, 40), st.integers(1, 400), st.integers(1, 400), st.integers(0, 2**32))
def test_repeated_sizes_keep_the_limits_or_are_refused(
    unit: int, low: int, high: int, seed: int
) -> None:
    """Every message between two entries of equal counts: the cut that they give is admitted."""
    rng = random.Random(seed)
    limits = FragmentLimits(rng.choice((1, 1, 7, 20)), rng.choice((None, 200)), unit)
    minimum, maximum, fragments = min(low, high), max(low, high), rng.randint(1, 4)
    sizes = [
        (message, -(-message // (fragments * unit)) * unit)
        for message in sorted({minimum, maximum})
    ]
    try:
        table = _of_repeats(sizes, limits)
    except InvalidInput:
        return
    for message in range(minimum, maximum + 1):
        size = table.repeated_size_at(message)
        full, rest = divmod(message, size)
        cut = (size,) * full + ((rest,) if rest else ())
        assert Problem(table.pipeline, message, limits).admits(cut)


def test_where_no_size_can_be_repeated_there_is_none() -> None:
    """Units of 8, fragments of 6 to 16: 36 bytes are 16 + 8 + 12, and no s, s, ..., remainder."""
    table = the_sparse_example()
    assert table.cut_at(36) == (16, 8, 12)
    for size in (8, 16):
        full, rest = divmod(36, size)
        repeated = (*(size,) * full, rest)
        assert not Problem(table.pipeline, 36, table.limits).admits(repeated)
    sizes = [table.repeated_size_at(message) for message in range(35, 42)]
    assert sizes == [0, 0, 0, 16, 16, 8, 16]
    assert [one.fragments for one in table.repeats] == [0, 3, 5, 3]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1e-9])
@pytest.mark.parametrize("field", ["latency_us", "relative_gap"])
@pytest.mark.parametrize("entries", ["cuts", "repeats"])
def test_certificates_are_finite_and_not_negative(value: float, field: str, entries: str) -> None:
    """NaN included."""
    table = a_plan_table()
    first, *others = getattr(table, entries)
    with pytest.raises(InvalidInput, match="finite"):
        replace(table, **{entries: (replace(first, **{field: value}), *others)})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("min_message_bytes", 0),
        ("min_message_bytes", True),
        ("min_message_bytes", 1.0),
        ("max_message_bytes", 2**48 + 1),
        ("max_message_bytes", 0),
        ("relative_gap", 0.0),
        ("relative_gap", float("nan")),
        ("relative_gap", 1.5),
        ("fragment_cap", 0),
    ],
)
def test_the_question_itself_is_checked(field: str, value: object) -> None:
    """Each refusal names its field."""
    with pytest.raises(InvalidInput) as refusal:
        replace(a_plan_table(), **{field: value})
    assert refusal.value.field == field


def test_the_longest_stretch_is_one_byte_short_of_two_gibibytes() -> None:
    """Every product of a reader still fits 64 bits with a sign."""
    low, high = 2**31, 2**31 + MAX_STRETCH_BYTES
    table = _of_cuts(
        [(low, (1, low - 1)), (high, (MAX_STRETCH_BYTES + 1, low - 1))], FragmentLimits()
    )
    assert (MAX_STRETCH_BYTES << 32) + 2**31 < 2**63
    for message in (low, low + 1, low + 2**30, high - 1, high):
        assert table.cut_at(message)[1] in (low - 1, low)


def _of_cuts(
    cuts: list[tuple[int, tuple[int, ...]]],
    limits: FragmentLimits,
    *,
    span: tuple[int, int] | None = None,
) -> PlanTable:
    minimum, maximum = span or (cuts[0][0], cuts[-1][0])
    entries = tuple(TableCut(message, sizes, 1.0, 0.0) for message, sizes in cuts)
    whole = _whole_repeats(limits, minimum, maximum)
    return PlanTable(a_line_pipeline(), limits, 10**5, minimum, maximum, 1e-3, entries, whole)


def _whole_repeats(limits: FragmentLimits, minimum: int, maximum: int) -> tuple[TableRepeat, ...]:
    """Repeated sizes that every one of these limits admits, apart from a cap on fragments."""
    size = limits.max_fragment_bytes or maximum
    if size >= maximum or maximum - minimum > 2**20:
        ends = range(minimum, maximum, MAX_STRETCH_BYTES)
        return tuple(TableRepeat(end, maximum, 1.0, 0.0) for end in sorted({*ends, maximum}))
    unit, smallest = limits.alignment_bytes, max(limits.min_fragment_bytes, 1)
    entries = []
    for message in range(minimum, maximum + 1):
        for fragments in range(1, maximum + 1):
            share = -(-message // (fragments * unit)) * unit if fragments > 1 else message
            rest = message - (-(-message // share) - 1) * share
            if share <= size and (fragments == 1 or min(share, rest) >= smallest):
                entries.append(TableRepeat(message, share, 1.0, 0.0))
                break
        else:
            raise InvalidInput("no repeated size", field="repeats")
    return tuple(entries)


def _of_repeats(sizes: list[tuple[int, int]], limits: FragmentLimits) -> PlanTable:
    minimum, maximum = sizes[0][0], sizes[-1][0]
    cuts = tuple(
        TableCut(message, _some_cut(message, limits), 1.0, 0.0)
        for message in range(minimum, maximum + 1)
    )
    repeats = tuple(TableRepeat(message, size, 1.0, 0.0) for message, size in sizes)
    return PlanTable(a_line_pipeline(), limits, 10**5, minimum, maximum, 1e-3, cuts, repeats)


def _some_cut(message: int, limits: FragmentLimits) -> tuple[int, ...]:
    """The longest fragments first; refused by the plan table where that is no admitted cut."""
    unit, maximum = limits.alignment_bytes, limits.max_fragment_bytes or message
    if message <= maximum:
        return (message,)
    size = max(maximum // unit, 1) * unit
    full, rest = divmod(message, size)
    return (size,) * full + ((rest,) if rest else ())


def _messages(table: PlanTable, data: st.DataObject) -> Iterable[int]:
    drawn = data.draw(
        st.lists(
            st.integers(table.min_message_bytes, table.max_message_bytes), min_size=1, max_size=5
        )
    )
    edges = {entry.message_bytes + step for entry in table.cuts for step in (-1, 0, 1)}
    return [
        *drawn,
        *(e for e in sorted(edges) if table.min_message_bytes <= e <= table.max_message_bytes),
    ]


def _around(entries: tuple[TableCut, ...] | tuple[TableRepeat, ...], message: int):  # type: ignore[no-untyped-def]
    below = [entry for entry in entries if entry.message_bytes <= message][-1]
    if below.message_bytes == message:
        return below, below
    return below, next(entry for entry in entries if entry.message_bytes > message)


def _share_used(low: TableCut, high: TableCut, message: int) -> Fraction:
    length = high.message_bytes - low.message_bytes
    return Fraction(((message - low.message_bytes) * 2**32) // length, 2**32)
