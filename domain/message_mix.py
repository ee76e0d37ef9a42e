"""A mix of message sizes: what a mean over messages is a mean of."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import exp, isfinite, log

from domain.errors import InvalidInput
from domain.pipeline import MAX_MESSAGE_BYTES

MAX_MIX_SIZES = 10_000
# The range of a mix where none is stated. Below it there are ten more octaves, of messages that are
# sent whole by almost any setting: they would be half of the mean, and tell nothing of a setting.
USUAL_LEAST_BYTES = 2**10
USUAL_GREATEST_BYTES = 2**24
_GOLDEN = 0.6180339887498949  # the fraction whose multiples are spread most evenly


def usual_least(greatest_bytes: int, *, known_least_bytes: int = 1) -> int:
    """Where a range begins that only its greatest message is stated of, and maybe a known least."""
    if greatest_bytes < USUAL_LEAST_BYTES:
        return min(known_least_bytes, greatest_bytes)
    return max(known_least_bytes, USUAL_LEAST_BYTES)


@dataclass(frozen=True, slots=True)
class MixSize:
    """A message size and its share of the mix; shares sum to 1."""

    message_bytes: int
    share: float


@dataclass(frozen=True, slots=True)
class MessageMix:
    """Message sizes, ascending, and how much each counts. Raises InvalidInput.

    `words` says in a sentence what it is, for whoever reads a mean over it.
    """

    sizes: tuple[MixSize, ...]
    words: str

    def __post_init__(self) -> None:
        if not 1 <= len(self.sizes) <= MAX_MIX_SIZES:
            raise InvalidInput(f"expected 1 to {MAX_MIX_SIZES} message sizes", field="mix")
        if any(type(size.message_bytes) is not int for size in self.sizes):
            raise InvalidInput("expected whole numbers of bytes", field="mix")
        if any(low.message_bytes >= high.message_bytes for low, high in pairwise(self.sizes)):
            raise InvalidInput("expected message sizes that ascend", field="mix")
        if any(not 1 <= size.message_bytes <= MAX_MESSAGE_BYTES for size in self.sizes):
            raise InvalidInput(
                f"expected message sizes of 1 to {MAX_MESSAGE_BYTES} bytes", field="mix"
            )
        if any(not isfinite(size.share) or size.share < 0.0 for size in self.sizes):
            raise InvalidInput("expected finite shares of at least 0", field="mix")
        if abs(sum(size.share for size in self.sizes) - 1.0) > 1e-9:
            raise InvalidInput("expected shares that sum to 1", field="mix")

    @classmethod
    def log_uniform(cls, least_bytes: int, greatest_bytes: int, *, points: int = 128) -> MessageMix:
        """Equal weight to every octave of the range, sampled at up to this many sizes.

        Derivation: one point in each of `points` equal strips of log B, at the multiples of the
        golden ratio inside them, so that no power of two and no multiple of a setting is
        preferred: on a regular grid a size that divides its points would look better than it is.
        """
        if not 1 <= least_bytes <= greatest_bytes <= MAX_MESSAGE_BYTES:
            raise InvalidInput("expected 1 <= least_bytes <= greatest_bytes", field="mix")
        if points < 1:
            raise InvalidInput("expected at least one point", field="mix")
        span = log(greatest_bytes / least_bytes)
        places = ((i + (i * _GOLDEN) % 1.0) / points for i in range(points))
        drawn = [round(least_bytes * exp(span * place)) for place in places]
        words = f"log-uniform from {least_bytes} to {greatest_bytes} bytes, {points} sizes"
        return cls.weighted([(min(max(b, least_bytes), greatest_bytes), 1.0) for b in drawn], words)

    @classmethod
    def weighted(cls, weights: list[tuple[int, float]], words: str) -> MessageMix:
        """Sizes with weights of any sum above 0; equal sizes are added up. Raises InvalidInput."""
        if any(not isfinite(weight) or weight < 0.0 for _, weight in weights):
            raise InvalidInput("expected finite weights of at least 0", field="mix")
        total = sum(weight for _, weight in weights)
        if not 0.0 < total < float("inf"):
            raise InvalidInput("expected weights of a sum above 0", field="mix")
        merged: dict[int, float] = {}
        for message_bytes, weight in weights:
            merged[message_bytes] = merged.get(message_bytes, 0.0) + weight / total
        return cls(tuple(MixSize(size, merged[size]) for size in sorted(merged)), words)
