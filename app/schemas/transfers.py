"""What contract/transfers.py declares, as the domain has it, and what was decided as it is sent."""

from __future__ import annotations

from collections.abc import Iterator

from app.questions.transfers import DecidedTransfers, TransfersQuestion
from app.text.numbers import format_percent
from app.text.units import format_time
from contract.transfers import (
    ConditionOut,
    GainOut,
    RefusedSizeOut,
    SetByTransfersOut,
    TransferIn,
    TransferredSizeOut,
    TransfersIn,
    TransfersOut,
)
from domain.errors import InconsistentInput, InvalidInput
from domain.own_transfers import (
    GainInterval,
    OwnTransfer,
    OwnTransfers,
    SizeDecision,
    SizeVerdict,
    TransferredSize,
    TransferStatus,
)
from domain.units import format_bytes


def transfers_question(
    asked: TransfersIn, message_bytes: int, *, current_bytes: int | None, sends_whole: bool
) -> TransfersQuestion:
    """Return what is asked of them. Raises InvalidInput."""
    if (asked.content is None) == (asked.rows is None):
        raise InconsistentInput("expected exactly one of content and rows", field="transfers")
    if asked.rows is not None and asked.where:
        raise InconsistentInput("expected where beside content alone", field="transfers.where")
    given: str | OwnTransfers = asked.content or ""
    if asked.rows is not None:
        given = _own_transfers(asked.rows, message_bytes)
    return TransfersQuestion(
        given, message_bytes, current_bytes, sends_whole, tuple((asked.where or {}).items())
    )


def _own_transfers(given: tuple[TransferIn, ...], message_bytes: int) -> OwnTransfers:
    rows = []
    for at, row in enumerate(given):
        try:
            rows.append(_own_transfer(row, message_bytes))
        except InvalidInput as refusal:
            place = f"transfers.rows.{at}.{refusal.field}"
            raise InconsistentInput(refusal.detail, field=place) from None
    try:
        return OwnTransfers(message_bytes, tuple(rows))
    except InvalidInput as refusal:
        raise InconsistentInput(refusal.detail, field="transfers.rows") from None


def _own_transfer(row: TransferIn, message_bytes: int) -> OwnTransfer:
    """Return it; a fragment larger than the message is the message. Raises InvalidInput."""
    return OwnTransfer(
        min(row.fragment_bytes, message_bytes),
        row.latency_us,
        block=row.block,
        began_s=row.began_s,
        status=TransferStatus(row.status),
        challenge=row.challenge,
        reason=row.reason,
    )


# --- the answer -----------------------------------------------------------------------------------


def transfers_out(decided: DecidedTransfers) -> TransfersOut:
    """Return a decision as it is sent."""
    found, message = decided.decision, decided.decision.message_bytes
    return TransfersOut(
        message_bytes=message,
        current_bytes=found.current_bytes,
        is_current_known=found.is_current_known,
        set_this=_set_this(found),
        best_bytes=found.leader_bytes,
        best_gain=_gain_out(found.gain),
        sizes=tuple(_transferred_size_out(size, message) for size in found.sizes),
        near_best_bytes=found.near_best_bytes,
        refused=tuple(RefusedSizeOut(size, why) for size, why in found.refused),
        conditions=tuple(ConditionOut(name, value) for name, value in decided.transfers.conditions),
        unused_columns=decided.unused,
        noise=found.noise,
        runs=found.runs,
        seconds=found.seconds,
        curve_us=found.curve,
        hardly_depends=found.hardly_depends,
        condition=found.condition,
        more_runs=found.more_runs,
    )


def _gain_out(gain: GainInterval | None) -> GainOut | None:
    return None if gain is None else GainOut(gain.low, gain.high)


def _transferred_size_out(size: TransferredSize, message_bytes: int) -> TransferredSizeOut:
    return TransferredSizeOut(
        size.fragment_bytes,
        -(-message_bytes // size.fragment_bytes),
        size.runs,
        size.centre_us,
        size.interval_us,
        size.regret,
        size.is_near_best,
    )


def _set_this(found: SizeDecision) -> SetByTransfersOut:
    size = found.current_bytes if found.size_bytes is None else found.size_bytes
    known = found.of_size(size)
    is_leader = size == found.leader_bytes
    return SetByTransfersOut(
        verdict=found.verdict.value,
        size_bytes=size,
        fragments=-(-found.message_bytes // size),
        latency_us=None if known is None else known.centre_us,
        latency_us_interval=None if known is None else known.interval_us,
        gain=_gain_out(found.gain) if is_leader else None,
        keeps_current=found.verdict is not SizeVerdict.SET,
        sentence=found.sentence(),
    )


def transfer_facts(found: TransfersOut) -> Iterator[tuple[str, str]]:
    """Yield what the decision rests on, in words: names and figures; only what there is."""
    yield "message", format_bytes(found.message_bytes)
    for condition in found.conditions:
        yield condition.name, condition.value
    if found.unused_columns:
        yield "not used", ", ".join(found.unused_columns)
    if found.near_best_bytes:
        sizes = ", ".join(map(format_bytes, found.near_best_bytes))
        yield "within 2 % of the best", f"{sizes}, with 90 %"
    if sum(size.runs for size in found.sizes) > len(found.sizes):
        yield "noise", f"{format_percent(found.noise)} of one transfer"
    if found.curve_us is not None:
        fixed, share, each = map(format_time, found.curve_us)
        yield "curve", f"{fixed} + {share} × size/message + {each} × fragments"
    for size in found.refused:
        why = f": {size.reason}" if size.reason else ""
        yield "refused", f"{format_bytes(size.fragment_bytes)}{why}"
    if found.hardly_depends:
        yield (
            "all sizes",
            "within 5 % of each other: the time hardly depends on the size, or what is the "
            "same for all hides it",
        )
