"""A reader written from docs/format.md alone, in 64 bits: it gives what the plan table gives."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.problem import FragmentLimits
from exports.table.slt import decode, encode
from tests.support.counts import count
from tests.support.plan_tables import GOLDEN, a_plan_table

TABLES = Path(__file__).parents[1] / "data" / "tables" / "v1"


def i64(value: int) -> int:
    """The value, which a signed integer of 64 bits has to hold."""
    assert -(2**63) <= value < 2**63
    return value


class Reader:
    """Lookups straight from the bytes, by the offsets of the document."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.unit = self.u64(72)
        self.cuts, self.num_cuts = self.u64(128), self.u64(96)
        self.repeats, self.num_repeats = self.u64(136), self.u64(104)
        self.positions, self.width = self.u64(144), self.u64(120)

    def u64(self, offset: int) -> int:
        return int(struct.unpack_from("<Q", self.data, offset)[0])

    def position(self, index: int) -> int:
        kind = "<I" if self.width == 4 else "<Q"
        offset = self.positions + self.width * index
        return int(struct.unpack_from(kind, self.data, offset)[0])

    def record(self, start: int, size: int, number: int, message: int) -> int:
        """Where the last record with message_bytes <= message is."""
        low, high = 0, number
        while high - low > 1:
            middle = (low + high) // 2
            if self.u64(start + size * middle) <= message:
                low = middle
            else:
                high = middle
        return start + size * low

    def schedule(self, message: int) -> list[int]:
        here = self.record(self.cuts, 40, self.num_cuts, message)
        begin, first = self.u64(here), self.u64(here + 8)
        fragments = struct.unpack_from("<I", self.data, here + 16)[0]
        share, second = 0, first
        if begin != message:
            end, second = self.u64(here + 40), self.u64(here + 48)
            share = i64((message - begin) << 32) // (end - begin)
        sizes, before = [], 0
        for at in range(fragments - 1):
            low, high = self.position(first + at), self.position(second + at)
            moved = i64(i64(i64(high - low) * share) + 2**31) >> 32
            after = i64(i64(low + moved) * self.unit)
            sizes.append(after - before)
            before = after
        return [*sizes, message - before]

    def repeated(self, message: int) -> int:
        here = self.record(self.repeats, 32, self.num_repeats, message)
        begin, size = self.u64(here), self.u64(here + 8)
        if begin == message or size == 0:
            return size
        end, after = self.u64(here + 32), self.u64(here + 40)
        if after == 0 or -(-begin // size) != -(-end // after):
            return size
        share = i64(i64((message - begin) << 32) + (end - begin) - 1) // (end - begin)
        grown = i64(i64((after - size) // self.unit * share) + 2**32 - 1) >> 32
        return i64(size + i64(self.unit * grown))


@pytest.mark.parametrize("name", GOLDEN)
def test_the_golden_files_read_alike(name: str) -> None:
    """At every entry and its neighbours, and at random sizes."""
    data = (TABLES / f"{name}.slt").read_bytes()
    _check(data, seed=1)


@settings(max_examples=count(500, share=30), deadline=None)
@given(st.integers(1, 60), st.sampled_from((1, 2, 48, 512)), st.integers(0, 2**32))
def test_any_table_reads_alike(fragments: int, unit: int, seed: int) -> None:
    """Random cuts, aligned or not."""
    minimum = unit * (fragments + 2)
    blocks = [
        (minimum, minimum + 10_000, fragments),
        (minimum + 10_001, minimum + 2**22, fragments + 1),
    ]
    table = a_plan_table(blocks, limits=FragmentLimits(alignment_bytes=unit), seed=seed)
    _check(encode(table, profile="any", revision=1), seed=seed)


def _check(data: bytes, *, seed: int) -> None:
    table, reader, rng = decode(data).table, Reader(data), random.Random(seed)
    messages = [rng.randint(table.min_message_bytes, table.max_message_bytes) for _ in range(20)]
    for entry in (*table.cuts, *table.repeats):
        messages += [entry.message_bytes + step for step in (-1, 0, 1)]
    for message in messages:
        if table.min_message_bytes <= message <= table.max_message_bytes:
            assert tuple(reader.schedule(message)) == table.cut_at(message)
            assert reader.repeated(message) == table.repeated_size_at(message)
