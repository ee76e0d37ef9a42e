"""What follows from what of the stages overlaps, or from nobody knowing it, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from analysis.premise import OVERLAP_NOT_KNOWN
from app.text.numbers import two_digits
from app.text.transferred import sweep_command
from app.text.units import format_time
from domain.solution import Notice
from domain.structure import KnownOverlap
from domain.uncertain_answer import BothWays, Reason, Uncertainty
from domain.units import format_bytes

_SAME = 5e-4  # of a time: less is no difference
_SAY_WHICH = "Say which with the file (stages_overlap, --stages-overlap yes|no)"
IF_OVERLAPPING = "If these stages overlap"
EITHER_WAY = "whether stages overlap or not"
IF_ONE_AT_A_TIME = "if no stage handles several fragments at once (several_at_once)"
_ASKED = "Does a stage handle several fragments at once?"


def overlap_words(
    found: Uncertainty, message_bytes: int, current_bytes: int | None, other: str
) -> str:
    """Return what is measured first, and why; `other` says what a size is compared with."""
    command = sweep_command(message_bytes, current_bytes)
    reason, both = found.decision.reason, found.both_ways
    if reason is Reason.STRUCTURE and found.overlap.structure is not None:
        said = found.overlap.structure.sentence
        return f"{said} A pipeline's model does not hold for it. Measure first: `{command}`."
    if reason is Reason.SEVERAL_AT_ONCE or both is None:
        return (
            "Measure first: of stages that handle several fragments at once durations do not tell "
            f"what a message takes. Trace begins, or `{command}`."
        )
    if reason is Reason.ONE_AT_A_TIME:
        return (
            f"{_ASKED} If none does, set {_size(both.size_bytes, message_bytes)}: "
            f"{_both_gains(both, other)}. Say so with the file (several_at_once, "
            f"--several-at-once no), or `{command}`."
        )
    return f"{_conditional(both, message_bytes, other)} {_SAY_WHICH}, trace begins, or `{command}`."


@dataclass(frozen=True, slots=True)
class PricedBothWays:
    """A message's best cut if stages overlap, and the least that others take one after another.

    `cut` says which it is and takes `latency_us`, or `serial_us` one after another; `instead`
    which one takes `instead_us` then. `claim` says what it takes of those where it is the best
    either way: others were not compared.
    """

    message_bytes: int
    cut: str
    latency_us: float
    serial_us: float
    instead: str
    instead_us: float
    claim: str

    @property
    def is_best_either_way(self) -> bool:
        """Whether none of the others takes less one after another."""
        return self.serial_us <= self.instead_us * (1.0 + _SAME)


def with_both_times(
    said: Sequence[Notice], messages: Sequence[PricedBothWays], overlap: KnownOverlap, stages: int
) -> tuple[Notice, ...]:
    """Return notices with both times in the place of what a pipeline's model takes for granted of
    so many stages, where nobody has said whether they overlap.
    """
    if not messages or not overlap.is_unsaid(stages):
        return tuple(said)
    detail = both_times_words(messages, overlap)
    return tuple(
        replace(one, detail=detail) if one.code == OVERLAP_NOT_KNOWN else one for one in said
    )


def both_times_words(messages: Sequence[PricedBothWays], overlap: KnownOverlap) -> str:
    """Return what the best cut takes both ways, of the largest message to which it matters, as a
    sentence without its end.
    """
    depending = [message for message in messages if not message.is_best_either_way]
    one = max(depending or messages, key=lambda found: found.message_bytes)
    of = f" of {format_bytes(one.message_bytes)}" if len(messages) > 1 else ""
    took, serial = format_time(one.latency_us, 3), format_time(one.serial_us, 3)
    if not depending:
        asked = "" if overlap.several_at_once is False else f", {IF_ONE_AT_A_TIME}"
        times = took if took == serial else f"{took} if they do, {serial} one after another"
        return f"{one.cut}{of} takes {one.claim}, {EITHER_WAY}{asked}: {times}"
    return (
        f"{IF_OVERLAPPING}: {one.cut}{of}, {took}. One after another: {serial}, and "
        f"{one.instead} {format_time(one.instead_us, 3)}. {_SAY_WHICH}, trace begins, or "
        f"`{sweep_command(one.message_bytes)}`"
    )


def one_stage_words(stage: str) -> str:
    """Return what a file of one stage does not tell where it says not to cut."""
    return (
        f"Only {stage} was measured: what overlaps with it is not known, and cuts may gain by that."
    )


def either_way_words(both: BothWays, other: str) -> str:
    """Return what a set size gains over something else, whether stages overlap or not."""
    return _both_gains(both, other)


def _both_gains(both: BothWays, other: str) -> str:
    gain, serial = _gain(both.gain), _gain(both.serial_gain)
    compared = _gain(both.gain, other)
    if gain == serial:
        return f"{compared}, {EITHER_WAY}"
    return f"{compared} if stages overlap, {serial} one after another"


def _conditional(both: BothWays, message_bytes: int, other: str) -> str:
    size = _size(both.size_bytes, message_bytes)
    took, serial = format_time(both.latency_us, 2), format_time(both.serial_us, 2)
    if both.serial_bytes != both.size_bytes:
        instead = _size(both.serial_bytes, message_bytes)
        return (
            f"{IF_OVERLAPPING}: keep {size} ({took}). One after another: {instead}, "
            f"{_gain(both.serial_gain)} ({serial})."
        )
    return (
        f"{IF_OVERLAPPING}: {size}, {_gain(both.gain, other)} ({took}). "
        f"One after another: {_gain(both.serial_gain)} ({serial})."
    )


def _gain(gain: float, other: str = "") -> str:
    if abs(gain) < _SAME:
        return f"as fast as {other}" if other else "as fast"
    said = f"{two_digits(abs(gain))} % {'faster' if gain > 0.0 else 'slower'}"
    return f"{said} than {other}" if other else said


def _size(size: int, message_bytes: int) -> str:
    return "one piece" if size >= message_bytes else format_bytes(size)
