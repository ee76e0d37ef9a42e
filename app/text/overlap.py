"""What follows from what of the stages overlaps, or from nobody knowing it, in sentences."""

from __future__ import annotations

from app.text.numbers import two_digits
from app.text.transferred import sweep_command
from app.text.units import format_time
from domain.uncertain_answer import BothWays, Reason, Uncertainty
from domain.units import format_bytes

_SAME = 5e-4  # of a time: less is no difference
_SAY_WHICH = "Say which with the file (stages_overlap, --stages-overlap yes|no)"
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
        return f"{compared}, whether stages overlap or not"
    return f"{compared} if stages overlap, {serial} one after another"


def _conditional(both: BothWays, message_bytes: int, other: str) -> str:
    size = _size(both.size_bytes, message_bytes)
    took, serial = format_time(both.latency_us, 2), format_time(both.serial_us, 2)
    if both.serial_bytes != both.size_bytes:
        instead = _size(both.serial_bytes, message_bytes)
        return (
            f"If these stages overlap: keep {size} ({took}). One after another: {instead}, "
            f"{_gain(both.serial_gain)} ({serial})."
        )
    return (
        f"If these stages overlap: {size}, {_gain(both.gain, other)} ({took}). "
        f"One after another: {_gain(both.serial_gain)} ({serial})."
    )


def _gain(gain: float, other: str = "") -> str:
    if abs(gain) < _SAME:
        return f"as fast as {other}" if other else "as fast"
    said = f"{two_digits(abs(gain))} % {'faster' if gain > 0.0 else 'slower'}"
    return f"{said} than {other}" if other else said


def _size(size: int, message_bytes: int) -> str:
    return "one piece" if size >= message_bytes else format_bytes(size)


def _plain(size_bytes: int) -> str:
    return format_bytes(size_bytes).replace(" ", "")
