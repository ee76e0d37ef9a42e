"""Which messages to measure next, or that enough is known."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from contract.limits import (
    DEFAULT_TOLERANCE,
    MAX_MESSAGE_BYTES,
    MAX_TOLERANCE,
    MIN_TOLERANCE,
)
from domain.errors import InvalidInput
from domain.pipeline import Line


class Quantity(StrEnum):
    """What to measure of messages of one size.

    interarrival  time between arrivals of back-to-back messages
    latency       one-way time of a message on its own
    """

    INTERARRIVAL = "interarrival"
    LATENCY = "latency"


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """The message sizes of interest and the relative difference that counts.

    Raises InvalidInput.
    """

    min_message_bytes: int
    max_message_bytes: int
    tolerance: float = DEFAULT_TOLERANCE

    def __post_init__(self) -> None:
        if not 1 <= self.min_message_bytes <= MAX_MESSAGE_BYTES:
            raise InvalidInput(
                f"expected 1 <= min_message_bytes <= {MAX_MESSAGE_BYTES}", field="min_message_bytes"
            )
        if not 8 * self.min_message_bytes <= self.max_message_bytes <= MAX_MESSAGE_BYTES:
            raise InvalidInput(
                f"expected 8 * min_message_bytes <= max_message_bytes <= {MAX_MESSAGE_BYTES}: "
                "overhead and per-byte cost cannot be distinguished over less",
                field="max_message_bytes",
            )
        if not MIN_TOLERANCE <= self.tolerance <= MAX_TOLERANCE:
            raise InvalidInput(
                f"expected {MIN_TOLERANCE} <= tolerance <= {MAX_TOLERANCE}", field="tolerance"
            )


@dataclass(frozen=True, slots=True)
class NextMeasurement:
    """One size to measure, how often, and why."""

    message_bytes: int
    quantity: Quantity
    repetitions: int
    why: str


@dataclass(frozen=True, slots=True)
class Transition:
    """Where one bottleneck takes over from another: between two sizes, and where their lines meet.

    `at_bytes` is None where the lines do not meet between the two sizes: a protocol switch.
    """

    between_bytes: tuple[int, int]
    at_bytes: int | None


@dataclass(frozen=True, slots=True)
class KnownBottleneck:
    """A line that the inter-arrival times lie on between two sizes."""

    from_bytes: int
    to_bytes: int
    line: Line


@dataclass(frozen=True, slots=True)
class MeasurementPlan:
    """What to measure next; `decided` says that nothing more is needed, `reason` why."""

    decided: bool
    reason: str
    measure: tuple[NextMeasurement, ...]
    transitions: tuple[Transition, ...]
    bottlenecks: tuple[KnownBottleneck, ...]
