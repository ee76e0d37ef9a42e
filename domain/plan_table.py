"""The plan table: for every message size of a range a whole schedule and the best repeated size.

A table holds cuts at some message sizes. Between two neighbours with the same number of fragments
the cut is interpolated, in integers alone, so that every reader in every language computes the
same bytes; the certificate of each stretch is for those very bytes. docs/format.md has the
arithmetic and the proof.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite

from domain.errors import InvalidInput
from domain.pipeline import MAX_MESSAGE_BYTES, Pipeline
from domain.problem import FragmentLimits

DEFAULT_TABLE_GAP = 1e-3
FRACTION_BITS = 32
_ONE = 1 << FRACTION_BITS
_HALF = _ONE >> 1
MAX_STRETCH_BYTES = (1 << 31) - 1  # so that a reader's products fit 64 bits with sign


@dataclass(frozen=True, slots=True)
class TableCut:
    """A whole cut at one message size, and the certificate from there on.

    `latency_us` is the judge's on this very cut (µs, delay included). `relative_gap` is proven for
    every message size from this one to just before the next entry: the latency of what a reader
    computes there is at most (1 + relative_gap) times a lower bound over every admitted cut.
    """

    message_bytes: int
    fragment_bytes: tuple[int, ...]
    latency_us: float
    relative_gap: float

    @property
    def fragments(self) -> int:
        """The number of fragments."""
        return len(self.fragment_bytes)


@dataclass(frozen=True, slots=True)
class TableRepeat:
    """The repeated size at one message size; the sizes to the next entry are interpolated.

    `relative_gap` is proven for every message size up to just before the next entry, against a
    lower bound over every repeated size.
    """

    message_bytes: int
    size_bytes: int
    latency_us: float
    relative_gap: float

    @property
    def fragments(self) -> int:
        """The number of fragments, the remainder included."""
        return -(-self.message_bytes // self.size_bytes)


@dataclass(frozen=True, slots=True)
class PlanTable:
    """Schedules and repeated sizes for every message of least_bytes to greatest_bytes, inclusive.

    It belongs to a pipeline, limits, a range of sizes and `relative_gap`, the tolerance asked for.
    `cuts` and `repeats` ascend by message size; each begins at least_bytes and ends at
    greatest_bytes. Raises InvalidInput.
    """

    pipeline: Pipeline
    limits: FragmentLimits
    fragment_cap: int
    least_bytes: int
    greatest_bytes: int
    relative_gap: float
    cuts: tuple[TableCut, ...]
    repeats: tuple[TableRepeat, ...]

    def __post_init__(self) -> None:
        check_table_range(self.least_bytes, self.greatest_bytes)
        check_table_gap(self.relative_gap)
        for name, entries in (("cuts", self.cuts), ("repeats", self.repeats)):
            sizes = [entry.message_bytes for entry in entries]
            if not sizes or sizes[0] != self.least_bytes or sizes[-1] != self.greatest_bytes:
                raise InvalidInput(f"{name} must span the range of message sizes", field=name)
            if any(not 0 < high - low <= MAX_STRETCH_BYTES for low, high in pairwise(sizes)):
                raise InvalidInput(f"{name} must ascend by at most 2 GiB", field=name)
            for entry in entries:
                _check_certificate(entry, field=name)
        for cut in self.cuts:
            _check_cut(cut, self.limits.alignment_bytes)
        for low, high in pairwise(self.cuts):
            if low.fragments != high.fragments and high.message_bytes - low.message_bytes > 1:
                raise InvalidInput("cuts of different counts must be neighbours", field="cuts")
        for one, other in pairwise(self.repeats):
            _check_repeats(one, other, self.limits.alignment_bytes)

    def cut_at(self, message_bytes: int) -> tuple[int, ...]:
        """The fragment sizes for this message, whole bytes, in sending order. Raises InvalidInput.

        Derivation: f = floor(2^32 (B - B1) / (B2 - B1)); each position inside the message, in
        units of the alignment, is U1 + floor(((U2 - U1) f + 2^31) / 2^32).
        """
        at = self._index(self.cuts, message_bytes)
        here = self.cuts[at]
        if here.message_bytes == message_bytes:
            return here.fragment_bytes
        after, unit = self.cuts[at + 1], self.limits.alignment_bytes
        share = ((message_bytes - here.message_bytes) << FRACTION_BITS) // (
            after.message_bytes - here.message_bytes
        )
        sizes, start, first, second = [], 0, 0, 0
        for one, other in zip(here.fragment_bytes[:-1], after.fragment_bytes[:-1], strict=True):
            first, second = first + one // unit, second + other // unit
            end = unit * (first + (((second - first) * share + _HALF) >> FRACTION_BITS))
            sizes.append(end - start)
            start = end
        return (*sizes, message_bytes - start)

    def repeated_size_at(self, message_bytes: int) -> int:
        """The best repeated size for this message, bytes. Raises InvalidInput.

        Derivation: as for cuts, but both the share and the size are rounded up, because a size
        that falls short by one byte costs a further fragment.
        """
        at = self._index(self.repeats, message_bytes)
        here = self.repeats[at]
        if here.message_bytes == message_bytes:
            return here.size_bytes
        after, unit = self.repeats[at + 1], self.limits.alignment_bytes
        if after.fragments != here.fragments:
            return here.size_bytes
        length = after.message_bytes - here.message_bytes
        share = -((-(message_bytes - here.message_bytes) << FRACTION_BITS) // length)
        grown = -(-((after.size_bytes - here.size_bytes) // unit * share) // _ONE)
        return here.size_bytes + unit * grown

    def relative_gap_at(self, message_bytes: int) -> float:
        """What is proven of `cut_at` for this message. Raises InvalidInput."""
        return self.cuts[self._index(self.cuts, message_bytes)].relative_gap

    def repeat_gap_at(self, message_bytes: int) -> float:
        """What is proven of `repeated_size_at` for this message. Raises InvalidInput."""
        return self.repeats[self._index(self.repeats, message_bytes)].relative_gap

    def _index(self, entries: Sequence[TableCut] | Sequence[TableRepeat], size: int) -> int:
        if not self.least_bytes <= size <= self.greatest_bytes:
            raise InvalidInput(
                f"expected {self.least_bytes} <= message_bytes <= {self.greatest_bytes}",
                field="message_bytes",
            )
        return bisect_right(entries, size, key=_message_bytes) - 1


def check_table_range(least_bytes: int, greatest_bytes: int) -> None:
    """Raise InvalidInput unless 1 <= least <= greatest <= 2^48."""
    for name, value in (("least_bytes", least_bytes), ("greatest_bytes", greatest_bytes)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidInput(f"expected {name} to be a whole number", field=name)
        if not 1 <= value <= MAX_MESSAGE_BYTES:
            raise InvalidInput(f"expected 1 <= {name} <= {MAX_MESSAGE_BYTES}", field=name)
    if greatest_bytes < least_bytes:
        raise InvalidInput("expected least_bytes <= greatest_bytes", field="greatest_bytes")


def check_table_gap(relative_gap: float) -> None:
    """Raise InvalidInput unless 1e-6 <= relative_gap <= 1."""
    if not 1e-6 <= relative_gap <= 1.0:
        raise InvalidInput("expected 1e-6 <= relative_gap <= 1", field="relative_gap")


def _message_bytes(entry: TableCut | TableRepeat) -> int:
    return entry.message_bytes


def _check_certificate(entry: TableCut | TableRepeat, *, field: str) -> None:
    for value in (entry.latency_us, entry.relative_gap):
        if not isfinite(value) or value < 0.0:
            raise InvalidInput("latencies and gaps must be finite and not negative", field=field)


def _check_cut(cut: TableCut, unit: int) -> None:
    sizes = cut.fragment_bytes
    if not sizes or min(sizes) < 1 or sum(sizes) != cut.message_bytes:
        raise InvalidInput("a cut must sum to its message", field="cuts")
    if any(size % unit for size in sizes[:-1]):
        raise InvalidInput("a cut must keep the alignment", field="cuts")


def _check_repeats(one: TableRepeat, other: TableRepeat, unit: int) -> None:
    if min(one.size_bytes, other.size_bytes) < 1:
        raise InvalidInput("a repeated size must be at least one byte", field="repeats")
    if one.fragments == other.fragments:
        grown = other.size_bytes - one.size_bytes
        if grown < 0 or grown % unit:
            raise InvalidInput("repeated sizes must grow by whole units", field="repeats")
    elif other.message_bytes - one.message_bytes > 1 and one.fragments != -(
        -(other.message_bytes - 1) // one.size_bytes
    ):
        raise InvalidInput("a repeated size must keep its count of fragments", field="repeats")
