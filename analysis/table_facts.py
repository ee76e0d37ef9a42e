"""What a compiled table certifies, where it misses its tolerance, and how many fragments it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from domain.plan_table import PlanTable, TableCut, TableRepeat

MAX_LISTED = 50


@dataclass(frozen=True, slots=True)
class GapRange:
    """Message sizes, inclusive, and the largest relative gap that is certified among them."""

    from_bytes: int
    to_bytes: int
    relative_gap: float


@dataclass(frozen=True, slots=True)
class CountRun:
    """Message sizes, inclusive, whose cut has this number of fragments."""

    from_bytes: int
    to_bytes: int
    fragments: int


@dataclass(frozen=True, slots=True)
class TableFacts:
    """The facts about a plan table; of long lists the first MAX_LISTED, and how many there are.

    `missed_bytes` and `unrepeatable_bytes` count message sizes. `cut_bytes` are the least and the
    greatest fragment of messages that are cut, remainders left out. `loosened_gap` is the tolerance
    that the cuts were compiled to where the one asked for takes too many of them, else None.
    `is_cut_off`: time ended the compilation, and gaps are those reached by then.
    """

    cut_entries: int
    repeat_entries: int
    worst: GapRange
    worst_repeat: GapRange
    missed: tuple[GapRange, ...]
    missed_total: int
    missed_bytes: int
    unrepeatable_bytes: int
    counts: tuple[CountRun, ...]
    counts_total: int
    cut_bytes: tuple[int, ...] = ()
    loosened_gap: float | None = None
    is_cut_off: bool = False


def facts_of(table: PlanTable, *, are_cuts_repeated: bool = False) -> TableFacts:
    """Return the facts; where cuts repeat the repeated sizes, the tolerance is that of these."""
    cuts, repeats = _certified(table.cuts), _certified(table.repeats)
    missed = _missed(repeats if are_cuts_repeated else cuts, table.relative_gap)
    counts = tuple(_runs(table.cuts))
    return TableFacts(
        cut_entries=len(table.cuts),
        repeat_entries=len(table.repeats),
        worst=max(cuts, key=_gap),
        worst_repeat=max(repeats, key=_gap),
        missed=missed[:MAX_LISTED],
        missed_total=len(missed),
        missed_bytes=sum(map(_length, missed)),
        unrepeatable_bytes=sum(
            _length(one)
            for one, repeat in zip(repeats, table.repeats, strict=True)
            if not repeat.size_bytes
        ),
        counts=counts[:MAX_LISTED],
        counts_total=len(counts),
        cut_bytes=table.cut_bytes,
    )


def _certified(entries: Sequence[TableCut | TableRepeat]) -> tuple[GapRange, ...]:
    """Return the sizes that each entry's certificate speaks of."""
    ends = [entry.message_bytes - 1 for entry in entries[1:]] + [entries[-1].message_bytes]
    return tuple(
        GapRange(entry.message_bytes, end, entry.relative_gap)
        for entry, end in zip(entries, ends, strict=True)
    )


def _missed(certified: Sequence[GapRange], tolerance: float) -> tuple[GapRange, ...]:
    """Return the ranges above the tolerance, neighbours merged."""
    return tuple(
        GapRange(run[0].from_bytes, run[-1].to_bytes, max(run, key=_gap).relative_gap)
        for is_missed, group in groupby(certified, key=lambda one: _gap(one) > tolerance)
        if is_missed and (run := list(group))
    )


def _runs(cuts: Sequence[TableCut]) -> Iterator[CountRun]:
    """Yield where the number of fragments stays the same."""
    starts = [cuts[0], *(high for low, high in pairwise(cuts) if low.fragments != high.fragments)]
    ends = [start.message_bytes - 1 for start in starts[1:]] + [cuts[-1].message_bytes]
    for start, end in zip(starts, ends, strict=True):
        yield CountRun(start.message_bytes, end, start.fragments)


def _length(one: GapRange) -> int:
    return one.to_bytes - one.from_bytes + 1


def _gap(one: GapRange) -> float:
    return one.relative_gap
