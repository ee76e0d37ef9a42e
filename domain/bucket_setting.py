"""Settings of PyTorch's DistributedDataParallel (DDP) for gradient buckets, and what they cut.

Source    PyTorch 2.15.0: torch/nn/parallel/distributed.py (`_BucketCapacityConfig`),
          torch/csrc/distributed/c10d/reducer.cpp (`compute_bucket_assignment_by_size`).
Notation  gradients are items in the order in which they are ready; caps are MiB, as DDP takes them.
Exact     a cap in MiB counts as int(cap * 2^20) bytes; every cap written here is one that this
          turns into the bytes that are meant.
Traps     the first bucket ends at 1 MiB only where nothing is set: a cap is that of the first
          bucket too. The last cap of a list is that of all buckets behind. A bucket has one dtype
          and one device, so that gradients of several are sequences of their own.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite

from domain.errors import InvalidInput
from domain.items import Fill, FillRule, ItemCut, ItemSequence

MIB = 2**20
DEFAULT_CAP_BYTES = 25 * MIB
DEFAULT_FIRST_BYTES = MIB  # of the first bucket, where nothing is set
DDP_RULE = FillRule(Fill.UNTIL)  # of a cap that is set
_DECIMALS = 9  # a millionth of a MiB is a byte; three more, so that the product is exact


@dataclass(frozen=True, slots=True)
class BucketSetting:
    """What DDP is told: nothing, one cap for every bucket, or a cap for each, in MiB.

    Raises InvalidInput for a cap below a byte, or that is no number.
    """

    caps_mb: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for place, cap in enumerate(self.caps_mb):
            if not (isfinite(cap) and cap * MIB >= 1.0):
                raise InvalidInput("expected a cap of at least 1 byte", field=f"caps_mb.{place}")

    @classmethod
    def within(cls, from_bytes: int, to_bytes: int | None) -> BucketSetting:
        """Return the cap of the fewest decimals from the first to the last of these bytes; None:
        no last. Raises InvalidInput where there is none.
        """
        return cls((_shortest_mb(from_bytes, to_bytes),))

    @classmethod
    def of_cut(cls, sequence: ItemSequence, cut: ItemCut) -> BucketSetting:
        """Return the caps of the fewest decimals that make these buckets, one for each."""
        ends = sequence.ends_bytes
        return cls(
            tuple(
                _shortest_mb(ends[last - 1] - ends[first] + 1, ends[last] - ends[first])
                for first, last in pairwise((0, *cut))
            )
        )

    @property
    def name(self) -> str:
        """What it sets: `default`, `bucket_cap_mb` or `bucket_cap_mb_list`."""
        if len(self.caps_mb) > 1:
            return "bucket_cap_mb_list"
        return "bucket_cap_mb" if self.caps_mb else "default"

    @property
    def keywords(self) -> dict[str, float | list[float]]:
        """The arguments of DistributedDataParallel."""
        if not self.caps_mb:
            return {}
        return {self.name: list(self.caps_mb) if len(self.caps_mb) > 1 else self.caps_mb[0]}

    @property
    def caps_bytes(self) -> tuple[int, ...]:
        """The caps of the first buckets in bytes; the last is that of all behind."""
        if not self.caps_mb:
            return DEFAULT_FIRST_BYTES, DEFAULT_CAP_BYTES
        return tuple(int(cap * MIB) for cap in self.caps_mb)

    def cut(self, sequence: ItemSequence) -> ItemCut:
        """Return the buckets that DDP makes: each ends with the item that reaches its cap."""
        caps, ends, count = self.caps_bytes, sequence.ends_bytes, len(sequence)
        cut, last = list[int](), 0
        while last < count:
            cap = caps[min(len(cut), len(caps) - 1)]
            last = min(count, bisect_left(ends, ends[last] + cap, lo=last + 1))
            cut.append(last)
        return tuple(cut)

    def __str__(self) -> str:
        """What is written in a script, "the default" of nothing."""
        if not self.caps_mb:
            return "the default"
        caps = ", ".join(f"{cap:.{_DECIMALS}f}".rstrip("0").rstrip(".") for cap in self.caps_mb)
        return f"{self.name}=[{caps}]" if len(self.caps_mb) > 1 else f"{self.name}={caps}"


def _shortest_mb(from_bytes: int, to_bytes: int | None) -> float:
    """The cap of the fewest decimals that DDP takes for one of these numbers of bytes."""
    for decimals in range(_DECIMALS + 1):
        scale = 10**decimals
        first = -(-from_bytes * scale // MIB)
        for steps in (first, first + 1):  # one byte may be lost where the product is rounded
            cap: float = steps / scale
            if from_bytes <= int(cap * MIB) and (to_bytes is None or int(cap * MIB) <= to_bytes):
                return cap
    raise InvalidInput(f"expected from_bytes <= to_bytes, got {from_bytes} and {to_bytes}")
