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

from contract.limits import MAX_MESSAGE_BYTES, MIN_TABLE_GAP
from domain.errors import InvalidInput
from domain.pipeline import Pipeline
from domain.problem import FragmentLimits

FRACTION_BITS = 32
_ONE = 1 << FRACTION_BITS
_HALF = _ONE >> 1
MAX_STRETCH_BYTES = (1 << 31) - 1  # so that a reader's products fit 64 bits with sign
MAX_SHIFT_UNITS = (1 << 31) - 1  # of a position or a repeated size between entries: the same


@dataclass(frozen=True, slots=True)
class TableCut:
    """A whole cut at one message size, and the certificate from there on.

    `latency_us` is the evaluator's on this very cut (µs, delay included). `relative_gap` is proven
    for every message size from this one to just before the next entry: the latency of what a reader
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
    lower bound over every repeated size. `size_bytes`, and both figures with it, is 0 where the
    limits admit cuts and none of them repeats one size, from here to just before the next entry.
    """

    message_bytes: int
    size_bytes: int
    latency_us: float
    relative_gap: float

    @property
    def fragments(self) -> int:
        """The number of fragments, the remainder included; 0 where there is no size."""
        return -(-self.message_bytes // self.size_bytes) if self.size_bytes else 0


@dataclass(frozen=True, slots=True)
class PlanTable:
    """Schedules and repeated sizes for every message of min_message_bytes to max_message_bytes,
    inclusive.

    It belongs to a pipeline, limits, a range of sizes and `relative_gap`, the tolerance asked for.
    `cuts` and `repeats` ascend by message size; each begins at min_message_bytes and ends at
    max_message_bytes. Every cut and every repeated size that it yields, at the entries and between
    them, keeps the limits: entries that could not promise this are refused. Raises InvalidInput.
    """

    pipeline: Pipeline
    limits: FragmentLimits
    fragment_cap: int
    min_message_bytes: int
    max_message_bytes: int
    relative_gap: float
    cuts: tuple[TableCut, ...]
    repeats: tuple[TableRepeat, ...]

    def __post_init__(self) -> None:
        check_table_range(self.min_message_bytes, self.max_message_bytes)
        check_table_gap(self.relative_gap)
        if self.fragment_cap < 1:
            raise InvalidInput("expected fragment_cap >= 1", field="fragment_cap")
        for name, entries in (("cuts", self.cuts), ("repeats", self.repeats)):
            _check_sizes([entry.message_bytes for entry in entries], self, field=name)
            for entry in entries:
                _check_certificate(entry, field=name)
        count = min(self.limits.max_fragments or self.fragment_cap, self.fragment_cap)
        for cut in self.cuts:
            _check_cut(cut, self.limits, max_fragments=count)
        for low, high in pairwise(self.cuts):
            _check_stretch(low, high, self.limits)
        for repeat in self.repeats:
            _check_repeat(repeat, self.limits, max_fragments=count)
        for one, other in pairwise(self.repeats):
            _check_repeats(one, other, self.limits)

    @property
    def cut_bytes(self) -> tuple[int, ...]:
        """The least and the greatest fragment, remainders left out, of messages that are cut; none
        where none is.
        """
        cuts = [one.fragment_bytes[:-1] for one in self.cuts if one.fragments > 1]
        sizes = [one.size_bytes for one in self.repeats if one.fragments > 1]
        sizes += [end for cut in cuts for end in (min(cut), max(cut))]
        return (min(sizes), max(sizes)) if sizes else ()

    def cut_at(self, message_bytes: int) -> tuple[int, ...]:
        """Return the fragment sizes for this message, whole bytes, in sending order. Raises
        InvalidInput.

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
        """Return the best repeated size for this message, bytes; 0 where none is admitted.

        Raises InvalidInput.

        Derivation: as for cuts, but both the share and the size are rounded up, because a size
        that falls short by one byte costs a further fragment.
        """
        at = self._index(self.repeats, message_bytes)
        here = self.repeats[at]
        if here.message_bytes == message_bytes:
            return here.size_bytes
        return repeated_size(here, self.repeats[at + 1], message_bytes, self.limits)

    def relative_gap_at(self, message_bytes: int) -> float:
        """Return what is proven of `cut_at` for this message. Raises InvalidInput."""
        return self.cuts[self._index(self.cuts, message_bytes)].relative_gap

    def repeat_gap_at(self, message_bytes: int) -> float:
        """Return what is proven of `repeated_size_at` for this message. Raises InvalidInput."""
        return self.repeats[self._index(self.repeats, message_bytes)].relative_gap

    def _index(self, entries: Sequence[TableCut] | Sequence[TableRepeat], size: int) -> int:
        if not self.min_message_bytes <= size <= self.max_message_bytes:
            raise InvalidInput(
                f"expected {self.min_message_bytes} <= message_bytes <= {self.max_message_bytes}",
                field="message_bytes",
            )
        return bisect_right(entries, size, key=_message_bytes) - 1


def repeated_size(
    here: TableRepeat, after: TableRepeat, message_bytes: int, limits: FragmentLimits
) -> int:
    """Return the repeated size of a message between two entries, bytes (`repeated_size_at`)."""
    if after.fragments != here.fragments:
        return here.size_bytes
    unit = limits.alignment_bytes
    length = after.message_bytes - here.message_bytes
    share = -((-(message_bytes - here.message_bytes) << FRACTION_BITS) // length)
    grown = -(-((after.size_bytes - here.size_bytes) // unit * share) // _ONE)
    return here.size_bytes + unit * grown


def check_table_range(min_message_bytes: int, max_message_bytes: int) -> None:
    """Raise InvalidInput unless 1 <= least <= greatest <= 2^48."""
    for name, value in (
        ("min_message_bytes", min_message_bytes),
        ("max_message_bytes", max_message_bytes),
    ):
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidInput(f"expected {name} to be a whole number", field=name)
        if not 1 <= value <= MAX_MESSAGE_BYTES:
            raise InvalidInput(f"expected 1 <= {name} <= {MAX_MESSAGE_BYTES}", field=name)
    if max_message_bytes < min_message_bytes:
        raise InvalidInput(
            "expected min_message_bytes <= max_message_bytes", field="max_message_bytes"
        )


def check_table_gap(relative_gap: float) -> None:
    """Raise InvalidInput unless 1e-6 <= relative_gap <= 1."""
    if not MIN_TABLE_GAP <= relative_gap <= 1.0:
        raise InvalidInput("expected 1e-6 <= relative_gap <= 1", field="relative_gap")


def _message_bytes(entry: TableCut | TableRepeat) -> int:
    return entry.message_bytes


def _check_certificate(entry: TableCut | TableRepeat, *, field: str) -> None:
    for value in (entry.latency_us, entry.relative_gap):
        if not isfinite(value) or value < 0.0:
            raise InvalidInput("latencies and gaps must be finite and not negative", field=field)


def _check_sizes(sizes: Sequence[int], table: PlanTable, *, field: str) -> None:
    if not sizes or sizes[0] != table.min_message_bytes or sizes[-1] != table.max_message_bytes:
        raise InvalidInput(f"{field} must span the range of message sizes", field=field)
    if any(not 0 < high - low <= MAX_STRETCH_BYTES for low, high in pairwise(sizes)):
        raise InvalidInput(f"{field} must ascend by less than 2 GiB", field=field)


def _check_cut(cut: TableCut, limits: FragmentLimits, *, max_fragments: int) -> None:
    sizes, unit = cut.fragment_bytes, limits.alignment_bytes
    if not sizes or min(sizes) < 1 or sum(sizes) != cut.message_bytes:
        raise InvalidInput("a cut must sum to its message", field="cuts")
    if unit > 1 and any(size % unit for size in sizes[:-1]):
        raise InvalidInput("a cut must keep the alignment", field="cuts")
    if len(sizes) > 1 and min(sizes) < limits.min_fragment_bytes:
        raise InvalidInput("a cut must keep min_fragment_bytes", field="cuts")
    if max(sizes) > (limits.max_fragment_bytes or cut.message_bytes):
        raise InvalidInput("a cut must keep max_fragment_bytes", field="cuts")
    if len(sizes) > max_fragments:
        raise InvalidInput("a cut must keep the cap on fragments", field="cuts")


def _check_stretch(low: TableCut, high: TableCut, limits: FragmentLimits) -> None:
    """Whether what is computed between these two keeps the limits and fits 64 bits."""
    if high.message_bytes - low.message_bytes == 1:
        return
    if low.fragments != high.fragments:
        raise InvalidInput("cuts of different counts must be neighbours", field="cuts")
    if high.message_bytes // limits.alignment_bytes > MAX_SHIFT_UNITS:
        _check_shifts(low, high, limits.alignment_bytes)
    if low.fragments > 1 and limits.alignment_bytes > 1:
        _check_last(low, high, limits)


def _check_shifts(low: TableCut, high: TableCut, unit: int) -> None:
    shift = 0
    for one, other in zip(low.fragment_bytes[:-1], high.fragment_bytes[:-1], strict=True):
        shift += (other - one) // unit
        if abs(shift) > MAX_SHIFT_UNITS:
            raise InvalidInput("positions must shift by less than 2^31 units", field="cuts")


def _check_last(low: TableCut, high: TableCut, limits: FragmentLimits) -> None:
    """The last fragment takes what the others leave, which is off by half a unit and a trace.

    Derivation: with t the exact share and f the one that readers use, t - f < 2^-32. The last
    position is at most unit / 2 + shift 2^-32 from where t would put it, and the last fragment as
    much from a size between those of the two entries. All others, and the last one too where the
    unit is a byte, are the floor or the ceiling of such a size, so they need no margin.
    """
    first, second = low.fragment_bytes[-1], high.fragment_bytes[-1]
    shift = abs((high.message_bytes - second) - (low.message_bytes - first))
    if not shift:
        return
    twice_margin = limits.alignment_bytes - (-shift >> 31)
    if 2 * (min(first, second) - limits.min_fragment_bytes) < twice_margin:
        raise InvalidInput("a last fragment may become too small between entries", field="cuts")
    maximum = limits.max_fragment_bytes
    if maximum is not None and 2 * (maximum - max(first, second)) < twice_margin:
        raise InvalidInput("a last fragment may become too large between entries", field="cuts")


def _check_repeat(repeat: TableRepeat, limits: FragmentLimits, *, max_fragments: int) -> None:
    size, message = repeat.size_bytes, repeat.message_bytes
    if size == 0 and repeat.latency_us == repeat.relative_gap == 0.0:
        return
    if size < 1:
        raise InvalidInput("a repeated size must be at least one byte, or 0 alone", field="repeats")
    if min(size, message) > (limits.max_fragment_bytes or message):
        raise InvalidInput("a repeated size must keep max_fragment_bytes", field="repeats")
    if repeat.fragments > max_fragments:
        raise InvalidInput("a repeated size must keep the cap on fragments", field="repeats")
    if repeat.fragments == 1:
        return
    if size % limits.alignment_bytes:
        raise InvalidInput("a repeated size must keep the alignment", field="repeats")
    if min(size, _remainder(repeat)) < limits.min_fragment_bytes:
        raise InvalidInput("a repeated size must keep min_fragment_bytes", field="repeats")


def _check_repeats(one: TableRepeat, other: TableRepeat, limits: FragmentLimits) -> None:
    if not one.size_bytes or other.message_bytes - one.message_bytes == 1:
        return  # nothing lies between them
    if one.fragments != other.fragments:
        if one.fragments != -(-(other.message_bytes - 1) // one.size_bytes):
            raise InvalidInput("a repeated size must keep its count of fragments", field="repeats")
        if min(one.size_bytes, other.message_bytes - 1) > (
            limits.max_fragment_bytes or other.message_bytes
        ):
            raise InvalidInput("a repeated size must keep max_fragment_bytes", field="repeats")
        return
    grown, rest = divmod(other.size_bytes - one.size_bytes, limits.alignment_bytes)
    if rest or not 0 <= grown <= MAX_SHIFT_UNITS:
        raise InvalidInput("repeated sizes must grow by whole units below 2^31", field="repeats")
    if grown and one.fragments > 1 and other.message_bytes - one.message_bytes > 1:
        _check_remainders(one, other, limits)


def _check_remainders(one: TableRepeat, other: TableRepeat, limits: FragmentLimits) -> None:
    """A size is rounded up by less than 1.5 units, and the remainder pays that for each other."""
    if limits.min_fragment_bytes == 1:  # any remainder is admitted, and so is none
        return
    twice_margin = 3 * limits.alignment_bytes * (one.fragments - 1)
    minimum = min(_remainder(one), _remainder(other))
    if 2 * (minimum - limits.min_fragment_bytes) < twice_margin:
        raise InvalidInput("a remainder may become too small between entries", field="repeats")


def _remainder(repeat: TableRepeat) -> int:
    return repeat.message_bytes - (repeat.fragments - 1) * repeat.size_bytes
