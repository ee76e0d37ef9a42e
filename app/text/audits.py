"""What an audit advises, in sentences."""

from __future__ import annotations

from analysis.audit import WORTH_SAYING, Audit, Change, Priced
from app.text.numbers import format_gap, format_regret
from domain.pipeline import MAX_MESSAGE_BYTES
from domain.units import format_bytes


def change_words(outcome: Audit, change: Change) -> str:
    """Return one of the audit's changes in words, with what it would cost."""
    if change is Change.NO_OTHER_SIZE:
        return "no other single size for all messages gains 0.1 % or more"
    if change is Change.ONE_SIZE:
        return f"{_for_all(outcome)}: {_costs(outcome.single)}"
    if change is Change.STEPS and outcome.ladder is not None:
        steps = len(outcome.ladder.setting.steps)
        costs = _costs(outcome.ladder)
        return f"let the size grow with the message, in {steps} steps: {costs}"
    if change is Change.LOOKUP and outcome.repeats is not None:
        return (
            "look the size up for each message in a compiled table: mean regret "
            f"{format_regret(outcome.repeats)}"
        )
    left = outcome.schedules_at_most
    words = "less than 0.1 %" if left < WORTH_SAYING else f"at most {format_gap(left)}"
    return (
        "send schedules of several sizes out of a compiled table: mean regret 0 %; any other "
        f"schedules could gain {words} more"
    )


def _costs(priced: Priced) -> str:
    where = format_bytes(priced.worst.message_bytes)
    worst = format_regret(priced.worst_span.at_least)
    return f"mean regret {format_regret(priced.mean.at_least)}, worst {worst} at {where}"


def _for_all(outcome: Audit) -> str:
    size = outcome.single.setting.size_at(MAX_MESSAGE_BYTES)
    if size >= outcome.mix.sizes[-1].message_bytes:
        return "send every message whole"
    return f"repeat {format_bytes(size)} for all messages"
