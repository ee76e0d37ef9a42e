"""What transfers of a message decide in the place of a model.

choice = choice_of(verification, decision, message_bytes=32 << 20, current_bytes=64 << 10)

say = what_transfers_say(verification, messages=(1 << 20, 32 << 20))

Transfers are a user's own, or those of the verification that a profile keeps. Of this message they
come before the draws. After a verification that failed, the model sets no size of any message.

Source    docs/decisions/0029-own-transfers-decide.md. A gain is 1 - T/T_other; that of two medians
          is between what their 95 % intervals leave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from analysis.size_decision import MARGIN
from domain.own_transfers import NEAR_BEST, SizeDecision, SizeVerdict
from domain.uncertain_answer import DecisionCode, Reason
from domain.verification import Against, Contradiction, Verification, VerifiedSize


@dataclass(frozen=True, slots=True)
class MeasuredSize:
    """A size with the middle of its times and their interval, in µs."""

    fragment_bytes: int
    latency_us: float
    low_us: float
    high_us: float


@dataclass(frozen=True, slots=True)
class MeasuredChoice:
    """What measured transfers decide, in the place of the model.

    `set_it`, `keep_yours`, or `measure_first` where they do not decide, or a model that failed has
    nothing to say. `size` is what to set or keep, else what stays in use; None where it was not
    transferred. `best` is the best that was, None where this message was not; `other` is what is
    compared with, and `gain` what `best` gains over it, 1 - T/T_other. `own` is the decision of a
    user's own transfers, where it is theirs.
    """

    code: DecisionCode
    message_bytes: int
    size_bytes: int
    size: MeasuredSize | None
    best: MeasuredSize | None
    other: MeasuredSize | None
    gain: tuple[float, float] | None
    is_current_known: bool
    has_failed: bool
    own: SizeDecision | None = None
    contradiction: Contradiction | None = None

    @property
    def reason(self) -> Reason:
        """Why: transfers decide, or the model was contradicted and they do not."""
        if self.code is not DecisionCode.MEASURE_FIRST or self.own is not None:
            return Reason.TRANSFERRED
        return Reason.DOES_NOT_HOLD if self.contradiction is None else Reason.STRUCTURE


def choice_of(
    against: Against | None,
    own: SizeDecision | None,
    *,
    message_bytes: int,
    current_bytes: int | None,
    is_admitted: Callable[[int], bool] = lambda _: True,
) -> MeasuredChoice | None:
    """Return what transfers decide of this message; None where the model is left to decide.

    A user's own transfers come first. Sizes are compared with the one in use, without one with the
    message in one piece; none is set that limits do not admit.
    """
    has_failed = against is not None and against.has_failed
    if own is not None:
        return _of_own(own, has_failed=has_failed)
    if against is None:
        return None
    compared = min(current_bytes or message_bytes, message_bytes)
    of_message = _sizes_of(against, message_bytes)
    sizes = [
        _measured(one)
        for one in of_message
        if one.fragment_bytes == compared or is_admitted(one.fragment_bytes)
    ]
    choice = _of_sizes(
        sizes,
        message_bytes,
        compared,
        is_current_known=current_bytes is not None,
        has_failed=has_failed,
    )
    is_left = choice.code is DecisionCode.MEASURE_FIRST and not has_failed
    if isinstance(against, Contradiction):
        choice = replace(choice, contradiction=against)
    return None if is_left else choice


def _sizes_of(against: Against, message_bytes: int) -> Sequence[VerifiedSize]:
    kept = against.transfers if isinstance(against, Contradiction) else against
    return kept.sizes if kept is not None and kept.message_bytes == message_bytes else ()


@dataclass(frozen=True, slots=True)
class TransfersSay:
    """What the transfers that a profile keeps, or what contradicts it, say of messages, in the
    place of its model.

    `messages` are the least and the greatest in bytes. `choice` is what they decide where these are
    one message; without it the model has failed, and sets no size of any of them.
    """

    against: Against
    messages: tuple[int, int]
    choice: MeasuredChoice | None = None

    @property
    def code(self) -> DecisionCode:
        """What to do."""
        return DecisionCode.MEASURE_FIRST if self.choice is None else self.choice.code

    @property
    def reason(self) -> Reason:
        """Why: they decide, or the model has failed and they do not."""
        if self.choice is not None:
            return self.choice.reason
        is_verified = isinstance(self.against, Verification)
        return Reason.DOES_NOT_HOLD if is_verified else Reason.STRUCTURE


def what_transfers_say(
    against: Against | None,
    *,
    messages: tuple[int, int],
    current_bytes: int | None = None,
    is_admitted: Callable[[int], bool] = lambda _: True,
) -> TransfersSay | None:
    """Return what a profile's transfers say of messages; None where its model is left to decide.

    Every door that advises sizes of a profile asks this. `current_bytes` is the size in use, where
    one size is; none is set that limits do not admit.
    """
    if against is None:
        return None
    if messages[0] != messages[1]:
        return TransfersSay(against, messages) if against.has_failed else None
    choice = choice_of(
        against,
        None,
        message_bytes=messages[0],
        current_bytes=current_bytes,
        is_admitted=is_admitted,
    )
    return None if choice is None else TransfersSay(against, messages, choice)


def _measured(size: VerifiedSize) -> MeasuredSize:
    return MeasuredSize(size.fragment_bytes, size.measured_us, size.low_us, size.high_us)


def _of_sizes(
    sizes: Sequence[MeasuredSize],
    message_bytes: int,
    compared: int,
    *,
    is_current_known: bool,
    has_failed: bool,
) -> MeasuredChoice:
    """The roundest of the sizes as fast as the best one, where it gains more than 1 % for certain;
    the one in use where it is within 2 % of the best by medians; else nothing is decided.
    """
    other = next((one for one in sizes if one.fragment_bytes == compared), None)
    best = min(sizes, key=lambda one: one.latency_us, default=None)
    code, size, gain = DecisionCode.MEASURE_FIRST, other, None
    if best is not None and other is not None:
        fast = [one for one in sizes if one.latency_us <= best.high_us]
        sure = [one for one in fast if _gain(one, other)[0] > MARGIN]
        if other.latency_us <= best.latency_us * (1.0 + NEAR_BEST):
            code = DecisionCode.KEEP_YOURS if is_current_known else DecisionCode.NO_GAIN_PROVABLE
        elif sure:
            code, size = DecisionCode.SET_IT, max(sure, key=_roundness)
            best = size
        gain = _gain(best, other)
    return MeasuredChoice(
        code=code,
        message_bytes=message_bytes,
        size_bytes=compared if size is None else size.fragment_bytes,
        size=size,
        best=best,
        other=other,
        gain=gain,
        is_current_known=is_current_known,
        has_failed=has_failed,
    )


def _roundness(one: MeasuredSize) -> tuple[int, float]:
    return one.fragment_bytes & -one.fragment_bytes, -one.latency_us


def _gain(one: MeasuredSize, other: MeasuredSize) -> tuple[float, float]:
    """What is gained at least and at most by the ends of both intervals."""
    return 1.0 - one.high_us / other.low_us, 1.0 - one.low_us / other.high_us


_OF_VERDICT = {
    SizeVerdict.SET: DecisionCode.SET_IT,
    SizeVerdict.KEEP: DecisionCode.KEEP_YOURS,
    SizeVerdict.TRY: DecisionCode.MEASURE_FIRST,
    SizeVerdict.NOT_DECIDED: DecisionCode.MEASURE_FIRST,
}


def _of_own(own: SizeDecision, *, has_failed: bool) -> MeasuredChoice:
    code = _OF_VERDICT[own.verdict]
    size_bytes = own.current_bytes
    if own.verdict is SizeVerdict.SET and own.size_bytes is not None:
        size_bytes = own.size_bytes
    if code is DecisionCode.KEEP_YOURS and not own.is_current_known:
        code = DecisionCode.NO_GAIN_PROVABLE
    return MeasuredChoice(
        code=code,
        message_bytes=own.message_bytes,
        size_bytes=size_bytes,
        size=_own_size(own, size_bytes),
        best=_own_size(own, own.leader_bytes),
        other=_own_size(own, own.current_bytes),
        gain=None if own.gain is None else (own.gain.low, own.gain.high),
        is_current_known=own.is_current_known,
        has_failed=has_failed,
        own=own,
    )


def _own_size(own: SizeDecision, fragment_bytes: int | None) -> MeasuredSize | None:
    found = own.of_size(fragment_bytes)
    if found is None:
        return None
    return MeasuredSize(found.fragment_bytes, found.centre_us, *found.interval_us)
