"""A workload of message sizes: what a mean over messages is a mean of."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import exp, isfinite, log

from contract.limits import MAX_MESSAGE_BYTES
from domain.errors import InvalidInput

MAX_WORKLOAD_SIZES = 10_000
# The range of a workload where none is stated. Below it there are ten more octaves, of messages
# that are sent whole by almost any setting: they would be half of the mean, and tell nothing of a
# setting.
DEFAULT_MIN_MESSAGE_BYTES = 2**10
DEFAULT_MAX_MESSAGE_BYTES = 2**24
_GOLDEN = 0.6180339887498949  # the fraction whose multiples are spread most evenly


def default_min_message_bytes(max_message_bytes: int, *, known_min_bytes: int = 1) -> int:
    """Return where a range begins that only its greatest message is stated of, and maybe a known
    least.
    """
    if max_message_bytes < DEFAULT_MIN_MESSAGE_BYTES:
        return min(known_min_bytes, max_message_bytes)
    return max(known_min_bytes, DEFAULT_MIN_MESSAGE_BYTES)


def powers_of_two(min_message_bytes: int, max_message_bytes: int) -> tuple[int, ...]:
    """Return the powers of two of the range, inclusive."""
    powers = (1 << bit for bit in range(max_message_bytes.bit_length()))
    return tuple(power for power in powers if power >= min_message_bytes)


@dataclass(frozen=True, slots=True)
class WorkloadSize:
    """A message size and its share of the workload; shares sum to 1."""

    message_bytes: int
    share: float


@dataclass(frozen=True, slots=True)
class Workload:
    """Message sizes, ascending, and how much each counts. Raises InvalidInput.

    `words` says in a sentence what it is, for readers of a mean over it.
    """

    sizes: tuple[WorkloadSize, ...]
    words: str

    def __post_init__(self) -> None:
        if not 1 <= len(self.sizes) <= MAX_WORKLOAD_SIZES:
            raise InvalidInput(
                f"expected 1 to {MAX_WORKLOAD_SIZES} message sizes", field="workload"
            )
        if any(type(size.message_bytes) is not int for size in self.sizes):
            raise InvalidInput("expected whole numbers of bytes", field="workload")
        if any(low.message_bytes >= high.message_bytes for low, high in pairwise(self.sizes)):
            raise InvalidInput("expected message sizes that ascend", field="workload")
        if any(not 1 <= size.message_bytes <= MAX_MESSAGE_BYTES for size in self.sizes):
            raise InvalidInput(
                f"expected message sizes of 1 to {MAX_MESSAGE_BYTES} bytes", field="workload"
            )
        if any(not isfinite(size.share) or size.share < 0.0 for size in self.sizes):
            raise InvalidInput("expected finite shares of at least 0", field="workload")
        if abs(sum(size.share for size in self.sizes) - 1.0) > 1e-9:
            raise InvalidInput("expected shares that sum to 1", field="workload")

    @classmethod
    def log_uniform(
        cls, min_message_bytes: int, max_message_bytes: int, *, points: int = 128
    ) -> Workload:
        """Return a workload of equal weight for every octave of the range, sampled at up to this
        many sizes.

        Derivation: one point in each of `points` equal strips of log B, at the multiples of the
        golden ratio inside them, so that no power of two and no multiple of a setting is
        preferred: on a regular grid a size that divides its points would look better than it is.
        """
        if not 1 <= min_message_bytes <= max_message_bytes <= MAX_MESSAGE_BYTES:
            raise InvalidInput(
                "expected 1 <= min_message_bytes <= max_message_bytes", field="workload"
            )
        if points < 1:
            raise InvalidInput("expected at least one point", field="workload")
        span = log(max_message_bytes / min_message_bytes)
        places = ((i + (i * _GOLDEN) % 1.0) / points for i in range(points))
        drawn = [round(min_message_bytes * exp(span * place)) for place in places]
        words = f"log-uniform from {min_message_bytes} to {max_message_bytes} bytes, {points} sizes"
        if min_message_bytes == max_message_bytes:
            words = f"messages of {min_message_bytes} bytes"
        return cls.weighted(
            [(min(max(b, min_message_bytes), max_message_bytes), 1.0) for b in drawn], words
        )

    @classmethod
    def weighted(cls, weights: list[tuple[int, float]], words: str) -> Workload:
        """Return the workload of sizes with weights of any sum above 0; equal sizes are added up.
        Raises InvalidInput.
        """
        if any(not isfinite(weight) or weight < 0.0 for _, weight in weights):
            raise InvalidInput("expected finite weights of at least 0", field="workload")
        total = sum(weight for _, weight in weights)
        if not 0.0 < total < float("inf"):
            raise InvalidInput("expected weights of a finite sum above 0", field="workload")
        merged: dict[int, float] = {}
        for message_bytes, weight in weights:
            merged[message_bytes] = merged.get(message_bytes, 0.0) + weight / total
        return cls(tuple(WorkloadSize(size, merged[size]) for size in sorted(merged)), words)
