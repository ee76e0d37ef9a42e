"""Export targets in words: what they take, and the sizes that their rules admit."""

from __future__ import annotations

from domain.regret import SizeRule
from domain.units import format_byte_range, format_bytes
from exports.targets.target import Takes

TAKES_WORDS = {
    Takes.ONE_SIZE: "one size for all messages",
    Takes.SIZE_STEPS: "a size for each range of messages",
    Takes.COSTS: "the costs of the stages",
    Takes.TABLE: "the compiled table",
}


def format_size_rule(rule: SizeRule) -> str:
    """Return the sizes of a rule: 64 KiB to 16 MiB, multiples of 64 B; "" where it takes any."""
    if rule == SizeRule():
        return ""
    words = [format_byte_range(rule.min_bytes, rule.max_bytes)]
    if rule.multiple_of > 1:
        words.append(f"multiples of {format_bytes(rule.multiple_of)}")
    if rule.is_power_of_two:
        words.append("powers of two")
    return ", ".join(words)
