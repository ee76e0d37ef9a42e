"""The question: cut this message for this pipeline within these limits."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from contract.limits import MAX_MESSAGE_BYTES
from domain.aggregate import Aggregate
from domain.derived import Derived
from domain.errors import Infeasible, InvalidInput, InvalidLimits
from domain.machine import Machine
from domain.model import Cost, CostModel
from domain.pipeline import Pipeline

DEFAULT_FRAGMENT_CAP = 100_000


@dataclass(frozen=True, slots=True)
class FragmentLimits:
    """What every cut must respect; sizes in bytes, all inclusive. Raises InvalidLimits.

    Every fragment but the last in sending order is a multiple of `alignment_bytes`; the last
    carries the rest. The least size holds for every fragment, except that a message smaller than
    it is sent whole. The greatest size holds for all.
    """

    min_fragment_bytes: int = 1
    max_fragment_bytes: int | None = None
    alignment_bytes: int = 1
    max_fragments: int | None = None

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            optional = name in ("max_fragment_bytes", "max_fragments")
            if value is None and optional:
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise InvalidLimits(f"expected {name} to be a whole number", field=name)
            if not 1 <= value <= MAX_MESSAGE_BYTES:
                raise InvalidLimits(
                    f"expected 1 <= {name} <= {MAX_MESSAGE_BYTES}, got {value}", field=name
                )


@dataclass(frozen=True, slots=True)
class CountRange:
    """The admitted numbers of fragments, inclusive, and the cap that sets the greatest one."""

    minimum: int
    maximum: int
    capped_by: str


class MessageProblem(Derived, ABC):
    """A message and limits, whatever it crosses: the part that all problems share. No fields."""

    message_bytes: int
    limits: FragmentLimits
    fragment_cap: int
    allow_refragmentation: bool

    @property
    @abstractmethod
    def model(self) -> CostModel:
        """What the message crosses, as far as it is known."""

    def __post_init__(self) -> None:
        size = self.message_bytes
        if isinstance(size, bool) or not isinstance(size, int):
            raise InvalidInput("expected message_bytes to be a whole number", field="message_bytes")
        if not 1 <= size <= MAX_MESSAGE_BYTES:
            raise InvalidInput(
                f"expected 1 <= message_bytes <= {MAX_MESSAGE_BYTES}, got {size}",
                field="message_bytes",
            )
        if self.fragment_cap < 1:
            raise InvalidInput("expected fragment_cap >= 1", field="fragment_cap")

    @property
    def _most_bytes(self) -> int | None:
        """The greatest fragment of any message, None where nothing bounds it."""
        return self.limits.max_fragment_bytes

    @property
    def _said_most(self) -> str:
        """What says so, in words."""
        return f"max_fragment_bytes {self._most_bytes}"

    @cached_property
    def largest_fragment_bytes(self) -> int:
        """The greatest size that any fragment can have."""
        return min(self.message_bytes, self._most_bytes or self.message_bytes)

    @cached_property
    def smallest_fragment_bytes(self) -> int:
        """The least size that any fragment can have."""
        return min(self.message_bytes, self.limits.min_fragment_bytes)

    def aligned_sizes(self) -> tuple[int, int]:
        """Return the least and greatest multiple of the alignment that a fragment before the last
        may have.

        The least exceeds the greatest where no such fragment is possible.
        """
        return self._aligned_sizes

    @cached_property
    def _aligned_sizes(self) -> tuple[int, int]:
        unit = self.limits.alignment_bytes
        minimum = -(-self.limits.min_fragment_bytes // unit) * unit
        return minimum, self.largest_fragment_bytes // unit * unit

    def count_range(self) -> CountRange:
        """Return the admitted numbers of fragments; they are contiguous.

        Raises Infeasible naming the two limits that clash.
        """
        return self._count_range

    @cached_property
    def _count_range(self) -> CountRange:
        """Derivation: k-1 aligned fragments in [m', M'] and a last one in [m, M] that is congruent
        to B modulo the alignment. The last is at least r = m + ((B - m) mod a), and B - (k-1)M'
        is itself congruent to B, so k is admitted iff (k-1)M' >= B - M and (k-1)m' <= B - r.
        """
        size, limits = self.message_bytes, self.limits
        if size <= limits.min_fragment_bytes:
            return self._whole_message()
        minimum, maximum = self.aligned_sizes()
        largest = self.largest_fragment_bytes
        last = limits.min_fragment_bytes + (size - limits.min_fragment_bytes) % (
            limits.alignment_bytes
        )
        if maximum < minimum:
            return self._whole_message("alignment_bytes")
        low = 1 + -(-max(0, size - largest) // maximum)
        high = 1 + max(-1, (size - last) // minimum)
        if last > largest or high < low:
            raise self._no_cut()
        return self._capped(low, high)

    def _whole_message(self, capped_by: str = "min_fragment_bytes") -> CountRange:
        if self.message_bytes > self.largest_fragment_bytes:
            raise self._no_cut()
        return CountRange(1, 1, capped_by)

    def _capped(self, low: int, high: int) -> CountRange:
        caps = [
            (high, "min_fragment_bytes"),
            (self.limits.max_fragments or high, "max_fragments"),
            (self.fragment_cap, "SLUICE_MAX_FRAGMENTS"),
        ]
        maximum, name = min(caps, key=lambda cap: cap[0])
        if maximum < low:
            raise Infeasible(
                f"{self._said_most} needs at least {low} fragments, and {name} allows {maximum}",
                field="constraints",
            )
        return CountRange(low, maximum, name)

    def _no_cut(self) -> Infeasible:
        limits = self.limits
        return Infeasible(
            f"no cut of {self.message_bytes} bytes satisfies both min_fragment_bytes "
            f"{limits.min_fragment_bytes} and {self._said_most}"
            + (
                f" with alignment_bytes {limits.alignment_bytes}"
                if limits.alignment_bytes > 1
                else ""
            ),
            field="constraints",
        )

    def admits(self, fragment_bytes: tuple[int, ...]) -> bool:
        """Return whether this cut of the message satisfies every limit."""
        limits, count = self.limits, len(fragment_bytes)
        if sum(fragment_bytes) != self.message_bytes or count == 0:
            return False
        if count > min(limits.max_fragments or count, self.fragment_cap):
            return False
        if max(fragment_bytes) > self.largest_fragment_bytes:
            return False
        if min(fragment_bytes) < limits.min_fragment_bytes and count > 1:
            return False
        if min(fragment_bytes) < self.smallest_fragment_bytes:
            return False
        unit = limits.alignment_bytes
        return unit == 1 or all(size % unit == 0 for size in fragment_bytes[:-1])

    def digest(self) -> str:
        """Return SHA-256 of the question, in hexadecimal; equal exactly for identical questions."""
        limits, model = self.limits, self.model
        document = {
            **(model.derived(_key_of) if isinstance(model, Pipeline) else _key_of(model)),
            "message_bytes": self.message_bytes,
            "limits": [getattr(limits, name) for name in limits.__slots__],
            "fragment_cap": self.fragment_cap,
            "allow_refragmentation": self.allow_refragmentation,
        }
        return hashlib.sha256(_canonical(document).encode()).hexdigest()


@dataclass(frozen=True)
class Problem(MessageProblem):
    """A pipeline, a message and limits: all that an answer depends on.

    `fragment_cap` is the service's own cap on the number of fragments. With
    `allow_refragmentation` stages may cut differently (nested cuts), which is another class of
    schedules with another bound. Raises InvalidInput for the message size; `count_range` raises
    Infeasible where no cut satisfies the limits.
    """

    pipeline: Pipeline
    message_bytes: int
    limits: FragmentLimits = field(default_factory=FragmentLimits)
    fragment_cap: int = DEFAULT_FRAGMENT_CAP
    allow_refragmentation: bool = False

    @property
    def model(self) -> Pipeline:
        """What the message crosses."""
        return self.pipeline


@dataclass(frozen=True)
class AggregateProblem(MessageProblem):
    """The same of a pipeline known from outside alone: the total and the bottleneck.

    A latency is then the greatest that any pipeline with these costs can have, and a bound is below
    every cut of each of them.
    """

    aggregate: Aggregate
    message_bytes: int
    limits: FragmentLimits = field(default_factory=FragmentLimits)
    fragment_cap: int = DEFAULT_FRAGMENT_CAP
    allow_refragmentation: bool = False

    @property
    def model(self) -> Aggregate:
        """What the message crosses, as far as it is known."""
        return self.aggregate


@dataclass(frozen=True)
class MachineProblem(MessageProblem):
    """The same of a machine: stages with lanes, delays and processors, and windows.

    No fragment is greater than what the least window of bytes holds.
    """

    machine: Machine
    message_bytes: int
    limits: FragmentLimits = field(default_factory=FragmentLimits)
    fragment_cap: int = DEFAULT_FRAGMENT_CAP
    allow_refragmentation: bool = False

    @property
    def model(self) -> Machine:
        """What the message crosses."""
        return self.machine

    @property
    def _most_bytes(self) -> int | None:
        known = (self.limits.max_fragment_bytes, self.machine.max_fragment_bytes)
        return min((one for one in known if one is not None), default=None)

    @property
    def _said_most(self) -> str:
        if self._most_bytes == self.limits.max_fragment_bytes:
            return super()._said_most
        return f"a window of {self._most_bytes} bytes"


AnyProblem: TypeAlias = MessageProblem

PROBLEMS: Mapping[str, Callable[..., MessageProblem]] = {
    Pipeline.kind: Problem,
    Aggregate.kind: AggregateProblem,
    Machine.kind: MachineProblem,
}


def problem_of(
    model: CostModel,
    message_bytes: int,
    limits: FragmentLimits,
    *,
    fragment_cap: int = DEFAULT_FRAGMENT_CAP,
    allow_refragmentation: bool = False,
) -> AnyProblem:
    """Return the problem of a message that crosses what this model describes. Raises
    InvalidInput.
    """
    rest = (message_bytes, limits, fragment_cap, allow_refragmentation)
    return PROBLEMS[model.kind](model, *rest)


_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def _key_of(model: CostModel) -> dict[str, object]:
    costs = {name: _key(cost) for name, cost in model.costs().items()}
    return {**costs, "delay_us": model.delay_us, **model.words()}


def _key(cost: Cost) -> list[object]:
    if isinstance(cost, tuple):
        return [_key(stage) for stage in cost]
    key: list[object] = [
        cost.name,
        [[part.up_to_bytes, part.overhead_us, part.ns_per_byte] for part in cost.ranges],
    ]
    return key if cost.handoff_bytes is None else [*key, cost.handoff_bytes]
