"""A setting: how a library that repeats one size cuts messages, for every message size."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from contract.limits import MAX_MESSAGE_BYTES
from domain.errors import InvalidInput

MAX_STEPS = 4096
MAX_BREAKPOINTS = 64


@dataclass(frozen=True, slots=True)
class SettingStep:
    """From this message size on, to just before the next step's, messages repeat this size.

    `size_bytes` None means that such messages are sent whole.
    """

    from_bytes: int
    size_bytes: int | None


@dataclass(frozen=True, slots=True)
class FragmentSetting:
    """Steps that ascend by message size; the first begins at 1. Raises InvalidInput.

    A message of B bytes is cut into ⌊B/s⌋ fragments of the step's size s and one that carries the
    rest; a message smaller than s is sent whole.
    """

    steps: tuple[SettingStep, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.steps) <= MAX_STEPS:
            raise InvalidInput(f"expected 1 to {MAX_STEPS} steps", field="setting")
        for step in self.steps:
            _check_bytes(step.from_bytes)
            if step.size_bytes is not None:
                _check_bytes(step.size_bytes)
        if self.steps[0].from_bytes != 1:
            raise InvalidInput("expected the first step to begin at 1 byte", field="setting")
        if any(low.from_bytes >= high.from_bytes for low, high in pairwise(self.steps)):
            raise InvalidInput("expected steps that ascend by message size", field="setting")

    @classmethod
    def always(cls, size_bytes: int | None) -> FragmentSetting:
        """Return one size for every message; None: every message is sent whole."""
        return cls((SettingStep(1, size_bytes),))

    def size_at(self, message_bytes: int) -> int:
        """Return the size that a message of this many bytes (>= 1) repeats, at most the message
        itself.
        """
        at = bisect_right(self.steps, message_bytes, key=lambda step: step.from_bytes) - 1
        return min(self.steps[at].size_bytes or message_bytes, message_bytes)


def _check_bytes(value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput("expected whole numbers of bytes", field="setting")
    if not 1 <= value <= MAX_MESSAGE_BYTES:
        raise InvalidInput(f"expected sizes of 1 to {MAX_MESSAGE_BYTES} bytes", field="setting")


def breakpoints(
    setting: FragmentSetting, min_message_bytes: int, max_message_bytes: int
) -> tuple[int, ...]:
    """Return message sizes of the range at which a setting's cut changes most: its regret peaks
    there.

    Of each step the first and the last message, the first that is whole fragments, and the one
    beyond it, whose last fragment is a byte. Of more than MAX_BREAKPOINTS an even choice.
    """
    begins = [step.from_bytes for step in setting.steps]
    ends = [begin - 1 for begin in begins[1:]] + [max_message_bytes]
    found: set[int] = set()
    for step, end in zip(setting.steps, ends, strict=True):
        first, last = max(step.from_bytes, min_message_bytes), min(end, max_message_bytes)
        size = step.size_bytes or last or 1
        full = -(-first // size) * size
        found.update(one for one in (first, full, full + 1, last) if first <= one <= last)
    return _evenly(sorted(found), MAX_BREAKPOINTS)


def _evenly(sizes: Sequence[int], maximum: int) -> tuple[int, ...]:
    """At most so many of them, the first and the last among them."""
    if len(sizes) <= maximum:
        return tuple(sizes)
    return tuple(sizes[number * (len(sizes) - 1) // (maximum - 1)] for number in range(maximum))
